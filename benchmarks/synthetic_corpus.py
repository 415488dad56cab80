"""A synthetic corpus with the shape of a real one: an ontology, topic sets, word sets, clusters.

Problems come in blocks, each with random numbers of its own: a smaller corpus is the beginning of a
larger one with the same seed. How many pairs are similar: ``benchmarks/hit_densities.py``.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.hashing import digest
from saber_dagster.ontology import OntologyTree
from saber_dagster.problem_index import shard_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DOMAINS = ("algebra", "calculus_analysis", "combinatorics", "geometry", "number_theory")
LEVELS = (8, 90, 700, 3_200, 6_200, 6_800)
"""Topics at each depth. Roots beyond the domains are calculus_analysis again, or of no domain."""
VOCABULARY = 20_000
_BLOCK = 16_384
_COMPANIONS = 12
_OWN_WORDS = 40
_TECHNIQUES = 300
_WORD_DRAWS = 40
_CLUSTERED, _NO_TOPICS, _NO_WORDS = 0.02, 0.03, 0.03


@dataclass(frozen=True)
class Shape:
    """What decides how many pairs are similar.

    Args:
        sizes: weights of 1, 2, … topics per problem.
        topic_offset: of the Zipf-Mandelbrot law of main topics; larger is flatter.
        usual: share of problems that have the usual topic set of their main topic.
        topic_words: share of the words that come from the word list of one of the topics.
        technique_words: share of the words that come from the word list of a technique.
        standard: share of problems most of whose words are those of the main topic.
    """

    sizes: tuple[float, ...]
    topic_offset: float
    usual: float
    topic_words: float
    technique_words: float
    standard: float


SHAPES = {
    "low": Shape((0.18, 0.24, 0.22, 0.15, 0.1, 0.06, 0.03, 0.02), 27.0, 0.1, 0.2, 0.52, 0.25),
    "high": Shape((0.45, 0.28, 0.15, 0.07, 0.03, 0.01, 0.006, 0.004), 4.0, 0.52, 0.2, 0.77, 0.1),
}
"""``low``: about 1.4e-4 of the pairs are hits of each signal at the paper's thresholds. ``high``:
2e-3, as on real problems with a simple tagger; two thirds of the topic hits have equal sets."""


@dataclass(frozen=True, eq=False)
class SyntheticCorpus:
    """Problems as compressed rows; every problem may be a document.

    Args:
        tree: the ontology; its nodes are in depth-first order.
        topic_ends: (n + 1,) problem i has ``topics[topic_ends[i]:topic_ends[i + 1]]``.
        topics: node positions, ascending in each problem.
        word_ends: (n + 1,) the same for ``words``.
        words: positions in the vocabulary, ascending in each problem; frequent words have low ones.
        clusters: (n,) the position of the first problem of the near-duplicate cluster.
    """

    tree: OntologyTree
    topic_ends: Ints
    topics: npt.NDArray[np.int32]
    word_ends: Ints
    words: npt.NDArray[np.int32]
    clusters: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return self.clusters.size

    def topic_lists(self) -> list[list[int]]:
        """The topics of each problem, as TopicSets.of takes them."""
        return _lists(self.topic_ends, self.topics)

    def word_lists(self) -> list[list[int]]:
        """The words of each problem."""
        return _lists(self.word_ends, self.words)

    @cached_property
    def content(self) -> Floats:
        """(n_nodes,) information content of the topics, as signals.information_content has it."""
        counts = np.bincount(self.topics, minlength=self.tree.parent.size)
        for level in range(len(LEVELS) - 1, 0, -1):
            nodes = np.flatnonzero(self.tree.depth == level)
            np.add.at(counts, self.tree.parent[nodes], counts[nodes])
        total = max(self.topics.size, 1)
        return np.array([-math.log(max(int(count), 1) / total) + 0.0 for count in counts])


def _lists(ends: Ints, values: npt.NDArray[np.int32]) -> list[list[int]]:
    flat, cuts = values.tolist(), ends.tolist()
    return [flat[a:b] for a, b in pairwise(cuts)]


def make_ontology(seed: int = 0) -> OntologyTree:
    """A tree of about 17,000 topics; some parents have many children."""
    rng = np.random.default_rng([seed, 0])
    level = nodes = [f"{i:03}" for i in range(LEVELS[0])]
    domain = [*DOMAINS, DOMAINS[1], DOMAINS[1], None]
    for size in LEVELS[1:]:
        top = len(level) == LEVELS[0]
        weights = np.ones(len(level)) if top else rng.exponential(size=len(level))
        parents = rng.choice(len(level), size, p=weights / weights.sum())
        born: dict[int, int] = {}
        below = []
        for parent in parents.tolist():
            born[parent] = born.get(parent, 0) + 1
            below.append(f"{level[parent]}/{born[parent]:03}")
        nodes, level = nodes + below, below
    columns = {
        "node_id": nodes,
        "path": [node.replace("/", " > ") for node in nodes],
        "label": nodes,
        "synonyms": [[] for _ in nodes],
        "parent_id": [node.rpartition("/")[0] or None for node in nodes],
        "depth": [node.count("/") for node in nodes],
        "domain": [domain[int(node[:3])] for node in nodes],
        "source_node": nodes,
    }
    return OntologyTree.from_frame(pl.DataFrame(columns, schema=TABLES["ontology_tree"].schema))


def zipf(n: int, exponent: float, offset: float) -> Floats:
    """(n,) cumulative Zipf-Mandelbrot probabilities of ranks 0, 1, …."""
    sums = np.cumsum((np.arange(n) + 1 + offset) ** -exponent)
    cumulative: Floats = sums / sums[-1]
    return cumulative


class _Tables:
    """What all problems draw from."""

    def __init__(self, tree: OntologyTree, shape: Shape, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        n = tree.parent.size
        shallow = rng.permutation(np.flatnonzero(tree.depth < 1))
        self.popular = np.concatenate([rng.permutation(np.flatnonzero(tree.depth >= 1)), shallow])
        self.mains = zipf(n, 1.0, shape.topic_offset)
        self.sizes = np.cumsum(shape.sizes) / sum(shape.sizes)
        self.usual_size = np.searchsorted(self.sizes, rng.random(n)) + 1
        above = np.maximum(tree.parent, 0)
        start, end = _subtrees(tree)
        near = np.stack([above] * 4 + [above[above]] * 4, axis=1)
        inside = rng.random(near.shape) * (end - start)[near]
        far = self.popular[np.searchsorted(self.mains, rng.random((n, _COMPANIONS - 8)))]
        companions = np.concatenate([start[near] + inside.astype(np.int64), far], axis=1)
        self.companions = rng.permuted(companions, axis=1)
        self.companion_ranks = zipf(_COMPANIONS, 1.5, 0.0)
        self.vocabulary = zipf(VOCABULARY, 1.0, 5.0)
        flatter = zipf(VOCABULARY, 0.8, 5.0)
        self.own = np.searchsorted(flatter, rng.random((n, _OWN_WORDS)))
        for node in np.argsort(tree.depth, kind="stable")[LEVELS[0] :]:
            shared = rng.random(_OWN_WORDS) < 0.4  # a topic shares words with the one above it
            self.own[node, shared] = self.own[tree.parent[node], shared]
        self.techniques = np.searchsorted(flatter, rng.random((_TECHNIQUES, _OWN_WORDS)))
        self.technique_ranks = zipf(_TECHNIQUES, 1.0, 3.0)
        self.usual_technique = np.searchsorted(self.technique_ranks, rng.random(n))
        self.own_ranks = zipf(_OWN_WORDS, 1.0, 1.0)


def _subtrees(tree: OntologyTree) -> tuple[Ints, Ints]:
    """The first node of each subtree and the one after its last, in depth-first order."""
    size = np.ones(tree.parent.size, dtype=np.int64)
    for node in range(tree.parent.size - 1, -1, -1):
        if tree.parent[node] >= 0:
            size[tree.parent[node]] += size[node]
    start = np.arange(size.size)
    return start, start + size


def _distinct(draws: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The first ``sizes`` distinct values of each row, ascending, flat, and how many there are."""
    order = np.argsort(draws, axis=1, kind="stable")
    ordered = np.take_along_axis(draws, order, axis=1)
    new = np.ones(draws.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.zeros_like(new)
    np.put_along_axis(first, order, new, axis=1)  # of equal values, the one drawn first
    first &= np.cumsum(first, axis=1) <= sizes[:, None]
    kept = np.take_along_axis(first, order, axis=1)
    return ordered[kept], kept.sum(axis=1)


def _block(
    tables: _Tables, shape: Shape, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Topics, their counts, words, their counts, and clusters of one block of problems."""
    n, most = _BLOCK, len(shape.sizes)
    main = tables.popular[np.searchsorted(tables.mains, rng.random(n))]
    size = np.searchsorted(tables.sizes, rng.random(n)) + 1
    rank = np.searchsorted(tables.companion_ranks, rng.random((n, 2 * most)))
    usual = rng.random(n) < shape.usual
    rank[usual] = np.minimum(np.arange(2 * most), _COMPANIONS - 1)
    size[usual] = tables.usual_size[main[usual]]
    further = np.take_along_axis(tables.companions[main], rank, axis=1)
    free = (rng.random(rank.shape) < 0.3) & ~usual[:, None]
    further[free] = tables.popular[np.searchsorted(tables.mains, rng.random(int(free.sum())))]
    topics, n_topics = _distinct(np.column_stack([main, further]), size)

    start = np.cumsum(n_topics) - n_topics
    draws = np.searchsorted(tables.vocabulary, rng.random((n, _WORD_DRAWS)))
    source = rng.random(draws.shape)
    place = np.searchsorted(tables.own_ranks, rng.random(draws.shape))
    chosen = (rng.random(draws.shape) * n_topics[:, None]).astype(np.int64)
    topic = topics[start[:, None] + chosen]
    technique = np.searchsorted(tables.technique_ranks, rng.random(n))
    technique = np.where(rng.random(n) < 0.8, tables.usual_technique[main], technique)[:, None]
    standard = rng.random(n) < shape.standard
    topic[standard] = main[standard, None]
    of_topic = source < np.where(standard, 0.75, shape.topic_words)[:, None]
    of_technique = source > 1 - np.where(standard, 0.1, shape.technique_words)[:, None]
    draws = np.where(of_topic, tables.own[topic, place], draws)
    draws = np.where(of_technique, tables.techniques[technique, place], draws)
    words, n_words = _distinct(draws, 6 + rng.binomial(9, 0.4, n))

    # A near-duplicate repeats the problem before it; some problems lack a feature.
    clusters = np.arange(n)
    copies = np.flatnonzero(rng.random(n) < _CLUSTERED / 2)
    for i in copies[copies > 0]:
        clusters[i] = clusters[i - 1]
    parts = []
    for values, counts, missing in ((topics, n_topics, _NO_TOPICS), (words, n_words, _NO_WORDS)):
        begin = np.cumsum(counts) - counts
        counts = np.where(rng.random(n) < missing, 0, counts)
        begin, counts = begin[clusters], counts[clusters]
        ends = np.cumsum(counts)
        flat = np.arange(ends[-1]) - np.repeat(ends - counts, counts) + np.repeat(begin, counts)
        parts += [values[flat], counts]
    return parts[0], parts[1], parts[2], parts[3], clusters


def make_corpus(n: int, density: str = "low", seed: int = 0) -> SyntheticCorpus:
    """Make the first ``n`` problems of the corpus of a density (a name in ``SHAPES``) and seed."""
    tree, shape = make_ontology(seed), SHAPES[density]
    tables = _Tables(tree, shape, seed)
    blocks = [
        _block(tables, shape, np.random.default_rng([seed, 2, i])) for i in range(-(-n // _BLOCK))
    ]
    topics, n_topics, words, n_words, _ = (
        np.concatenate([block[k] for block in blocks] or [np.zeros(0, dtype=np.int64)])
        for k in range(5)
    )
    clusters = [block[4] + i * _BLOCK for i, block in enumerate(blocks)]
    topic_ends = np.concatenate([[0], np.cumsum(n_topics[:n])])
    word_ends = np.concatenate([[0], np.cumsum(n_words[:n])])
    return SyntheticCorpus(
        tree,
        topic_ends,
        topics[: topic_ends[-1]].astype(np.int32),
        word_ends,
        words[: word_ends[-1]].astype(np.int32),
        np.concatenate(clusters or [np.zeros(0)])[:n].astype(np.int32),
    )


def problem_index(corpus: SyntheticCorpus, query_shards: int = 8) -> pl.DataFrame:
    """The corpus as table ``problem_index``: ids in the order of the problems, all may be documents."""
    ids = [f"p{i:08}" for i in range(len(corpus))]
    tree = corpus.tree
    rows = []
    for i, (nodes, words) in enumerate(zip(corpus.topic_lists(), corpus.word_lists(), strict=True)):
        topics = [tree.node_ids[node] for node in nodes]
        found = [name for node in nodes if (name := tree.domain[node])]
        word_set = [f"w{word:05}" for word in words]
        primary = max(sorted(set(found)), key=found.count) if found else None
        rows.append(
            (
                ids[i],
                ids[corpus.clusters[i]],
                sorted(set(found)),
                primary,
                shard_of(ids[i], query_shards) if found else None,
                topics,
                word_set,
                digest(topics) if topics else None,
                digest(word_set) if word_set else None,
                True,
                bool(found and words),
            )
        )
    table = TABLES["problem_index"]
    return table.check(pl.DataFrame(rows, schema=table.schema, orient="row"))
