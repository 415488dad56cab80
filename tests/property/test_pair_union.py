"""The union of both signals' pairs is the one of plain sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.similarity.pair_union import BLOCK, unite
from saber_dagster.similarity.sparse_rows import SparseRows

pytestmark = pytest.mark.property


def rows_of(rows: list[dict[int, int]]) -> SparseRows:
    cells = [(column, row[column]) for row in rows for column in sorted(row)]
    columns, values = zip(*cells, strict=True) if cells else ((), ())
    return SparseRows(
        np.cumsum([0, *(len(row) for row in rows)]),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.uint32),
    )


def check(seed: int, n: int, n_queries: int, n_sets: int, share: float, threads: int) -> None:
    rng = np.random.default_rng(seed)
    topic = [
        {s: int(rng.integers(1, 10**6 + 1)) for s in range(n_sets) if rng.random() < share}
        for _ in range(5)
    ]
    query_sets, document_sets = rng.integers(0, 5, n_queries), rng.integers(0, n_sets, n)
    summary = [
        dict.fromkeys(np.flatnonzero(rng.random(n) < share).tolist(), 1) for _ in range(n_queries)
    ]
    query_clusters = rng.integers(0, n + 2, n_queries).astype(np.int32)
    document_clusters = rng.integers(0, n + 2, n).astype(np.int32)
    expected: list[dict[int, int]] = [
        {
            d: topic[query_sets[q]].get(int(document_sets[d]), 0)
            for d in range(n)
            if (document_sets[d] in topic[query_sets[q]] or d in summary[q])
            and document_clusters[d] != query_clusters[q]
        }
        for q in range(n_queries)
    ]
    found = unite(
        rows_of(topic), query_sets, document_sets, rows_of(summary), query_clusters,
        document_clusters, threads,
    )  # fmt: skip
    wanted = rows_of(expected)
    assert found.indptr.tolist() == wanted.indptr.tolist()
    assert found.columns.tolist() == wanted.columns.tolist()
    assert found.values.tolist() == wanted.values.tolist()


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([0, 1, 63, 64, 65, 127, 128, 129, 200]),
    n_queries=st.integers(0, 6),
    n_sets=st.integers(1, 9),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    threads=st.sampled_from([1, 2]),
)
def test_the_union_is_that_of_sets(
    seed: int, n: int, n_queries: int, n_sets: int, share: float, threads: int
) -> None:
    check(seed, n, n_queries, n_sets, share, threads)


def test_blocks_of_queries_join_up() -> None:
    for threads in (1, 2):
        check(7, 70, 2 * BLOCK + 1, 9, 0.3, threads)
