"""Can a model that is too small to reason judge short texts, if it is asked for log-probabilities?

``SABER_TEST_GGUF=model.gguf python -m benchmarks.short_triples``: starts llama.cpp's server from the
PyPI package xllamacpp and lets the model compare, for each of 20 short queries
(``benchmarks/short_triples.json``), a document that is solved by the same technique with one that is
not; in 8 of them the latter has the topic and the words of the query. It is asked as a judge of a
tournament is, by ``choice_logprobs`` and by ``relevance_logprobs``. Takes about 8 minutes on 2 idle cores
with a model of 1.5 billion parameters.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from benchmarks.demo_llm import CONTEXT, PAGE, model_file, server
from benchmarks.results_file import Row, fill, write
from resources.engines.openai import OpenAIEngine
from saber_dagster.judging import Guess, Parse, Text, make_judge
from saber_dagster.ledger import Ledger
from saber_dagster.tournament import Game, GameResult

TRIPLES = Path(__file__).with_suffix(".json")
KINDS = ("plain", "look-alike")


def read() -> tuple[list[Game], dict[str, Text], list[str]]:
    """The games, the texts by id, and the kind of each game. The match is ``doc_a``."""
    games, texts, kinds = [], {}, []
    for number, row in enumerate(json.loads(TRIPLES.read_text(encoding="utf-8"))):
        ids = {name: f"{number:02}-{name}" for name in ("query", "match", "other")}
        texts |= {ids[name]: (row[name]["problem"], row[name]["solution"]) for name in ids}
        games.append(Game(ids["query"], 1, ids["match"], ids["other"], ids["match"]))
        kinds.append(row["kind"])
    return games, texts, kinds


def judge(engine: OpenAIEngine, ask_mode: str, ledger: Ledger) -> Sequence[GameResult]:
    """The results of all games, asked in one way."""
    games, texts, _ = read()
    with ledger.session(engine, "short_triples", ask_mode) as session:

        def ask(calls: Sequence[Any], parse: Parse, guess: Guess) -> Any:
            return session.ask(calls, parse)

        return make_judge(ask_mode, ask, texts)(games)


def right(name: str, verdicts: Sequence[bool], bar: float | None = None) -> Row:
    """The share of verdicts for the match, with Clopper and Pearson's interval."""
    found = binomtest(sum(verdicts), len(verdicts)).proportion_ci(0.95, "exact")
    label = f"{name}: {sum(verdicts)} of {len(verdicts)} for the match"
    return Row.at_least(
        label, sum(verdicts) / len(verdicts), "share", bar, interval=(found.low, found.high)
    )


def figures(results: dict[str, Sequence[GameResult]], seconds: float) -> list[Row]:
    """All figures; the bar is what fewer than 1 in 40 coins reach: 15 of 20."""
    kinds = read()[2]
    choices = [result for result in results["choice_logprobs"] if result.preference is not None]
    preferred = {
        way: [result.preference is not None and result.preference > 0.5 for result in found]
        for way, found in results.items()
    }
    single = [
        preference > 0.5
        for result in choices
        for preference in (result.as_shown, result.swapped)
        if preference is not None
    ]
    rows = [
        right("one order alone", single),
        right("choice_logprobs, both orders", preferred["choice_logprobs"], bar=0.75),
    ]
    for kind in KINDS:
        some = [v for v, k in zip(preferred["choice_logprobs"], kinds, strict=True) if k == kind]
        rows.append(right(f"choice_logprobs, {kind}", some))
    rows.append(right("relevance_logprobs", preferred["relevance_logprobs"]))
    return [*rows, Row("seconds of this run", seconds, "s")]


def main() -> None:
    """Judge, print, record."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        model = model_file(Path(folder))
        with server(model) as url:
            engine = OpenAIEngine(
                model.stem, "1", base_url=url, provider="llama.cpp", context_tokens=CONTEXT,
                concurrency=1,
            )  # fmt: skip
            ledger = Ledger(Path(folder) / "ledger")
            ways = ("choice_logprobs", "relevance_logprobs")
            results = {way: judge(engine, way, ledger) for way in ways}
    rows = figures(results, time.perf_counter() - start)
    write("short_triples", rows)
    lines = [
        f"| {row.name} | {row.value:.2f} [{row.low:.2f}, {row.high:.2f}] |"
        for row in rows
        if row.low is not None and row.high is not None
    ]
    heading = ["| asked by | share for the match, 95 % interval |", "| --- | ---: |"]
    fill(PAGE, {"short-triples": [*heading, *lines]})
    if any(row.holds is False for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
