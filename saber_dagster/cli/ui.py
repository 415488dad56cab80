"""``saber ui``: Dagster's pages for the home."""

import os
import socket
import sys
from typing import Annotated

import typer

from saber_dagster.cli.common import current_home, errors
from saber_dagster.errors import SaberError


def ui(
    port: Annotated[int, typer.Option(help="Port of the web server.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start Dagster's web server and daemon on the home; stop it with Ctrl-C."""
    from saber_dagster.code_location import record_ui
    from saber_dagster.instance import instance_of

    home = current_home()
    home.root.exists()  # a bucket that cannot be used is told here, not by a traceback of Dagster's
    _require_free(host, port)
    instance_of(home)
    environment = {
        **os.environ,
        "SABER_HOME": str(home.root),
        "DAGSTER_HOME": str(home.dagster),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "PYTHONWARNINGS": "ignore",
    }
    errors.print(f"http://{host}:{port} shows {home.root}; Ctrl-C ends it", highlight=False)
    command = [
        sys.executable,
        "-m",
        "dagster",
        "dev",
        "-m",
        "saber_dagster.definitions",
        "-h",
        host,
        "-p",
        str(port),
    ]
    record_ui(home, host, port)
    os.execve(sys.executable, command, environment)


def _require_free(host: str, port: int) -> None:
    try:
        (family, kind, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError) as error:
        raise SaberError(
            f"cannot listen on {host}:{port} ({getattr(error, 'strerror', None) or error}); take"
            " another port, as in `saber ui --port 3001`"
        ) from None
