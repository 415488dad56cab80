"""Paths in a bucket, against a real S3 server that checks keys and signatures."""

import contextlib
import importlib
import sys
import time

import polars as pl
import pytest
from servers import KEY, SECRET, free_port, juicefs_server

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.storage import (
    files_below,
    is_local,
    read_many,
    storage_path,
    write_atomic,
)
from saber_dagster.tables import Provenance, TableStore

AWS = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with juicefs_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def use(monkeypatch, tmp_path):
    """Sets variables of AWS, and forgets connections made with others."""
    from saber_dagster.buckets import _Store

    def setting(**environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        _Store.clear_instance_cache()

    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    yield setting
    _Store.clear_instance_cache()


@pytest.fixture
def root(server, use, request):
    use(**server.environ)
    return storage_path(f"s3://{server.bucket}/{request.node.name.partition('[')[0]}")


@pytest.fixture
def requests(monkeypatch):
    """The S3 operations that were asked for."""
    from s3fs import S3FileSystem

    made = []
    plain = S3FileSystem._call_s3

    async def counted(self, method, *options, **arguments):
        made.append(method)
        return await plain(self, method, *options, **arguments)

    monkeypatch.setattr(S3FileSystem, "_call_s3", counted)
    return made


@contextlib.contextmanager
def told(*words):
    """Within it a SaberError comes up, in seconds, with these words and no secret."""
    start = time.monotonic()
    with pytest.raises(SaberError) as caught:
        yield
    assert time.monotonic() - start < 15
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert not any(secret in said for secret in (SECRET, KEY, "hidden"))
    assert caught.value.__cause__ is None


def test_every_file_takes_one_request(root, requests):
    a, b = root / "deep" / "a.bin", root / "b.bin"
    write_atomic(a, b"hello")
    write_atomic(a, b"hello again")
    write_atomic(b, b"")
    assert requests == ["put_object"] * 3
    assert a.read_bytes() == b"hello again"
    assert a.read_text(encoding="utf-8") == "hello again"
    with pytest.raises(FileNotFoundError):
        (root / "c.bin").read_bytes()
    assert requests == ["put_object"] * 3 + ["get_object"] * 3
    del requests[:]
    paths = [a, root / "missing", b]
    assert list(read_many(paths)) == [b"hello again", None, b""]
    assert list(read_many(paths, last=3)) == [b"ain", None, b""]
    assert list(read_many(paths, last=300)) == [b"hello again", None, b""]
    assert requests == ["get_object"] * 9
    del requests[:]
    a.unlink(missing_ok=True)
    a.unlink(missing_ok=True)
    assert requests == ["delete_object"] * 2
    with pytest.raises(FileNotFoundError):
        a.unlink()


def test_a_listing_sees_what_another_program_wrote(root, server):
    assert list(files_below(root, ".bin")) == []
    prefix = root.path.partition("/")[2]
    for name in ("x/a.bin", "x/y/b.bin", "c.txt"):
        server.client().put_object(Bucket=server.bucket, Key=f"{prefix}/{name}", Body=b"1")
        assert (root / name).exists()
    found = sorted(files_below(root, ".bin"), key=str)
    assert [path.relative_to(root).with_suffix("").parts for path in found] == [
        ("x", "a"),
        ("x", "y", "b"),
    ]
    assert sorted(child.name for child in root.iterdir()) == ["c.txt", "x"]
    server.client().delete_object(Bucket=server.bucket, Key=f"{prefix}/x/a.bin")
    assert not found[0].exists()
    assert len(list(files_below(root, ".bin"))) == 1


def test_a_large_file_comes_back(root):
    data = bytes(range(256)) * 450_000  # in several parts: above 100 MB
    write_atomic(root / "large", data)
    assert (root / "large").read_bytes() == data


def test_a_bucket_that_does_not_exist_is_named(root):
    other = storage_path("s3://nowhere/home")
    for ask in (
        (other / "saber.yaml").read_text,
        other.exists,
        lambda: write_atomic(other / "a", b"1"),
        lambda: list(files_below(other, ".parquet")),
        lambda: Home(other).settings,
        lambda: TableStore(other).provenance(("corpus",), "c00"),
    ):
        with told("no bucket 'nowhere'", "SABER_HOME"):
            ask()


@pytest.mark.parametrize(
    "environ", [{"AWS_SECRET_ACCESS_KEY": "hidden"}, {"AWS_ACCESS_KEY_ID": "hidden-too"}]
)
def test_wrong_credentials_are_named_and_never_shown(root, server, use, environ):
    use(**environ)
    root = storage_path(f"s3://{server.bucket}/home")
    with told("denies access", "AWS_SECRET_ACCESS_KEY", "read"):
        (root / "saber.yaml").read_text()
    with told("denies access", "AWS_SECRET_ACCESS_KEY", "write"):
        write_atomic(root / "a", b"1")
    with told("denies access"):
        root.exists()


def test_missing_credentials_are_named(root, server, use, monkeypatch):
    for name in AWS[1:3]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    use()
    with told("no credentials", "AWS_ACCESS_KEY_ID"):
        (storage_path(f"s3://{server.bucket}/home") / "a").read_bytes()


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:{port}", "http://me:hidden@127.0.0.1:{port}"]
)
def test_an_endpoint_that_does_not_answer_is_given_up_in_seconds(root, use, endpoint):
    port = free_port()
    use(AWS_ENDPOINT_URL=endpoint.format(port=port))
    with told(f"http://127.0.0.1:{port} does not answer", "AWS_ENDPOINT_URL"):
        (storage_path("s3://any/home") / "a").read_bytes()


def test_an_outage_is_not_taken_for_missing_tables(root, use):
    store = TableStore(root)
    frame = TABLES["topic_statistics"].empty()
    made = Provenance("topic_statistics", "a", "all", "1", "v", 0)
    store.write(TABLES["topic_statistics"], frame, made, ("a",))
    assert store.provenance(("a",), None) == made
    use(AWS_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}")
    away = TableStore(storage_path(str(root)))
    with told("does not answer"):
        away.provenance(("a",), None)
    with told("does not answer"):
        away.read("topic_statistics", ("a",), None)


def test_an_endpoint_that_is_none_is_named(root, use):
    use(AWS_ENDPOINT_URL="nonsense")
    with told("AWS_ENDPOINT_URL"):
        (storage_path("s3://any/home") / "a").read_bytes()


def test_provenance_is_read_from_the_ends_of_files(root, requests):
    store = TableStore(root)
    table = TABLES["topic_statistics"]
    rows = [(f"n{i:06}", i, (i % 997) / 997) for i in range(40_000)]
    frame = pl.DataFrame(rows, schema=table.schema, orient="row")
    many = {f"corpus:c{i:04}": "d" * 64 for i in range(1000)}  # a footer longer than is read first
    made = {
        name: Provenance(table.name, name, "all", "1", "v", frame.height, inputs)
        for name, inputs in (("short", {}), ("long", many))
    }
    for name, provenance in made.items():
        store.write(table, frame, provenance, (name,))
    assert all(len(store.path((name,), None).read_bytes()) > 1 << 16 for name in made)
    del requests[:]
    wanted = [((name,), None) for name in ("short", "long", "absent")]
    found = store.look(wanted)
    assert found == dict(zip(wanted, [made["short"], made["long"], "missing"], strict=True))
    assert requests == ["get_object"] * 4, "one each, and a second for the long one"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s3://", "names no bucket"),
        ("s3:///x", "names no bucket"),
        ("gs://bucket/x", "not gs://"),
        ("https://user:hidden@host/x", "not https://"),
        ("s3://b//c", "without empty parts"),
        ("s3://b/../c", "without empty parts"),
        ("s3://b/c?versionId=1", "without empty parts"),
        (f"s3://{KEY}:hidden@bucket/x", "credentials do not belong"),
    ],
)
def test_a_home_that_is_none_is_told(text, says):
    with told(says):
        storage_path(text)


def test_a_missing_s3fs_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules, "saber_dagster.buckets", raising=False)
    with told("needs s3fs", "saber-dagster[s3]"):
        storage_path("s3://bucket/home")
    monkeypatch.undo()
    importlib.reload(importlib.import_module("saber_dagster.buckets"))


def test_a_local_path_is_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert storage_path("a/../b") == tmp_path / "b"
    assert is_local(storage_path("b"))


def test_a_local_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(SaberError, match="folder cannot be read: Is a directory"):
        list(read_many([tmp_path / "missing", tmp_path / "folder"]))
