"""The topic kernel gives the value, the decision and the bin of the plain definition for every pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.ontology import OntologyTree
from saber_dagster.similarity import topic_join, topic_search, twins
from saber_dagster.similarity.sparse_rows import SparseRows
from saber_dagster.similarity.topic import UNITS, TopicSets, ancestor_table
from saber_dagster.similarity.topic_join import TopicJoin, least_value
from trees import tree_of

STEPS = [0.0, 0.0, 1e-13, 0.1, 0.5, 0.5, 1.0, 3.0]
"""How much more informative a topic is than the one above; equal, nearly equal and far apart."""
EPSILONS = [1e-12, 1e-12, 1e-300, 0.25, 1e6]


@dataclass(frozen=True)
class Case:
    tree: OntologyTree
    content: npt.NDArray[np.float64]
    epsilon: float
    queries: list[list[int]]
    documents: list[list[int]]

    def values(self) -> npt.NDArray[np.float64]:
        """(distinct queries, distinct documents) by the plain definition."""
        left, right = (
            sorted({tuple(topics) for topics in side}, key=lambda topics: (-len(topics), topics))
            for side in (self.queries, self.documents)
        )
        given = self.tree, self.content.tolist(), self.epsilon
        return np.array([[twins.best_match_average(x, y, *given) for y in right] for x in left])

    def join(self, floor: float) -> TopicJoin:
        documents = TopicSets.of(self.documents)
        ancestors = ancestor_table(self.tree)
        return TopicJoin(documents, ancestors, self.content, self.epsilon, floor)


def dense(rows: SparseRows, n_columns: int) -> npt.NDArray[np.int64]:
    """The rows as a matrix; columns ascend, and -1 stands where there is no pair."""
    out = np.full((len(rows), n_columns), -1, dtype=np.int64)
    for i in range(len(rows)):
        columns = rows.columns[rows.indptr[i] : rows.indptr[i + 1]]
        assert (np.diff(columns) > 0).all()
        out[i, columns] = rows.values[rows.indptr[i] : rows.indptr[i + 1]]
    return out


def grown(parents: Sequence[int], steps: Sequence[float]) -> tuple[OntologyTree, list[float]]:
    """A tree from the parent of each node (-1: a root), and contents that grow by steps."""
    names: list[str] = []
    content: list[float] = []
    for i, (parent, step) in enumerate(zip(parents, steps, strict=True)):
        names.append(f"{names[parent]}/{i}" if parent >= 0 else f"r{i}")
        content.append(step + (content[parent] if parent >= 0 else 0.0))
    tree = tree_of(names)
    return tree, [content[names.index(node)] for node in tree.node_ids]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few topics, so that sets are empty, equal, nested, and hold ancestors of each other."""
    n = draw(st.integers(1, 14))
    parents = [draw(st.integers(-1 if i < 3 else 0, i - 1)) for i in range(n)]
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=n, max_size=n))
    tree, content = grown(parents, steps)
    topics = st.lists(st.integers(0, n - 1), max_size=9, unique=True)
    sets = st.lists(topics, min_size=1, max_size=12)
    scale = draw(st.sampled_from([1.0, 1.0, 1.0, 1e-40, 1e-250, 1e20]))
    epsilon = draw(st.sampled_from(EPSILONS))
    return Case(tree, np.array(content) * scale, epsilon, draw(sets), draw(sets))


def floors_at(values: npt.NDArray[np.float64]) -> list[float]:
    """Every value there is, and the numbers next to it."""
    levels = np.unique(values)
    near = [levels, np.nextafter(levels, -1.0), np.nextafter(levels, 2.0)]
    return [0.0, 0.6, 0.858, *np.concatenate(near).tolist()]


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_rows_are_the_pairs_that_reach_the_floor(case: Case, data: st.DataObject) -> None:
    values = case.values()
    x, y = TopicSets.of(case.queries), TopicSets.of(case.documents)
    for query, i in zip(case.queries, x.set_of, strict=True):
        for document, j in zip(case.documents, y.set_of, strict=True):
            arguments = (case.tree, case.content.tolist(), case.epsilon)
            assert values[i, j] == twins.best_match_average(query, document, *arguments)

    floor = data.draw(st.sampled_from(floors_at(values)))
    found = dense(case.join(floor).rows(x), y.sizes.size)
    assert ((found >= 0) == ((values > 0) & (values >= floor))).all()
    assert (found / UNITS == values)[found >= 0].all()


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(case=cases(), bins=st.sampled_from([1, 2, 3, 4, 10, 12, 256, 1000, 70_000]), data=st.data())
def test_every_pair_is_in_the_bin_of_its_value(case: Case, bins: int, data: st.DataObject) -> None:
    values = case.values()
    n = values.shape[1]
    weights = data.draw(st.lists(st.integers(0, 2**40), min_size=n, max_size=n))
    counts = case.join(0.5).histogram(TopicSets.of(case.queries), np.array(weights), bins)
    expected = np.zeros((values.shape[0], bins), dtype=np.int64)
    for i, row in enumerate(values.tolist()):
        for weight, value in zip(weights, row, strict=True):
            expected[i, min(int(value * bins), bins - 1)] += weight
    assert (counts == expected).all()


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_missing_values_of_given_pairs_are_filled_in(case: Case, data: st.DataObject) -> None:
    x, y = TopicSets.of(case.queries), TopicSets.of(case.documents)
    values = case.values()[x.set_of][:, y.set_of]
    size = values.size
    kinds = data.draw(
        st.lists(st.sampled_from(["absent", "missing", "known"]), min_size=size, max_size=size)
    )
    kind = np.array(kinds).reshape(values.shape)
    listed = kind != "absent"
    known = (kind == "known")[listed]
    pairs = SparseRows(
        np.concatenate(([0], np.cumsum(listed.sum(axis=1)))),
        np.nonzero(listed)[1].astype(np.int32),
        np.where(known, 7, 0).astype(np.uint32),
    )
    case.join(0.9).complete(x, y.set_of, pairs)
    assert (pairs.values[known] == 7).all()
    assert (pairs.values / UNITS == values[listed])[~known].all()


def large_case(n_queries: int, n_documents: int, longest: int, seed: int) -> Case:
    """A tree of 300 nodes and depth 7 or so, popular topics, some sets that differ in one topic."""
    random = np.random.default_rng(seed)
    parents = [-1, -1, -1, -1] + [int(i * random.random() ** 1.5) for i in range(4, 300)]
    tree, content = grown(parents, random.choice(STEPS, 300).tolist())
    order = random.permutation(300)

    def sets(n: int) -> Iterator[list[int]]:
        known: list[list[int]] = []
        for _ in range(n):
            size = min(1 + int(random.exponential(2.5)), longest)
            topics = (order[int(300 * random.random() ** 3)] for _ in range(size))
            if known and random.random() < 0.4:
                topics = (*known[int(random.random() * len(known))][1:], next(topics))
            known.append([int(t) for t in dict.fromkeys(topics)])
            yield known[-1]

    queries, documents = list(sets(n_queries)), list(sets(n_documents))
    return Case(tree, np.array(content), 1e-12, queries, [*documents, *queries[::3], []])


@pytest.fixture
def threads() -> Iterator[None]:
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


@pytest.mark.property
@pytest.mark.parametrize("n_queries", [1, 31, 33, 64, 700])
@pytest.mark.parametrize("longest", [1, 2, 9, 60])
def test_batches_of_every_size_agree_with_the_definition(n_queries: int, longest: int) -> None:
    case = large_case(n_queries, 600, longest, seed=n_queries + longest)
    values = case.values()
    x = TopicSets.of(case.queries)
    for floor in (0.0, 0.2, 0.5, 2 / 3, 0.858, 1.0):
        found = dense(case.join(floor).rows(x), values.shape[1])
        assert ((found >= 0) == ((values > 0) & (values >= floor))).all()
        assert (found / UNITS == values)[found >= 0].all()
    weights = np.arange(values.shape[1])
    for bins in (2, 256, 1000):
        counts = case.join(0.5).histogram(x, weights, bins)
        place = np.minimum((values * bins).astype(np.int64), bins - 1)
        expected = [np.bincount(row, weights, minlength=bins) for row in place]
        assert (counts == expected).all()


@pytest.mark.property
@pytest.mark.parametrize("scale", [1e-39, 1e-44, 1e-250])
def test_contents_may_be_too_small_for_float32(scale: float) -> None:
    ordinary = large_case(64, 300, 6, seed=9)
    case = replace(ordinary, content=ordinary.content * scale, epsilon=1e-300)
    values = case.values()
    x = TopicSets.of(case.queries)
    for floor in np.quantile(values[values > 0], [0.0, 0.5, 0.9, 0.99, 1.0]):
        found = dense(case.join(float(floor)).rows(x), values.shape[1])
        assert ((found >= 0) == ((values > 0) & (values >= floor))).all()
    counts = case.join(0.5).histogram(x, np.ones(values.shape[1], dtype=np.int64), 256)
    place = np.minimum((values * 256).astype(np.int64), 255)
    assert (counts == [np.bincount(row, minlength=256) for row in place]).all()


@pytest.mark.property
def test_results_do_not_depend_on_threads_tasks_or_company(
    threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = large_case(900, 500, 8, seed=5)
    x = TopicSets.of(case.queries)
    ones = np.ones(TopicSets.of(case.documents).sizes.size, dtype=np.int64)

    def both() -> tuple[bytes, bytes]:
        join = case.join(0.4)
        rows = join.rows(x)
        parts = [part.tobytes() for part in (rows.indptr, rows.columns, rows.values)]
        return b"".join(parts), join.histogram(x, ones, 256).tobytes()

    expected = both()
    for n_threads, batches in ((1, 1), (2, 1), (2, 3), (1, 1000)):
        numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))
        monkeypatch.setattr(topic_join, "_BATCHES_PER_TASK", batches)
        assert both() == expected

    def completed() -> bytes:
        wanted = np.random.default_rng(1).random((len(case.queries), len(case.documents))) < 0.2
        pairs = SparseRows(
            np.concatenate(([0], np.cumsum(wanted.sum(axis=1)))),
            np.nonzero(wanted)[1].astype(np.int32),
            np.zeros(np.count_nonzero(wanted), dtype=np.uint32),
        )
        case.join(0.4).complete(x, TopicSets.of(case.documents).set_of, pairs)
        return pairs.values.tobytes()

    values = completed()
    for n_threads, queries in ((1, 1), (2, 1), (2, 7), (1, 1000)):
        numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))
        monkeypatch.setattr(topic_join, "_QUERIES_PER_TASK", queries)
        assert completed() == values

    join = case.join(0.4)
    together = dense(join.rows(x), ones.size)
    for i in range(0, len(case.queries), 97):
        alone = dense(join.rows(TopicSets.of(case.queries[i : i + 1])), ones.size)
        assert (alone[0] == together[x.set_of[i]]).all()
    part = Case(case.tree, case.content, case.epsilon, case.queries, case.documents[::7])
    some = dense(part.join(0.4).rows(x), TopicSets.of(part.documents).sizes.size)
    whole = TopicSets.of(case.documents).set_of
    assert (some[:, TopicSets.of(part.documents).set_of] == together[:, whole[::7]]).all()


@pytest.mark.property
def test_nothing_to_compare_gives_nothing() -> None:
    tree = tree_of(["a", "a/b"])
    for queries, documents in (([], [[0]]), ([[0]], []), ([], []), ([[]], [[0]]), ([[1]], [[]])):
        case = Case(tree, np.array([0.0, 1.0]), 1e-12, queries, documents)
        x, y = TopicSets.of(queries), TopicSets.of(documents)
        rows = case.join(0.0).rows(x)
        assert len(rows) == x.sizes.size
        assert rows.columns.size == 0
        counts = case.join(0.0).histogram(x, np.full(y.sizes.size, 3), 4)
        assert counts.tolist() == [[3 * y.sizes.size, 0, 0, 0]] * x.sizes.size


@pytest.mark.property
@given(value=st.integers(1, UNITS), step=st.sampled_from([-1, 0, 1]))
def test_the_floor_is_compared_with_the_rounded_value(value: int, step: int) -> None:
    floor = value / UNITS
    floor = float(np.nextafter(floor, floor + step))
    least = least_value(floor)
    assert least / UNITS >= floor
    assert least == 1 or (least - 1) / UNITS < floor


@pytest.mark.property
def test_what_makes_no_sense_is_refused() -> None:
    sets, ancestors = TopicSets.of([[0]]), ancestor_table(tree_of(["a"]))
    for content, epsilon, floor in ((-1.0, 1e-12, 0.5), (1.0, 0.0, 0.5), (1.0, 1e-12, np.nan)):
        with pytest.raises(ValueError, match=r"must be|not a number"):
            TopicJoin(sets, ancestors, np.array([content]), epsilon, floor)
    join = TopicJoin(sets, ancestors, np.array([1.0]), 1e-12, 0.5)
    for weights, bins in (([1, 1], 4), ([1], 0)):
        with pytest.raises(ValueError, match="one weight per document set"):
            join.histogram(sets, np.array(weights), bins)


@pytest.mark.property
@given(
    least=st.integers(1, UNITS), m=st.integers(1, 60), k=st.integers(1, 60), more=st.integers(0, 60)
)
def test_no_pair_that_may_reach_the_floor_is_left_out_by_its_bound(
    least: int, m: int, k: int, more: int
) -> None:
    scale = 65535 // (m + k + more) - 1
    lowest_sum = (least - 0.5) / UNITS * (m + k) * scale
    assert 1 <= topic_search.least_units.py_func(least, m, k, scale) <= max(lowest_sum - 0.03, 1)
