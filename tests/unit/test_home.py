import json
import subprocess
import sys

import pytest

from saber_dagster.errors import SaberError
from saber_dagster.home import Home, home_path
from saber_dagster.instance import INSTANCE_YAML, instance_of
from saber_dagster.settings_files import SettingsError
from saber_dagster.storage import storage_path, write_atomic


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_the_home_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SABER_HOME", raising=False)
    assert home_path() == tmp_path / ".saber"
    monkeypatch.setenv("SABER_HOME", "")
    assert home_path() == tmp_path / ".saber"
    monkeypatch.setenv("SABER_HOME", "a/../b")
    assert home_path() == tmp_path / "b"


def test_reading_a_home_changes_nothing_on_disk(home):
    assert home.settings.preset == "demo"
    assert [judge.slug for judge in home.judges] == ["embedded"]
    assert home.retrievers
    assert not home.root.exists()


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "deep" / "down" / "file"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert files(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_write_that_is_interrupted_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, step
):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == ["file"]


def test_a_reader_never_sees_half_a_file_even_after_a_kill(tmp_path):
    path = tmp_path / "file"
    script = (
        "import os, sys; from pathlib import Path; from saber_dagster.storage import write_atomic\n"
        "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
        "write_atomic(Path(sys.argv[1]), b'new' * 100_000)"
    )
    write_atomic(path, b"old")
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert done.returncode == -9
    assert path.read_bytes() == b"old"
    assert [p.suffix for p in tmp_path.iterdir() if p != path] == [".part"], "no table, no segment"


def test_a_home_remembers_how_its_tables_are_cut(home):
    home.found()
    home.found()
    assert json.loads((home.root / "home.json").read_text())["corpus_shards"] == 2
    changed = home.change_settings(
        {"preset": "paper", "partitions": {"corpus_shards": 3}, "domains": ["algebra"]}
    )
    with pytest.raises(SaberError) as caught:
        changed.found()
    message = str(caught.value)
    assert str(home.root) in message
    assert "preset 'demo' → 'paper'" in message
    assert "corpus_shards 2 → 3" in message
    assert "query_shards 1 → 8" in message
    assert "domains ['algebra', 'geometry'" in message
    assert "Restore the value in saber.yaml, or set SABER_HOME" in message
    home.change_settings(
        {"preset": "demo", "partitions": {}, "domains": list(home.settings.domains)}
    )
    Home(home.root).found()


def test_other_settings_may_change(home):
    home.found()
    home.change_settings({"seed": 8, "topics": {"threshold": 0.5}}).found()


def test_changed_settings_are_checked_before_anything_is_written(home):
    home.change_settings({"seed": 8})
    before = home.settings_file.read_bytes()
    with pytest.raises(SettingsError, match=r"home/saber.yaml: .*unknown key 'quries'"):
        home.change_settings({"quries": {}})
    with pytest.raises(SettingsError, match="release"):
        home.change_settings({"release": "No Slug"})
    assert home.settings_file.read_bytes() == before
    assert files(home.root) == ["saber.yaml"]


def test_changed_settings_keep_the_other_keys(home):
    write_atomic(home.settings_file, b"# ours\ndomains: [algebra]\nqueries: {per_domain: 3}\n")
    changed = home.change_settings({"release": "r2"})
    assert changed.settings.release == "r2"
    assert changed.settings.domains == ("algebra",)
    assert changed.settings.queries.per_domain == 3
    assert home.settings_file.read_text().splitlines()[-1] == "release: r2"


def test_changed_settings_keep_comments_and_formatting(home):
    text = """\
# ours
preset: demo  # small

# the corpus
corpus:
    files:
    -   path: /one.jsonl
        licence: 'CC0'  # asked them
ratings: {prior_precision: null}
"""
    write_atomic(home.settings_file, text.encode())
    entry = {"path": "/one.jsonl", "licence": "CC0"}
    home.change_settings({"corpus": {"files": [entry, {"path": "/two.jsonl"}]}, "seed": 8})
    second = "    -   path: /two.jsonl\nratings"
    assert home.settings_file.read_text() == text.replace("ratings", second) + "seed: 8\n"
    changed = Home(home.root).settings
    assert [source.path for source in changed.corpus.files] == ["/one.jsonl", "/two.jsonl"]
    assert changed.seed == 8
    home.change_settings({"corpus": {"files": [entry]}})
    assert [source.path for source in Home(home.root).settings.corpus.files] == ["/one.jsonl"]


@pytest.mark.parametrize(
    "text",
    [
        "corpus:\n  files:\n    - path: a\n      source: b\n",
        "corpus:\n  files:\n  - path: a\n    source: b\n",
        "queries:\n    per_domain: 3\n",
        "domains:  # one\n- algebra\n",
    ],
)
def test_the_indentation_stays(home, text):
    write_atomic(home.settings_file, text.encode())
    home.change_settings({"seed": 8})
    assert home.settings_file.read_text() == f"{text}seed: 8\n"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "# no line break"])
def test_comments_alone_are_kept_too(home, text):
    write_atomic(home.settings_file, text.encode())
    home.change_settings({"seed": 8})
    assert home.settings_file.read_text() == f"{text.strip()}\nseed: 8\n".lstrip()


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b""])
def test_a_damaged_record_is_told(home, data):
    write_atomic(home.root / "home.json", data)
    with pytest.raises(SaberError, match=r"home\.json is damaged"):
        home.found()
    assert (home.root / "home.json").read_bytes() == data


def test_a_home_is_held_by_one_build(home):
    script = (
        "import sys; from pathlib import Path; from saber_dagster.home import Home\n"
        "with Home(Path(sys.argv[1])).locked(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(home.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(SaberError, match="another `saber build` is at work"), home.locked():
            pass
        other.kill()
        other.wait()
    # A killed build holds nothing, and two builds of one process exclude each other too.
    with home.locked(), pytest.raises(SaberError, match="at work"), home.locked():
        pass
    with home.locked():
        pass


@pytest.fixture
def bucket_home(tmp_path, monkeypatch):
    """Makes homes in buckets that nobody asks; what is local lies below the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("SABER_STATE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    return lambda where: Home(storage_path(where))


def test_a_local_home_keeps_everything_in_its_root(home, monkeypatch):
    monkeypatch.setenv("SABER_STATE", "/elsewhere")
    assert (home.state, home.journals) == (home.root, home.ledger)
    assert home.dagster == home.root / "dagster"
    home.claim_state()
    assert not home.root.exists()


def test_a_home_in_a_bucket_has_a_local_folder_of_its_own(bucket_home, tmp_path, monkeypatch):
    home = bucket_home("s3://bucket/my/home/")
    assert str(home.root) == "s3://bucket/my/home"
    assert str(home.tables) == "s3://bucket/my/home/tables"
    assert home.state.parent == tmp_path / ".saber-state"
    assert home.state.name.startswith("bucket-my-home-")
    assert home.dagster == home.state / "dagster"
    assert home.journals == home.state / "journals"
    assert bucket_home("s3://bucket/my/home").state == home.state
    here = home.state
    assert bucket_home("s3://bucket/my-home").state != here
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    assert home.state != here
    monkeypatch.setenv("SABER_STATE", "mine")
    assert home.state == tmp_path / "mine"
    assert not list(tmp_path.iterdir())


def test_one_local_folder_serves_one_home(bucket_home, tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_STATE", str(tmp_path / "state"))
    one, other = bucket_home("s3://bucket/one"), bucket_home("s3://bucket/other")
    with one.locked(), pytest.raises(SaberError, match="at work in s3://bucket/one"), one.locked():
        pass
    for use in (other.claim_state, lambda: instance_of(other), lambda: other.locked().__enter__()):
        with pytest.raises(SaberError, match=r"local folder of s3://bucket/one; set SABER_STATE"):
            use()
    one.claim_state()


def test_a_configuration_of_dagster_that_is_there_is_kept(bucket_home, monkeypatch, tmp_path):
    monkeypatch.setenv("SABER_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))  # put back afterwards
    home = bucket_home("s3://bucket/one")
    config = home.dagster / "dagster.yaml"
    own = b"concurrency: {runs: {max_concurrent_runs: 17}}\ntelemetry: {enabled: false}\n"
    write_atomic(config, own)
    with instance_of(home) as instance:
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 17
    assert config.read_bytes() == own
    config.unlink()
    with instance_of(home):
        assert config.read_text() == INSTANCE_YAML
