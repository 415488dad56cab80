"""CHAMP: 270 competition problems with solutions (Mao et al. 2024, MIT), from the PyPI package.

The package is never imported; only its data file is read.
"""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from saber_dagster.corpus_rows import Problem
from saber_dagster.errors import SaberError

SOURCE = "champ"
_FILE = "dataset_files/v0.json"


def champ_problems() -> list[Problem]:
    """The problems of the package champ-dataset 1.0.0, in the order of its file; none is left out.

    Formulas, which CHAMP puts between ``@@``, are put between ``$``; steps become lines of the
    solution. Categories and annotations are not read.

    Raises:
        SaberError: if the package is missing or has another layout.
    """
    return list(_problems())


@cache
def _problems() -> tuple[Problem, ...]:
    spec = find_spec("champ_dataset")
    if spec is None or not spec.submodule_search_locations:
        raise SaberError("The package champ-dataset is missing. Run: pip install champ-dataset")
    try:
        raw = (Path(spec.submodule_search_locations[0]) / _FILE).read_bytes()
        entries = json.loads(raw)["problems"].values()
        return tuple(
            Problem(
                source=SOURCE,
                source_id=entry["identifier"],
                problem=_formulas(entry["_raw_text"]),
                solution="\n".join(_formulas(s["_raw_text"]) for s in entry["solution"]["steps"]),
                answer=_formulas(entry["_raw_answer"]) or None,
                language="en",
                licence="MIT",
                file=f"champ_dataset/{_FILE}",
                row=row,
            )
            for row, entry in enumerate(entries, 1)
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise SaberError(
            f"champ-dataset is damaged or has another layout ({type(error).__name__}: {error}). "
            "Run: pip install --force-reinstall champ-dataset==1.0.0"
        ) from error


def _formulas(text: str) -> str:
    return text.replace("@@", "$").strip()
