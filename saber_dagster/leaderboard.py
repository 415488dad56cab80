"""The leaderboard: one board per judge, from per-query metrics to means, intervals and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from saber_dagster.bootstrap import paired_bootstrap, tied_groups
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.metrics import DECIMALS
from saber_dagster.settings import ORACLE

OVERALL = "overall"
"""The row over all distinct queries; the others are domains."""


BASELINE_WARNING = (
    "Judged by the embedded baseline, which is not an LLM: it compares words, technique names and word"
    " vectors, so it favours retrievers of its own kind."
)
"""What stands beside every figure that comes from the embedded engine."""


def caution(engine: str) -> str:
    """What must stand beside the figures of a judge on this engine; empty if nothing must."""
    return BASELINE_WARNING if engine == "embedded" else ""


@dataclass(frozen=True)
class Meta:
    """What the metrics were computed from: the release, and revisions by slug."""

    release: str
    judge_revisions: Mapping[str, str]
    retriever_revisions: Mapping[str, str]


def build(
    query_metrics: pl.DataFrame,
    meta: Meta,
    domains: Sequence[str],
    n_resamples: int = 1000,
    seed: int = 0,
) -> pl.DataFrame:
    """Average per-query metrics into boards.

    A query counts in every domain that it belongs to, and once in ``overall``; a domain without a
    query has no rows. The queries of a board are all that any of its retrievers has metrics for: a
    retriever that lacks one scores 0 there, and it is counted in ``n_missing``. Within a domain,
    every judge, setting and retriever sees the same resamples of the same queries.

    Args:
        query_metrics: ``query_metrics`` frames, concatenated in any order.
        meta: release and revisions.
        domains: domain slugs.
        n_resamples: resamples of the bootstrap.
        seed: seed of the bootstrap.

    Returns:
        A ``leaderboard`` frame.

    Raises:
        SaberError: if a row is there twice, or a judge or retriever has no revision.
    """
    key = ["judge", "retriever", "setting", "query_id", "metric"]
    duplicated = query_metrics.select(key).is_duplicated()
    if duplicated.any():
        row = query_metrics.filter(duplicated).sort(key).row(0, named=True)
        raise SaberError(
            f"Metrics of judge {row['judge']}, retriever {row['retriever']}, query "
            f"{row['query_id']} ({row['setting']}) are there twice. Pass each partition once."
        )
    rows: list[dict[str, object]] = []
    boards = query_metrics.sort(key).partition_by(
        ["judge", "setting", "metric"], as_dict=True, maintain_order=True
    )
    for (judge, setting, metric), board in boards.items():
        retrievers = sorted(board["retriever"].unique())
        queries = board.unique("query_id", keep="first", maintain_order=True).sort("query_id")
        values, missing = _matrices(board, queries["query_id"], retrievers)
        for domain in (OVERALL, *domains):
            member = (
                np.ones(queries.height, dtype=bool)
                if domain == OVERALL
                else queries["domains"].list.contains(domain).to_numpy()
            )
            if not member.any():
                continue
            result = paired_bootstrap(values[member], seed, domain, n_resamples)
            rivals = [name for name in retrievers if name != ORACLE]
            columns = [retrievers.index(name) for name in rivals]
            among = paired_bootstrap(values[member][:, columns], seed, domain, n_resamples)
            groups = dict(zip(rivals, tied_groups(among, rivals).tolist(), strict=True))
            for i, retriever in enumerate(retrievers):
                rows.append(
                    {
                        "release": meta.release,
                        "judge": judge,
                        "judge_revision": _revision(meta.judge_revisions, "judge", judge),
                        "retriever": retriever,
                        "retriever_revision": _revision(
                            meta.retriever_revisions, "retriever", retriever
                        ),
                        "setting": setting,
                        "domain": domain,
                        "metric": metric,
                        "value": round(float(result.mean[i]), DECIMALS),
                        "low": round(float(result.low[i]), DECIMALS),
                        "high": round(float(result.high[i]), DECIMALS),
                        "n_queries": result.n_queries,
                        "n_missing": int(missing[member, i].sum()),
                        "tied_group": groups.get(retriever),
                    }
                )
    table = TABLES["leaderboard"]
    return table.check(pl.DataFrame(rows, schema=table.schema), meta.release)


def _matrices(
    board: pl.DataFrame, queries: pl.Series, retrievers: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Values and missing marks, shape (queries, retrievers); what is not there is 0 and missing."""
    values = np.zeros((len(queries), len(retrievers)))
    missing = np.ones(values.shape, dtype=bool)
    row_of = {query: row for row, query in enumerate(queries)}
    column_of = {retriever: column for column, retriever in enumerate(retrievers)}
    rows = [row_of[query] for query in board["query_id"]]
    columns = [column_of[retriever] for retriever in board["retriever"]]
    values[rows, columns] = board["value"].to_numpy()
    missing[rows, columns] = board["missing"].to_numpy()
    return values, missing


def _revision(revisions: Mapping[str, str], kind: str, slug: object) -> str:
    revision = revisions.get(str(slug))
    if revision is None:
        raise SaberError(
            f"There is no revision of {kind} {slug}. Register it, or leave out its metrics."
        )
    return revision
