"""docs/invalidation.md says which code versions a change moves; the graph says whether that is so."""

import re
from pathlib import Path

import pytest
import yaml

from resources.engines.embedded import EmbeddedEngine
from saber_dagster.definitions import load
from saber_dagster.engines import PAIRWISE_JUDGMENT, SOLUTION_SUMMARY, TOPIC_SCORES, PromptRef
from saber_dagster.home import Home
from saber_dagster.materialize import graph_of
from saber_dagster.releases import SETTINGS_READ
from saber_dagster.settings import Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "invalidation.md"
MODEL = {"engine": "openai", "options": {"model": "some-model", "revision": "1"}}
CHANGES = {
    "seed": 8,
    "ledger.mode": "replay",
    "ledger.budget_usd": 1.5,
    "ledger.budget_calls": 10,
    "ledger.reasks": 0,
    "rejudging.cron": "0 3 * * *",
    "rejudging.partitions_per_tick": 3,
    "pictures": False,
    "histogram_bins": 256,
    "release": "r2",
    "domains": ["algebra", "geometry"],
    "partitions.corpus_shards": 3,
    "partitions.query_shards": 2,
    "corpus.files": [{"path": "problems.jsonl"}],
    "corpus.builtin": ["champ"],
    "corpus.queries": {"path": "queries.jsonl"},
    "ontology.file": "topics.json",
    "ontology.nodes": "nodes.jsonl",
    "ontology.format": "json",
    "ontology.root_domains": {"Algebra": "algebra"},
    "ontology.max_depth": 3,
    "topics.threshold": 0.5,
    "summaries.max_words": 20,
    "summaries.min_words": 3,
    "signals.epsilon": 1e-9,
    "signals.topic_floor": 0.2,
    "signals.summary_floor": 0.01,
    "signals.keep": "top_m",
    "thresholds.rule": "percentile",
    "thresholds.queries_required": 3,
    "thresholds.c": 3.0,
    "thresholds.c_steps": [6.0],
    "thresholds.topic_floor": 0.4,
    "thresholds.summary_floor": 0.1,
    "thresholds.topic": 0.8,
    "thresholds.summary": 0.2,
    "candidates.per_group": 7,
    "queries.per_domain": 4,
    "queries.require_all_domains": True,
    "tournament.rounds": 5,
    "tournament.both_orders": True,
    "ratings.prior_precision": 1.0,
    "evaluation.cutoff": 5,
    "evaluation.settings": ["full-full"],
    "evaluation.statistics": "candidates",
    "evaluation.bootstrap_samples": 100,
    "annotator.engine": MODEL["engine"],
    "annotator.options": MODEL["options"],
}
"""Every setting with another value. The preset is left out: it is the values that differ."""
FIXED = {"rule": "fixed", "topic": 0.858, "summary": 0.211}
REFUSED_BY_HOME = {"domains", "partitions.corpus_shards", "partitions.query_shards", "preset"}

pytestmark = pytest.mark.definitions


def table(heading: str) -> dict[str, tuple[set[str], str]]:
    """Rows of a table of the document: each name → (tables, what becomes of a release)."""
    text = (
        DOCUMENT.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    )
    rows = {}
    for line in text.splitlines():
        if line.startswith("| ") and "Code version" not in line:
            names, tables, _, release = (cell.strip() for cell in line.strip("|").split("|"))
            for name in re.findall(r"`([^`]+)`", names) if heading == "Settings" else [names]:
                rows[name] = (set(re.findall(r"`([^`]+)`", tables)), release)
    return rows


def versions(home: Path, values=None, **registries) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    for name, content in ({"saber": values} | registries).items():
        if content is not None:
            (home / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return {node.name: node.code_version for node in graph_of(load(Home(home))).values()}


def nested(path: str, value):
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def moved(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Tables whose code version differs, lanes by ``*``; new tables are not counted."""
    names = {name for name in before if name in after and before[name] != after[name]}
    return {re.sub(r"^(judge|retriever)/[^/]+/", r"\1/*/", name) for name in names}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    return versions(tmp_path_factory.mktemp("home"))


def test_every_setting_is_in_the_document():
    def leaves(value, path):
        section = Settings
        for part in path:
            section = section.model_fields[part].annotation
        for name, field in section.model_fields.items():
            if hasattr(field.annotation, "model_fields"):
                yield from leaves(value, (*path, name))
            else:
                yield ".".join((*path, name))

    settings = set(leaves(None, ()))
    assert set(table("Settings")) == settings
    assert set(CHANGES) == settings - {"preset"}


@pytest.mark.parametrize("setting", CHANGES)
def test_a_setting_moves_the_code_versions_that_the_document_names(setting, unchanged, tmp_path):
    value = CHANGES[setting]
    values = {"annotator": MODEL} if setting.startswith("annotator") else nested(setting, value)
    tables, release = table("Settings")[setting]
    before = unchanged
    if setting in ("thresholds.topic", "thresholds.summary"):  # both, and only where they are fixed
        before = versions(tmp_path / "fixed", {"thresholds": FIXED})
        values = {"thresholds": FIXED | values["thresholds"]}
    assert moved(before, versions(tmp_path / "changed", values)) == tables

    pinned = any(setting == path or setting.startswith(f"{path}.") for path in SETTINGS_READ)
    if setting in REFUSED_BY_HOME:
        assert release == "home"
    elif setting != "release":
        assert release == ("new" if pinned else "same")


def test_other_changes_move_the_code_versions_that_the_document_names(tmp_path, monkeypatch):
    rows = {name: tables for name, (tables, _) in table("Other changes").items()}
    seen = {}

    def compare(change, before, after):
        (name,) = [name for name in rows if name.startswith(change)]
        seen[name] = moved(before, after)
        assert seen[name] == rows[name], name

    corpus, ontology = tmp_path / "problems.jsonl", tmp_path / "topics.json"
    corpus.write_text("{}\n")
    ontology.write_text("{}")
    files = {"corpus": {"files": [{"path": str(corpus)}]}, "ontology": {"file": str(ontology)}}
    before = versions(tmp_path / "files", files)
    corpus.write_text("{} \n")
    compare("the file of a corpus", before, versions(tmp_path / "files"))
    before = versions(tmp_path / "files")
    ontology.write_text("{} ")
    compare("the file of an ontology", before, versions(tmp_path / "files"))

    judges = [{"slug": "embedded"}, {"slug": "model", **MODEL}]
    before = versions(tmp_path / "judges", judges={"judges": judges})
    judges[1] = {"slug": "model", "engine": "openai", "options": {"model": "m", "revision": "2"}}
    compare("a judge's", before, versions(tmp_path / "judges", judges={"judges": judges}))
    before = versions(tmp_path / "judges")
    judges.append({"slug": "third", "engine": "embedded"})
    compare("a judge added", before, versions(tmp_path / "judges", judges={"judges": judges}))

    retrievers = [{"slug": "mine", "retriever": "bm25"}]
    before = versions(tmp_path / "runs", retrievers={"retrievers": retrievers})
    retrievers[0]["options"] = {"b": 0.0}
    compare(
        "a retriever's", before, versions(tmp_path / "runs", retrievers={"retrievers": retrievers})
    )
    before = versions(tmp_path / "runs")
    retrievers.append({"slug": "other", "retriever": "jaccard"})
    compare(
        "a retriever added",
        before,
        versions(tmp_path / "runs", retrievers={"retrievers": retrievers}),
    )

    before = versions(tmp_path / "prompts")
    own = EmbeddedEngine.prompt
    for words, task in (
        ("topics", TOPIC_SCORES),
        ("summaries", SOLUTION_SUMMARY),
        ("judgments", PAIRWISE_JUDGMENT),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(
                EmbeddedEngine,
                "prompt",
                lambda self, asked, task=task: (
                    PromptRef("new", "0" * 64) if asked == task else own(self, asked)
                ),
            )
            compare(f"the prompt for {words}", before, versions(tmp_path / "prompts"))

    assert set(rows) - set(seen) == {"a new release (`saber release create NAME`)"}
