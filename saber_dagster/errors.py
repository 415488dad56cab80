"""Errors that a user can act on, and the list of faults that an input check returns."""

from dataclasses import asdict, dataclass
from typing import Any


class SaberError(Exception):
    """A problem that the user can mend; its message says what is wrong and what to do."""

    exit_code = 1
    """What ``saber`` exits with."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of an input file: where it is, what is wrong, how to mend it.

    ``row`` is 1-based (the line of a JSONL or CSV file, the row of a Parquet file); 0 means the file
    as a whole.
    """

    file: str
    row: int
    field: str
    problem: str
    remedy: str

    def __post_init__(self) -> None:
        # names are quoted from files, which can hold halves of characters that no terminal prints
        for name in ("file", "field", "problem", "remedy"):
            text = getattr(self, name).encode("utf-8", "backslashreplace").decode()
            object.__setattr__(self, name, text)

    def __str__(self) -> str:
        """``file:row: field: problem. Remedy``."""
        place = f"{self.file}:{self.row}" if self.row else self.file
        field = f"{self.field}: " if self.field else ""
        return f"{place}: {field}{self.problem}. {self.remedy}"

    def as_row(self) -> dict[str, Any]:
        """The fault as a JSON object."""
        return asdict(self)


class InputError(SaberError):
    """An input file has faults; all of them are in ``faults``."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = sorted(faults)
        shown = "\n".join(f"  {fault}" for fault in self.faults[:20])
        more = len(self.faults) - 20
        tail = f"\n  … and {more} more" if more > 0 else ""
        super().__init__(f"{len(self.faults)} fault(s) found, nothing was changed:\n{shown}{tail}")
