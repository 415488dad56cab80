"""Parts of the benchmark of the signals, each run in a process of its own.

``python -m benchmarks.signal_parts PART CORPUS.npz OPTIONS`` prints a JSON object of figures, in
CPU-seconds of all threads and MB.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hit_densities import EPSILON, SUMMARY_FLOOR, TOPIC_FLOOR
from benchmarks.signal_loops import incidence_of, scipy_summary, summary_loop, topic_loop
from benchmarks.synthetic_corpus import VOCABULARY, SyntheticCorpus, make_corpus
from saber_dagster.ontology import OntologyTree
from saber_dagster.signals.storage import SignalRows, encode
from saber_dagster.similarity import twins
from saber_dagster.similarity.pair_union import unite
from saber_dagster.similarity.summary_join import SummaryJoin
from saber_dagster.similarity.topic import TopicSets, ancestor_table
from saber_dagster.similarity.topic_join import TopicJoin
from saber_dagster.similarity.word_sets import WordSets

BINS = 256
PAIRS_PER_LOOP = 20_000_000
"""Pairs that the plain loops are timed on; SciPy gets ten times as many."""

seconds: dict[str, float] = {}


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the CPU-seconds of a block, of all threads, to a figure."""
    start = time.process_time()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.process_time() - start


def peak_mb() -> float:
    """The largest memory that this process has had."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def save(corpus: SyntheticCorpus, path: Path) -> None:
    """Write what the parts need, so that making the corpus does not count as theirs."""
    tree = corpus.tree
    np.savez(
        path, topic_ends=corpus.topic_ends, topics=corpus.topics, word_ends=corpus.word_ends,
        words=corpus.words, clusters=corpus.clusters, content=corpus.content,
        parent=tree.parent, depth=tree.depth, ancestors=ancestor_table(tree),
    )  # fmt: skip


def vocabulary(data: dict[str, Any]) -> int:
    """How many words there are, at least those of a synthetic corpus."""
    return max(VOCABULARY, int(data["words"].max(initial=-1)) + 1)


@dataclass(frozen=True)
class Problems:
    """The corpus as the kernels take it, and both joins.

    ``n`` problems; all are queries, in ``shards`` by their position.
    """

    arrays: dict[str, Any]
    topics: list[tuple[int, ...]]
    sets: TopicSets
    words: WordSets
    topic_join: TopicJoin
    summary_join: SummaryJoin

    @classmethod
    def load(cls, path: str, topic_floor: float, summary_floor: float) -> "Problems":
        """Read the corpus and prepare the joins."""
        with np.load(path) as stored:
            data = {name: stored[name] for name in stored.files}
        with timed("prepare"):
            flat, ends = data["topics"].tolist(), data["topic_ends"].tolist()
            topics = [tuple(flat[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]  # noqa: RUF007
            sets = TopicSets.of(topics)
            words = WordSets(data["word_ends"].astype(np.int64), data["words"], vocabulary(data))
            topic = TopicJoin(sets, data["ancestors"], data["content"], EPSILON, topic_floor)
            summary = SummaryJoin(words, summary_floor)
        return cls(data, topics, sets, words, topic, summary)

    @property
    def n(self) -> int:
        """Number of problems."""
        return len(self.topics)

    def shard(self, number: int, shards: int) -> np.ndarray[Any, Any]:
        """Positions of the queries of a shard."""
        return np.arange(number, self.n, shards)

    def query_sets(self, queries: np.ndarray[Any, Any]) -> TopicSets:
        """The distinct topic sets of some queries."""
        return TopicSets.of([self.topics[i] for i in queries])


def join(problems: Problems, queries: np.ndarray[Any, Any]) -> SignalRows:
    """Both signals of some queries with all documents, above the floors."""
    with timed("prepare"):
        sets, words = problems.query_sets(queries), problems.words.take(queries)
    with timed("topic"):
        topic = problems.topic_join.rows(sets)
    with timed("summary"):
        summary = problems.summary_join.rows(words)
    clusters = problems.arrays["clusters"]
    with timed("union"):
        pairs = unite(
            topic, sets.set_of, problems.sets.set_of, summary, clusters[queries], clusters
        )
    with timed("other signal"):
        counts = problems.summary_join.overlaps(words, pairs)
        problems.topic_join.complete(sets, problems.sets.set_of, pairs)
    positions = queries.astype(np.int32)
    return SignalRows(
        positions, pairs.indptr, pairs.columns, pairs.values, counts.astype(np.uint16)
    )


def rows(path: str, topic_floor: str, summary_floor: str, shards: str) -> dict[str, float]:
    """Rows above the floors, shard by shard, stored as Parquet."""
    problems = Problems.load(path, float(topic_floor), float(summary_floor))
    loaded = peak_mb()
    n_pairs = n_bytes = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(shards)):
            found = join(problems, problems.shard(number, int(shards)))
            file = Path(folder) / "shard.parquet"
            with timed("store"):
                encode(found).write_parquet(file, compression_level=1, statistics=False)
            n_bytes += file.stat().st_size
            n_pairs += len(found)
    return seconds | {
        "pairs": n_pairs, "bytes": n_bytes, "peak": peak_mb(), "loaded": loaded
    }  # fmt: skip


def histograms(path: str, shards: str) -> dict[str, float]:
    """Full histograms of all pairs, shard by shard."""
    problems = Problems.load(path, TOPIC_FLOOR, SUMMARY_FLOOR)
    weights = np.bincount(problems.sets.set_of, minlength=problems.sets.sizes.size)
    total = np.zeros((2, BINS), dtype=np.int64)
    for number in range(int(shards)):
        queries = problems.shard(number, int(shards))
        sets, words = problems.query_sets(queries), problems.words.take(queries)
        with timed("topic"):
            times = np.bincount(sets.set_of, minlength=sets.sizes.size)
            total[0] += times @ problems.topic_join.histogram(sets, weights, BINS)
        with timed("summary"):
            total[1] += problems.summary_join.histogram(words, BINS).sum(axis=0)
    if not (total.sum(axis=1) == problems.n**2).all():
        raise SystemExit(f"histograms count {total.sum(axis=1)} pairs of {problems.n**2}")
    return seconds | {"peak": peak_mb()}


def compile_all(path: str) -> dict[str, float]:
    """Compile every kernel, on a corpus so small that nothing else takes time."""
    start = time.process_time()
    rows(path, "0.5", "0.1", "2")
    histograms(path, "2")
    return {"seconds": time.process_time() - start}


def baselines(path: str) -> dict[str, float]:
    """Pairs per CPU-second of the plain loops and of SciPy, and mismatches of the kernels."""
    problems = Problems.load(path, TOPIC_FLOOR, SUMMARY_FLOOR)
    data, n = problems.arrays, problems.n
    rng = np.random.default_rng(1)

    def sample(pairs: int) -> np.ndarray[Any, Any]:
        return np.sort(rng.choice(n, max(1, min(n // 2, pairs // n)), replace=False))

    def topic(queries: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        topic_loop(
            queries, data["topic_ends"], data["topics"], data["parent"], data["depth"],
            data["content"], EPSILON, out,
        )  # fmt: skip

    def summary(queries: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        summary_loop(queries, data["word_ends"], data["words"], out)

    queries = sample(PAIRS_PER_LOOP)
    loops: dict[str, Callable[..., None]] = {"topic": topic, "summary": summary}
    values = {}
    rates = {}
    for name, loop in loops.items():
        loop(queries[:1], np.zeros((1, n)))
        values[name] = np.zeros((queries.size, n))
        with timed(name):
            loop(queries, values[name])
        rates[name] = queries.size * n / seconds[name]
    incidence = incidence_of(data["word_ends"], data["words"], vocabulary(data))
    transposed, sizes = incidence.T.tocsr(), np.diff(data["word_ends"])
    many = sample(10 * PAIRS_PER_LOOP)
    with timed("scipy"):
        for start in range(0, many.size, 100):
            found = scipy_summary(incidence, transposed, sizes, many[start : start + 100])
            np.flatnonzero(found.data >= SUMMARY_FLOOR)
    rates["scipy"] = many.size * n / seconds["scipy"]
    return rates | mismatches(problems, queries, values)


def mismatches(
    problems: Problems, queries: np.ndarray[Any, Any], values: dict[str, np.ndarray[Any, Any]]
) -> dict[str, float]:
    """How many pairs of the queries the kernels and the loops, or the twins, say something else of."""
    found = join(problems, queries)
    sizes, clusters = np.diff(problems.arrays["word_ends"]), problems.arrays["clusters"]
    high = (values["topic"] >= TOPIC_FLOOR) | (values["summary"] >= SUMMARY_FLOOR)
    high &= clusters[queries][:, None] != clusters
    row = np.repeat(np.arange(queries.size), np.diff(found.indptr))
    mine = np.zeros_like(high)
    mine[row, found.documents] = True
    wrong = np.count_nonzero(mine != high)
    wrong += np.count_nonzero(found.topic() != values["topic"][row, found.documents])
    wrong += np.count_nonzero(found.summary(sizes) != values["summary"][row, found.documents])
    return {"mismatches": wrong, "compared": high.size, "twins": twin_mismatches(problems, found)}


def twin_mismatches(problems: Problems, found: SignalRows, most: int = 5_000) -> int:
    """Of so many found pairs, those that the plain Python twins give other signals."""
    data = problems.arrays
    tree = OntologyTree([], {}, data["parent"], data["depth"], [], (), [], [], [])
    some = np.random.default_rng(2).choice(len(found), min(most, len(found)), replace=False)
    query_of, topic = found.query_of(), found.topic()
    summary = found.summary(np.diff(data["word_ends"]))
    content, ends, words = data["content"].tolist(), data["word_ends"], data["words"]
    wrong = 0
    for pair in some.tolist():
        x, y = int(query_of[pair]), int(found.documents[pair])
        sets = [words[ends[i] : ends[i + 1]].tolist() for i in (x, y)]
        signals = (
            twins.best_match_average(
                problems.topics[x], problems.topics[y], tree, content, EPSILON
            ),
            twins.jaccard(*sets),
        )
        wrong += signals != (topic[pair], summary[pair])
    return wrong


def corpus(path: str, n: str, density: str) -> dict[str, float]:
    """Make a corpus and write it."""
    start = time.process_time()
    save(make_corpus(int(n), density), Path(path))
    return {"seconds": time.process_time() - start}


if __name__ == "__main__":
    parts: dict[str, Callable[..., dict[str, float]]] = {
        part.__name__: part for part in (corpus, compile_all, rows, histograms, baselines)
    }
    print(json.dumps(parts[sys.argv[1]](*sys.argv[2:]), default=float))
