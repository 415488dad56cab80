"""JSON as people's files have it: lenient about characters, strict about keys."""

import json
from collections import Counter
from typing import Any

from saber_dagster.errors import Fault


class RepeatedKeys(dict[str, Any]):
    """An object in which a key stands more than once; the last value of each counts.

    Which of them was meant nobody knows, so whoever reads the object reports ``twice``.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.twice = sorted(name for name, count in counts.items() if count > 1)

    def fault(self, file: str, row: int, field: str) -> Fault:
        """The keys as a fault of the file."""
        problem = f"has the key {', '.join(map(repr, self.twice))} more than once"
        return Fault(file, row, field, problem, "Keep one of them")


def decode(text: str) -> Any:
    """A JSON value. Control characters inside texts are left to whoever checks the texts.

    Raises:
        ValueError: if it is no JSON; ``json.JSONDecodeError`` if a place in it can be named.
        RecursionError: if it is nested too deeply.
    """
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    return values if len(values) == len(pairs) else RepeatedKeys(pairs)


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object)
