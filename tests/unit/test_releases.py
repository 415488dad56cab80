import json

import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.releases import (
    PINNED,
    SETTINGS_READ,
    Growth,
    Release,
    growth,
    list_releases,
    release_of,
)
from saber_dagster.schema import ContractError
from saber_dagster.settings_files import settings_from

SETTINGS = settings_from({}, "saber.yaml", {})


def frames(queries=("q1", "q2"), docs=("a", "b")):
    pinned = {name: TABLES[name].empty() for name in PINNED}
    pinned["query_set"] = pl.DataFrame(
        [(query, ["algebra"], "algebra", 0, ["algebra"]) for query in queries],
        schema=TABLES["query_set"].schema,
        orient="row",
    )
    pinned["candidate_sets"] = pl.DataFrame(
        [(query, doc, "both", 0.9, 0.5) for query in queries for doc in docs],
        schema=TABLES["candidate_sets"].schema,
        orient="row",
    )
    pinned["release_texts"] = pl.DataFrame(
        [(doc, "s", doc, "p", "q", True) for doc in sorted({*queries, *docs})],
        schema=TABLES["release_texts"].schema,
        orient="row",
    )
    return pinned


def pinned(folder, name, **options):
    release = Release(folder / name)
    release.pin(frames(**options), SETTINGS)
    return release


def test_a_release_keeps_tables_versions_and_settings(tmp_path):
    release = release_of(tmp_path, SETTINGS)
    assert (release.name, release.complete) == ("r1", False)
    given = frames()
    release.pin({name: frame.reverse() for name, frame in given.items()}, SETTINGS)
    assert release.complete
    for name in PINNED:
        assert release.read(name).equals(given[name])
    manifest = release.manifest()
    assert manifest["name"] == "r1"
    assert manifest["tables"]["candidate_sets"] == {
        "rows": 4,
        "data_version": TABLES["candidate_sets"].version(given["candidate_sets"]),
    }
    release.check_settings(SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["r1"], "nothing else is left"


def test_what_a_killed_build_left_is_no_release_and_no_hindrance(tmp_path):
    part = tmp_path / ".r1.part"
    part.mkdir()
    (part / "candidate_sets.parquet").write_bytes(b"half")
    (part / "leftover").write_bytes(b"")
    (part / "manifest.json").write_text("{}")
    assert not release_of(tmp_path, SETTINGS).complete
    assert list_releases(tmp_path) == []
    release = pinned(tmp_path, "r1")
    assert release.read("candidate_sets").height == 4
    assert not part.exists()
    assert sorted(path.name for path in release.folder.iterdir()) == sorted(
        [*(f"{name}.parquet" for name in PINNED), "manifest.json"]
    )


@pytest.mark.parametrize("name", PINNED)
def test_a_release_that_cannot_be_made_is_not_there(tmp_path, name):
    bad = {**frames(), name: pl.DataFrame({"x": [1]})}
    with pytest.raises(ContractError, match=rf"{name} \(release r1\): missing columns"):
        Release(tmp_path / "r1").pin(bad, SETTINGS)
    assert not (tmp_path / "r1").exists()
    assert list_releases(tmp_path) == []
    assert pinned(tmp_path, "r1").complete


def test_a_kill_before_the_rename_leaves_no_release(tmp_path, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.rename", kill)
        with pytest.raises(KeyboardInterrupt):
            pinned(tmp_path, "r1")
    assert not Release(tmp_path / "r1").complete
    assert list_releases(tmp_path) == []
    assert pinned(tmp_path, "r1").complete


def test_a_release_does_not_change(tmp_path):
    release = pinned(tmp_path, "r1")
    with pytest.raises(SaberError, match="is there already, and a release does not change"):
        release.pin(frames(queries=("q9",)), SETTINGS)
    assert release.read("query_set")["query_id"].to_list() == ["q1", "q2"]
    assert [path.name for path in tmp_path.iterdir()] == ["r1"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 8}, "seed 7 → 8"),
        ({"candidates": {"per_group": 9}}, "candidates.per_group 8 → 9"),
        ({"summaries": {"min_words": 5}}, "summaries.min_words 4 → 5"),
        ({"signals": {"epsilon": 1e-9}}, "signals.epsilon 1e-12 → 1e-09"),
        ({"thresholds": {"c_steps": [5]}}, r"thresholds.c_steps \[5.0, 6.0, 8.0\] → \[5.0\]"),
        ({"queries": {"per_domain": 6}}, "queries.per_domain 5 → 6"),
        ({"domains": ["algebra"]}, "domains "),
        ({"seed": 8, "domains": ["algebra"]}, "seed 7 → 8; domains"),
    ],
)
def test_changed_settings_are_named(tmp_path, changes, named):
    release = pinned(tmp_path, "r1")
    with pytest.raises(SaberError, match=rf"release r1 was made .*{named}.*saber release create"):
        release.check_settings(settings_from(changes, "saber.yaml", {}))


@pytest.mark.parametrize(
    "changes",
    [
        {"release": "r2"},
        {"tournament": {"rounds": 3}},
        {"summaries": {"max_words": 20}},
        {"partitions": {"corpus_shards": 5}},
        {"evaluation": {"cutoff": 5}},
        {"seed": 7, "queries": {"per_domain": 5}},
    ],
)
def test_settings_that_a_release_does_not_read_may_change(tmp_path, changes):
    pinned(tmp_path, "r1").check_settings(settings_from(changes, "saber.yaml", {}))


def test_the_settings_of_a_release_are_there():
    assert all(SETTINGS.value_of(path) is not None for path in SETTINGS_READ)


def test_releases_are_listed_by_name(tmp_path):
    assert list_releases(tmp_path / "none") == []
    for name in ("r2", "r1"):
        pinned(tmp_path, name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert [release.name for release in list_releases(tmp_path)] == ["r1", "r2"]


@pytest.mark.parametrize("damage", ["missing", "short"])
def test_a_damaged_release_is_named(tmp_path, damage):
    release = pinned(tmp_path, "r1")
    path = release.folder / "query_set.parquet"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
    named = (
        rf"r1/query_set.parquet is {'missing' if damage == 'missing' else 'damaged'}.*restore it"
    )
    with pytest.raises(SaberError, match=named):
        release.read("query_set")


def test_growth_counts_what_is_kept(tmp_path):
    before = pinned(tmp_path, "r1", queries=("q1", "q2", "q3"), docs=("a", "b"))
    after = pinned(tmp_path, "r2", queries=("q2", "q3", "q4", "q5"), docs=("b", "c", "d"))
    assert growth(before, after) == Growth("r1", "r2", 3, 4, 2, 6, 12, 2)
    assert growth(before, before) == Growth("r1", "r1", 3, 3, 3, 6, 6, 6)


def test_the_manifest_is_json_for_people(tmp_path):
    text = (pinned(tmp_path, "r1").folder / "manifest.json").read_text()
    assert json.loads(text)["settings"]["candidates.per_group"] == 8
    assert text.endswith("}\n")


@pytest.mark.parametrize("lost", ["q1", "a"])
def test_a_release_that_refers_to_a_document_without_a_text_is_not_made(tmp_path, lost):
    given = frames()
    given["release_texts"] = given["release_texts"].filter(pl.col("doc_id") != lost)
    with pytest.raises(SaberError, match=f"1 document.*such as {lost}.*release create"):
        Release(tmp_path / "r1").pin(given, SETTINGS)
    assert list(tmp_path.iterdir()) == []
