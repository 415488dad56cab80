"""The programs that compute the final answers of the starter corpus again."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

PREFIXES = ("alg_", "geo_", "num_", "com_", "cal_")


def programs(domain: str) -> Mapping[str, Callable[[], Any]]:
    """By id of the problem: ``alg_001`` of ``answers_algebra.py`` is the program of ``alg-001``."""
    module = vars(import_module(f"answers_{domain}"))
    return {
        name.replace("_", "-"): program
        for name, program in module.items()
        if name.startswith(PREFIXES) and callable(program)
    }
