"""Corpora that are too small; each is really built until it stops."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homes import TinyHome, write_problems

from bad_input.bench import GOOD, Bench, Case, Said, jsonl, run

ODD = {
    "no-words": {"problem": "?!", "solution": "!"},
    "only-latex": {"problem": r"$$\frac{}{} \left( \right)$$", "solution": r"$$\{ \}$$"},
    "only-stop-words": {"problem": "the of and", "solution": "it is so"},
}
"""Problems in which there is nothing to find, by id."""


@dataclass(frozen=True)
class SmallBuild:
    """A build that stopped at the thresholds: what it said, and the index by the user's ids."""

    said: Said
    index: dict[str, dict[str, Any]]
    odd = ODD


def small_build(folder: Path) -> SmallBuild:
    """Build 24 problems, none of calculus, and the odd ones, where calculus is wanted."""
    corpus = write_problems(folder / "tiny.jsonl", 0, 24)
    with corpus.open("a") as file:
        file.writelines(json.dumps({"id": name, **texts}) + "\n" for name, texts in ODD.items())
    home = TinyHome.make(
        folder / "home",
        corpus,
        domains=["combinatorics", "calculus_analysis"],
        candidates={"per_group": 8},
        thresholds={"queries_required": 4},
    )
    said = _stopped(home)
    sources = home.table("raw_sources").select("doc_id", "source_id")
    index = home.table("problem_index").join(sources, on="doc_id")
    return SmallBuild(said, {row["source_id"]: row for row in index.to_dicts()})


def _stopped(home: TinyHome) -> Said:
    """``saber build``, which writes tables before it stops."""
    code, text = run(["build"], {"SABER_HOME": str(home.root)})
    return Said(code, text, writes=True)


def one_document(bench: Bench) -> Said:
    corpus = bench.write("tiny.jsonl", jsonl(GOOD))
    return _stopped(TinyHome.make(bench.folder / "home", corpus))


def small(bench: Bench) -> Said:
    return bench.small_build().said


SIZES: dict[str, Case] = {
    "size-one-document": one_document,
    "size-too-small": small,
    "size-one-domain": small,
}
