"""Both relevance signals of queries with every document, without comparing most pairs."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.errors import SaberError
from saber_dagster.ontology import OntologyTree
from saber_dagster.signals.pairs import SIGNALS
from saber_dagster.signals.statistics import information_content
from saber_dagster.signals.storage import SignalRows
from saber_dagster.signals.top import Top
from saber_dagster.similarity.pair_union import unite
from saber_dagster.similarity.sparse_rows import SparseRows
from saber_dagster.similarity.summary_join import SummaryJoin
from saber_dagster.similarity.topic import Floats, Ints, TopicSets, ancestor_table
from saber_dagster.similarity.topic_join import TopicJoin
from saber_dagster.similarity.word_sets import WordSets

QUERIES_PER_BLOCK = 4096
"""Queries that are joined at once."""


class SignalJoin:
    """The documents of an index, ready to be paired with any queries of it.

    A query and its near-duplicates are never a pair. A pair is found if a signal is positive and
    reaches its floor; it then has both exact signals. The topic signal is rounded to 1e-6, once;
    every later comparison uses the rounded value. The summary signal is not rounded. What is found
    depends on the pair alone: not on threads, the order of the queries or what else is there.

    Args:
        index: table ``problem_index``.
        tree: the ontology.
        statistics: table ``topic_statistics``, of the release or of now.
        topic_floor: lowest topic signal that is found.
        summary_floor: lowest summary signal that is found.
        epsilon: of Lin's similarity; positive.
        documents: (n_problems,) which documents of the index to pair with; by default all.
        most: keep of each query only the pairs of which a signal is at least its so many largest, ties
            included.
        block: so many queries are joined at once; it decides memory alone.

    Raises:
        SaberError: epsilon is not positive.

    Source: SABER-Math, "Scoring Problem Pair Relevance".
    """

    def __init__(
        self,
        index: pl.DataFrame,
        tree: OntologyTree,
        statistics: pl.DataFrame,
        topic_floor: float,
        summary_floor: float,
        epsilon: float,
        documents: npt.NDArray[np.bool_] | None = None,
        most: int | None = None,
        block: int = QUERIES_PER_BLOCK,
    ) -> None:
        if epsilon <= 0:
            raise SaberError(f"signals.epsilon: {epsilon} is not positive. The paper's is 1e-12")
        self._block = block
        self._top = None if most is None else Top(most, topic_floor, summary_floor)
        place = tree.index
        self._topics = [
            tuple(map(place.__getitem__, topics)) for topics in index["topics"].to_list()
        ]
        self._words = WordSets.of_lists(index["words"])
        self._clusters = index["cluster_id"].rank("dense").cast(pl.Int32).to_numpy()
        is_document = index["is_document"].to_numpy()
        wanted = is_document if documents is None else is_document & documents
        self._documents = np.flatnonzero(wanted).astype(np.int32)
        self._sets = TopicSets.of(self._topics[i] for i in self._documents)
        self._topic = TopicJoin(
            self._sets,
            ancestor_table(tree),
            information_content(statistics, tree),
            epsilon,
            topic_floor,
        )
        self._summary = SummaryJoin(self._words.take(self._documents), summary_floor)

    def rows(self, queries: npt.NDArray[np.int32]) -> SignalRows:
        """Find the pairs of some queries.

        Args:
            queries: (n_queries,) positions in the index, ascending.

        Returns:
            All of their pairs that reach a floor; memory is about 30 bytes per pair of a block, and
            10 bytes per pair of the result.
        """
        lengths = np.zeros(queries.size + 1, dtype=np.int64)
        documents = np.empty(0, dtype=np.int32)
        topics = np.empty(0, dtype=np.uint32)
        overlaps = np.empty(0, dtype=np.uint16)
        for start in range(0, queries.size, self._block):
            block = self._rows_of(queries[start : start + self._block])
            lengths[start + 1 : start + 1 + block.queries.size] = np.diff(block.indptr)
            for column, part in (
                (documents, block.documents),
                (topics, block.topics),
                (overlaps, block.overlaps),
            ):
                column.resize(column.size + part.size, refcheck=False)  # moves pages, not bytes
                column[column.size - part.size :] = part
        return SignalRows(queries.astype(np.int32), np.cumsum(lengths), documents, topics, overlaps)

    def histograms(self, queries: npt.NDArray[np.int32], bins: int) -> dict[str, Ints]:
        """Count all pairs of some queries by their signals, also those below the floors.

        Args:
            queries: (n_queries,) positions in the index.
            bins: a signal v is in bin ``min(int(v * bins), bins - 1)``.

        Returns:
            signal → (bins,) counts; their sum is the number of pairs, those without a feature in bin 0.
        """
        weights = np.bincount(self._sets.set_of, minlength=self._sets.sizes.size)
        total = {signal: np.zeros(bins, dtype=np.int64) for signal in SIGNALS}
        for start in range(0, queries.size, self._block):
            some = queries[start : start + self._block]
            sets, words = self._features(some)
            times = np.bincount(sets.set_of, minlength=sets.sizes.size)
            total["topic"] += times @ self._topic.histogram(sets, weights, bins)
            total["summary"] += self._summary.histogram(words, bins).sum(axis=0)
            for signal, values in self._within_clusters(some).items():
                places = np.minimum((values * bins).astype(np.int64), bins - 1)
                total[signal] -= np.bincount(places, minlength=bins)
        return total

    def _within_clusters(self, queries: npt.NDArray[np.int32]) -> dict[str, Floats]:
        """The signals of the queries with the documents of their own clusters."""
        own = self._clusters[self._documents]
        order = np.argsort(own, kind="stable").astype(np.int32)
        starts, ends = (
            np.searchsorted(own[order], self._clusters[queries], side=side)
            for side in ("left", "right")
        )
        indptr = np.concatenate([[0], np.cumsum(ends - starts)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
        columns = order[places]
        pairs = SparseRows(indptr, columns, np.zeros(columns.size, dtype=np.uint32))
        sets, words = self._features(queries)
        self._topic.complete(sets, self._sets.set_of, pairs)
        common = self._summary.overlaps(words, pairs)
        rows = SignalRows(
            queries, indptr, self._documents[columns], pairs.values, common.astype(np.uint16)
        )
        return {"topic": rows.topic(), "summary": rows.summary(self._words.sizes)}

    def _features(self, queries: npt.NDArray[np.int32]) -> tuple[TopicSets, WordSets]:
        return TopicSets.of(self._topics[i] for i in queries), self._words.take(queries)

    def _rows_of(self, queries: npt.NDArray[np.int32]) -> SignalRows:
        sets, words = self._features(queries)
        if self._top is None:
            topics, common_words = self._topic.rows(sets), self._summary.rows(words)
        else:
            wanted = self._top.most + self._cluster_sizes(queries)
            topics = self._top.topics(self._topic, sets, self._sets, wanted)
            common_words = self._top.words(self._summary, words, wanted)
        pairs = unite(
            topics,
            sets.set_of,
            self._sets.set_of,
            common_words,
            self._clusters[queries],
            self._clusters[self._documents],
        )
        common = self._summary.overlaps(words, pairs)
        self._topic.complete(sets, self._sets.set_of, pairs)
        documents = self._documents[pairs.columns]
        rows = SignalRows(queries, pairs.indptr, documents, pairs.values, common.astype(np.uint16))
        return rows if self._top is None else self._top.cut(rows, self._words.sizes)

    def _cluster_sizes(self, queries: npt.NDArray[np.int32]) -> Ints:
        """How many documents are near-duplicates of each query."""
        sizes = np.bincount(self._clusters[self._documents], minlength=self._clusters.max() + 1)
        own: Ints = sizes[self._clusters[queries]]
        return own


def query_positions(index: pl.DataFrame, query_ids: Iterable[str]) -> npt.NDArray[np.int32]:
    """Where queries are in the index.

    Args:
        index: table ``problem_index``.
        query_ids: ids of queries in it.

    Returns:
        (n_queries,) ascending.

    Raises:
        SaberError: an id is no query of the index.
    """
    wanted = set(query_ids)
    found = index["is_query"] & index["doc_id"].is_in(sorted(wanted))
    if int(found.sum()) < len(wanted):
        lost = sorted(wanted - set(index.filter(found)["doc_id"]))
        raise SaberError(
            f"problem_index: {len(lost)} of {len(wanted)} ids are no queries of the index, such as "
            f"{lost[0]!r}. Materialize problem_index, then query_set, again"
        )
    return np.flatnonzero(found.to_numpy()).astype(np.int32)
