"""What was built: sources, numbers, engines and settings."""

from dataclasses import dataclass
from importlib.metadata import version

import polars as pl

from saber_dagster.leaderboard import caution
from saber_dagster.report.roles import Role
from saber_dagster.report.tables import Tables
from saber_dagster.yaml_files import dump_yaml

_SHOWN_SETTINGS = (
    "preset",
    "seed",
    "release",
    "domains",
    "topics",
    "summaries",
    "signals",
    "thresholds",
    "candidates",
    "queries",
    "tournament",
    "ratings",
    "evaluation",
)
"""Settings that decide figures. Paths and an engine's options are nobody else's business."""


@dataclass(frozen=True)
class JudgeLabel:
    """A judge's name, what it is, and what must stand beside its figures."""

    slug: str
    engine: str
    warning: str


@dataclass(frozen=True)
class SourceRow:
    """A source of problems."""

    source: str
    licence: str
    language: str
    problems: int


@dataclass(frozen=True)
class Overview:
    """What was built."""

    sources: tuple[SourceRow, ...]
    numbers: tuple[tuple[str, str], ...]
    """What is counted, and how many."""
    roles: tuple[Role, ...]
    preset: str
    seed: int
    settings: str
    program: str


def judge_labels(tables: Tables, judge: str | None) -> tuple[JudgeLabel, ...]:
    """The judges of the home, or the one that is asked for."""
    return tuple(
        JudgeLabel(entry.slug, entry.engine, caution(entry.engine))
        for entry in tables.home.judges
        if judge in (None, entry.slug)
    )


def overview(tables: Tables, judges: tuple[JudgeLabel, ...]) -> Overview:
    """Sources, numbers, roles and settings.

    Raises:
        MissingTableError: if the sources are not there.
    """
    corpus = tables.need("raw_sources")
    settings = tables.home.settings
    values = settings.model_dump(mode="json")
    shown = {f"judge/{judge.slug}/tournament_rounds" for judge in judges}
    roles = [
        role for role in tables.roles if role.asset in shown or not role.asset.startswith("judge/")
    ]
    return Overview(
        sources=tuple(
            SourceRow(*row)
            for row in corpus.group_by("source", "licence", "language")
            .agg(problems=pl.len())
            .sort("source", "licence", "language")
            .iter_rows()
        ),
        numbers=tuple(_numbers(tables, judges, corpus)),
        roles=tuple(roles),
        preset=settings.preset,
        seed=settings.seed,
        settings=dump_yaml({name: values[name] for name in _SHOWN_SETTINGS}),
        program=f"saber_dagster {version('saber-dagster')}",
    )


def _numbers(
    tables: Tables, judges: tuple[JudgeLabel, ...], corpus: pl.DataFrame
) -> list[tuple[str, str]]:
    rows: list[tuple[str, int | None]] = [
        ("problems", int(corpus["is_document"].sum())),
        ("queries", _height(tables, "query_set")),
        ("candidates to rank", _height(tables, "candidate_sets")),
        *(
            (f"games of {judge.slug}", _height(tables, f"judge/{judge.slug}/tournament_rounds"))
            for judge in judges
        ),
        ("retrievers", len(tables.home.retrievers)),
    ]
    return [(name, "—" if count is None else f"{count:,}") for name, count in rows]


def _height(tables: Tables, asset: str) -> int | None:
    frame = tables.get(asset)
    return None if frame is None else frame.height
