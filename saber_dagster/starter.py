"""The starter corpus: problems written for this project (CC BY 4.0), shipped in the package.

A file of ``data/starter`` for each domain. Labels, such as techniques, are for evaluation: they stay
in :func:`starter_entries`, and the pipeline reads :func:`starter_problems`, which has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

import yaml

from saber_dagster.corpus_rows import Problem
from saber_dagster.errors import SaberError
from saber_dagster.hashing import digest

SOURCE = "starter"
LICENCE = "CC BY 4.0"
DOMAINS = ("algebra", "geometry", "number_theory", "combinatorics", "calculus_analysis")
_FIELDS = {"id", "level", "techniques", "looks_like", "problem", "solution", "answer"}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class StarterEntry:
    """A problem with its labels; ``answer`` is empty where a proof is asked for."""

    id: str
    domain: str
    level: str
    techniques: tuple[str, ...]
    looks_like: tuple[str, ...]
    problem: str
    solution: str
    answer: str | None


def starter_problems() -> list[Problem]:
    """The problems without their labels, in the order of the files."""
    return [
        Problem(
            source=SOURCE,
            source_id=entry.id,
            problem=entry.problem,
            solution=entry.solution,
            answer=entry.answer,
            language="en",
            licence=LICENCE,
            file=f"starter/{entry.domain}.yaml",
            row=row,
        )
        for _, entries in groupby(starter_entries(), key=lambda entry: entry.domain)
        for row, entry in enumerate(entries, 1)
    ]


def starter_identity() -> str:
    """A name of exactly these problems, by the SHA-256 of their content without the labels."""
    texts = [(p.source_id, p.problem, p.solution, p.answer) for p in starter_problems()]
    return f"starter {digest(texts)}"


@cache
def starter_entries() -> tuple[StarterEntry, ...]:
    """Every problem with its labels, in the order of the files.

    Raises:
        SaberError: if a file of the package is damaged.
    """
    return tuple(entry for domain in DOMAINS for entry in read_domain(domain))


def read_domain(domain: str) -> list[StarterEntry]:
    """The problems of one domain's file.

    Raises:
        SaberError: if the file is damaged.
    """
    try:
        rows = _load(f"{domain}.yaml")
        return [_entry(domain, row) for row in rows]
    except (yaml.YAMLError, LookupError, TypeError, AttributeError, OSError) as error:
        raise SaberError(
            f"starter/{domain}.yaml is damaged: {error}. Reinstall saber_dagster"
        ) from error


@cache
def starter_techniques() -> Mapping[str, str]:
    """Id of each technique and its name."""
    return {key: value["name"] for key, value in _load("techniques.yaml").items()}


def _load(name: str) -> Any:
    text = files("saber_dagster").joinpath("data", "starter", name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)


def _entry(domain: str, row: dict[str, Any]) -> StarterEntry:
    if unknown := set(row) - _FIELDS:
        raise LookupError(f"{row.get('id')}: unknown fields {sorted(unknown)}")
    answer = row.get("answer")
    return StarterEntry(
        id=row["id"],
        domain=domain,
        level=row["level"],
        techniques=tuple(row["techniques"]),
        looks_like=tuple(row.get("looks_like", ())),
        problem=row["problem"].strip(),
        solution=row["solution"].strip(),
        answer=None if answer is None else str(answer).strip(),
    )
