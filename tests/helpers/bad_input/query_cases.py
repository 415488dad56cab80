"""Queries that the user brings."""

import json

import pytest

from bad_input.bench import GOOD, Bench, Case, Said, jsonl
from saber_dagster.cli import build

TAKEN = "queries.jsonl:1: solution:"
"""Named by a warning, not by a fault."""
CORPUS = jsonl({"id": "math/1"}, {"id": "math/2", "problem": "q"})


def end(*_: object, **__: object) -> None:
    raise SystemExit(0)


def asked(name: str, content: str, at: str, corpus: str = CORPUS, more: str = "") -> Case:
    """``saber build`` of a corpus and a file of queries, up to where tables would be made."""

    def case(bench: Bench) -> Said:
        paths = [bench.write("corpus.jsonl", corpus)]
        if more:
            paths.append(bench.write("two.jsonl", more))
        queries = bench.write(name, content)
        options = [option for path in paths for option in ("--corpus", path)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "run_build", end)
            return bench.saber(
                "build", *options, "--queries", queries, at=(at,), writes=at == TAKEN
            )

    return case


def absent(bench: Bench) -> Said:
    corpus = bench.write("corpus.jsonl", CORPUS)
    gone = bench.folder / "gone.txt"
    return bench.saber("build", "--corpus", corpus, "--queries", gone, at=("gone.txt:",))


def everything(bench: Bench) -> Said:
    corpus = bench.write("corpus.jsonl", jsonl({"problem": ""}))
    queries = bench.write("queries.jsonl", json.dumps(GOOD) + "\n")
    topics = bench.write("topics.json", '[{"title": ""}]')
    places = ("corpus.jsonl:1: problem:", "queries.jsonl:1: id:", "topics.json: [0].title:")
    options = ("--corpus", corpus, "--queries", queries, "--ontology", topics)
    return bench.saber("build", *options, at=places)


QUERIES: dict[str, Case] = {
    "query-file-missing": absent,
    "query-empty-list": asked("queries.txt", "", "queries.txt:"),
    "query-unknown-id": asked("queries.txt", "math/1\nmath/3\n", "queries.txt:2: id:"),
    "query-twice": asked("queries.txt", "math/1\nmath/1\n", "queries.txt:2: id:"),
    "query-ambiguous-id": asked(
        "queries.txt",
        "x\n",
        "queries.txt:1: id:",
        corpus=jsonl({"id": "x", "source": "one"}),
        more=jsonl({"id": "x", "source": "two", "problem": "q"}),
    ),
    "query-no-id": asked("queries.jsonl", json.dumps(GOOD) + "\n", "queries.jsonl:1: id:"),
    "query-solution-alone": asked(
        "queries.jsonl", '{"id": "9", "solution": "s"}\n', "queries.jsonl:1: problem:"
    ),
    "query-id-of-another-text": asked(
        "queries.jsonl",
        jsonl({"id": "math/1", "source": "corpus", "problem": "other"}),
        "queries.jsonl:1: id:",
    ),
    "query-without-solution": asked(
        "queries.jsonl", jsonl({"problem": "p", "solution": ""}), TAKEN
    ),
    "query-and-corpus": everything,
}
