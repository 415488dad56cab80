"""The server that shows a home: find it, have it load the definitions anew, see what it knows then.

Judges are assets, so a running Dagster sees a new one after its code location was reloaded. Not every
code server imports anew when it is told to reload; so the judges that the server shows afterwards are
compared with those that it should show.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.storage import write_atomic

URL_VARIABLE = "SABER_WEBSERVER_URL"

_RECORD = "ui.json"
_TIMEOUT_S = 120.0
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
_RESTART = (
    "restart the code server (a plain `dagster api grpc` does not import anew; `dagster code-server"
    " start` does), then `saber judges reload`; or restart `saber ui`"
)

_SHOWN = """{
  workspaceOrError {
    ... on Workspace { locationEntries { name locationOrLoadError { __typename } } }
    ... on PythonError { message }
  }
  assetNodes { assetKey { path } opVersion repository { location { name } } }
}"""
_RELOAD = """mutation Reload($name: String!) {
  reloadRepositoryLocation(repositoryLocationName: $name) {
    __typename
    ... on WorkspaceLocationEntry { locationOrLoadError {
      __typename ... on PythonError { message }
    } }
    ... on PythonError { message }
    ... on UnauthorizedError { message }
    ... on ReloadNotSupported { message }
    ... on RepositoryLocationNotFound { message }
  }
}"""


@dataclass(frozen=True)
class Reload:
    """What came of a reload: whether the server shows the judges as they are now, and a sentence."""

    done: bool
    message: str
    url: str | None = None


def record_ui(home: Home, host: str, port: int) -> None:
    """Note where this process is about to serve the home; its id stays the same through an exec."""
    record = {"host": host, "port": port, "pid": os.getpid()}
    write_atomic(home.state / _RECORD, (json.dumps(record) + "\n").encode())


def reload_judges(home: Home, versions: Mapping[str, str], url: str | None = None) -> Reload:
    """Reload the code location of the home wherever it is shown.

    Args:
        home: the home.
        versions: slug → code version of the games of every judge that the server should show.
        url: of the web server; default: :data:`URL_VARIABLE`, else the one that ``saber ui`` started.

    Raises:
        SaberError: if the URL is none.
    """
    given = url or os.environ.get(URL_VARIABLE)
    if given:
        address = _checked(given)
    elif recorded := _recorded(home):
        address = recorded
    else:
        return Reload(
            False,
            "no running server of this home is known. One that `saber ui` did not start is named by"
            f" --url or {URL_VARIABLE}; else restart what shows the home, or reload it on its page"
            " Deployment",
        )
    try:
        return _reload(address, versions)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return Reload(
            False,
            f"{address} was not reloaded ({reason}). Check the address and that the server runs, then"
            " `saber judges reload`",
            address,
        )


def _reload(url: str, versions: Mapping[str, str]) -> Reload:
    locations = _our_locations(_ask(url, _SHOWN))
    if not locations:
        return Reload(False, f"{url} shows no definitions of saber_dagster; check the address", url)
    for name in locations:
        told = _ask(url, _RELOAD, name=name)["reloadRepositoryLocation"]
        answer = told.get("locationOrLoadError") or told
        if answer["__typename"] != "RepositoryLocation":
            lines = str(answer.get("message") or answer["__typename"]).strip().splitlines()
            return Reload(
                False,
                f"{url}: code location {name} did not load: {lines[-1]}. Mend that, then `saber judges"
                " reload`",
                url,
            )
    shown = _judges(_ask(url, _SHOWN))
    absent = sorted(versions.keys() - shown.keys())
    left = sorted(shown.keys() - versions.keys())
    other = sorted(slug for slug in versions if slug in shown and shown[slug] != versions[slug])
    if absent or left:
        problem = [f"still does not show {', '.join(absent)}"] if absent else []
        problem += [f"still shows {', '.join(left)}"] if left else []
        return Reload(False, f"{url} {' and '.join(problem)}: {_RESTART}", url)
    if other:
        return Reload(
            False,
            f"{url} shows another version of {', '.join(other)} than this environment has: {_RESTART};"
            " or it runs with other SABER_ variables or another release of saber_dagster",
            url,
        )
    return Reload(True, f"{url} shows {len(versions)} judge(s): {', '.join(versions)}", url)


def _our_locations(shown: dict[str, Any]) -> list[str]:
    """Locations that have our assets or cannot be loaded, which may be why they have none."""
    ours = {
        node["repository"]["location"]["name"]
        for node in shown["assetNodes"]
        if node["assetKey"]["path"] == ["candidate_sets"]
    }
    entries = shown["workspaceOrError"].get("locationEntries") or ()
    broken = {
        entry["name"]
        for entry in entries
        if (entry["locationOrLoadError"] or {}).get("__typename") == "PythonError"
    }
    return sorted(ours or broken)


def _judges(shown: dict[str, Any]) -> dict[str, str]:
    """Slug → code version of its games."""
    return {
        path[1]: str(node["opVersion"])
        for node in shown["assetNodes"]
        if (path := node["assetKey"]["path"])[0] == "judge" and path[2:] == ["tournament_rounds"]
    }


def _checked(url: str) -> str:
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    if parts.username or parts.password:
        raise SaberError(
            f"{URL_VARIABLE} or --url has a name or password in it; give the address alone"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SaberError(f"{url} is no address of a web server; write http://host:port")
    return urllib.parse.urlunsplit(parts).rstrip("/")


def _recorded(home: Home) -> str | None:
    """The address of the ``saber ui`` that runs on the home, as far as its record is not stale."""
    try:
        record = json.loads((home.state / _RECORD).read_text(encoding="utf-8"))
        host, port, pid = str(record["host"]), int(record["port"]), int(record["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if ":" in host and host not in _ANY_ADDRESS:
        host = f"[{host}]"
    return f"http://{_ANY_ADDRESS.get(host, host)}:{port}"


def _ask(url: str, query: str, **variables: Any) -> dict[str, Any]:
    """The data of a GraphQL query.

    Raises:
        OSError: if the server does not answer.
        ValueError: if what answers is no Dagster.
    """
    host = urllib.parse.urlsplit(url).hostname
    handlers = [urllib.request.ProxyHandler({})] if host in _LOOPBACK else []
    request = urllib.request.Request(
        f"{url}/graphql",
        json.dumps({"query": query, "variables": variables}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_S) as response:
        try:
            reply = json.load(response)
            data = reply["data"]
        except (ValueError, TypeError, KeyError):
            raise ValueError("what answers there is not Dagster's web server") from None
    if reply.get("errors") or not isinstance(data, dict):
        raise ValueError(f"the server says: {reply.get('errors')}")
    return data
