"""Parts of numbered pairs, query by query, and the domains that each query belongs to."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class QueryPart:
    """The pairs of some queries, as kernels read them.

    Args:
        queries: (n_queries,) positions in ``problem_index``, ascending.
        indptr: (n_queries + 1,) query i has the pairs ``indptr[i]`` to ``indptr[i + 1]`` (without).
        topic: (n_pairs,) topic signals.
        summary: (n_pairs,) summary signals.
    """

    queries: Ints
    indptr: Ints
    topic: Floats
    summary: Floats


def query_parts(shards: Iterable[pl.DataFrame]) -> Iterator[QueryPart]:
    """Find the queries of each part.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries.

    Raises:
        ValueError: a part is not in order of its queries.
    """
    for part in shards:
        query = part["query"].to_numpy()
        starts = np.flatnonzero(query[1:] != query[:-1]) + 1
        starts = np.concatenate([np.zeros(min(query.size, 1), dtype=np.int64), starts])
        queries = query[starts].astype(np.int64)
        if (np.diff(queries) < 0).any():
            raise ValueError("the pairs of a part must be in order of their queries")
        indptr = np.concatenate([starts, [query.size]])
        topic, summary = (part[name].to_numpy() for name in ("topic", "summary"))
        yield QueryPart(queries, indptr, topic, summary)


@dataclass(frozen=True)
class Members:
    """The domains of each query.

    Args:
        domains: the configured domains, which have the numbers 0, 1, ….
        indptr: (n_problems + 1,) problem i has ``numbers[indptr[i]:indptr[i + 1]]``.
        numbers: (n_memberships,) numbers of domains; a problem that is no query has none.
    """

    domains: tuple[str, ...]
    indptr: Ints
    numbers: Ints

    @classmethod
    def of(cls, index: pl.DataFrame, domains: Sequence[str]) -> "Members":
        """Read the memberships of table ``problem_index``; other domains are left out."""
        number = {"domain": list(domains), "number": list(range(len(domains)))}
        rows = (
            index.select(pl.col("domains").alias("domain"), "is_query")
            .with_row_index("problem")
            .filter("is_query")
            .explode("domain", empty_as_null=True)
            .join(
                pl.DataFrame(number, schema={"domain": pl.String, "number": pl.Int64}), on="domain"
            )
            .sort("problem", "number")
        )
        counts = np.bincount(rows["problem"].to_numpy(), minlength=index.height)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(tuple(domains), indptr, rows["number"].to_numpy())

    def positions(self, domain: str) -> Ints:
        """The positions in ``problem_index`` of the queries of a domain, ascending."""
        here = np.flatnonzero(self.numbers == self.domains.index(domain))
        return np.searchsorted(self.indptr, here, side="right") - 1
