"""The call ledger: every reply of an engine, kept for good and paid once.

Replies lie in immutable Parquet segments under ``<root>/<stage>/<model>/<partition>/``. While a step
runs, each reply goes at once to the step's journal, a file of JSON lines on local disk. A journal
becomes a segment when it is full or the step ends; the journal of a process that was
killed is found by its released file lock and becomes a segment the next time anybody opens the stage.
Merging one twice writes the same segment again, so a kill at any point loses only calls in flight.

Nobody waits for another step: names are unique, and only while a segment is named and written has its
writer the model's folder to itself. If two steps paid one key, the reply in the smallest (segment, row),
which was settled first, is canonical and the other counts as a duplicate. A step that used another
reply than the canonical one fails, as its table would not be what a replay gives.

What calls were made of, prompts and long texts, lies once each under ``<root>/prompts/`` and
``<root>/texts/``, so that any row can be rendered again and its key be checked.
"""

from saber_dagster.ledger.budget import Budget, BudgetSpent
from saber_dagster.ledger.counts import Counts
from saber_dagster.ledger.forecast import DryRun, Forecast
from saber_dagster.ledger.ledger import Ledger
from saber_dagster.ledger.rows import LedgerError, Mode, Row
from saber_dagster.ledger.session import Outcome, Session

__all__ = [
    "Budget",
    "BudgetSpent",
    "Counts",
    "DryRun",
    "Forecast",
    "Ledger",
    "LedgerError",
    "Mode",
    "Outcome",
    "Row",
    "Session",
]
