"""What failed in a build, and what it holds up: whatever depends on it, and nothing else."""

from collections import Counter
from collections.abc import Collection

from saber_dagster.build_report import BuildReport
from saber_dagster.errors import SaberError
from saber_dagster.freshness import Graph, Key, Node, Partition, inputs_of

_BOARD = "leaderboard"


class BuildError(SaberError):
    """Runs failed; the message names assets, partitions and reasons, and what had to wait.

    ``report`` says what has been done all the same.
    """

    report: BuildReport | None = None


class BudgetError(BuildError):
    """The budget was spent, and nothing else went wrong; a later build goes on."""

    exit_code = 3


class Failures:
    """The failures of a build so far.

    Args:
        graph: the asset graph.
        pinned: assets that hand out a complete release: while they are fresh, what failed upstream
            of them does not matter to anything downstream.
    """

    def __init__(self, graph: Graph, pinned: Collection[Key]) -> None:
        self._graph = graph
        self._pinned = pinned
        self._held: set[tuple[Key, Partition]] = set()
        self._waiting: Counter[str] = Counter()
        self._failed: dict[str, None] = {}
        self._unpaid: Counter[str] = Counter()

    def add(self, node: Node, partition: Partition, reason: str) -> None:
        """A partition failed."""
        self._held.add((node.key, partition))
        self._failed[f"{node.name}{f' {partition}' if partition else ''}: {reason}"] = None

    def add_unpaid(self, node: Node, partition: Partition) -> None:
        """The budget was spent before all calls of a partition were paid."""
        self._held.add((node.key, partition))
        self._unpaid[node.name] += 1

    def hold_up(self, node: Node, partition: Partition, due: bool) -> bool:
        """Whether a partition must wait for one that failed; then so must what depends on it.

        To be asked of every partition in topological order; ``due`` says whether it is not fresh.
        """
        if node.key in self._pinned and not due:
            return False
        if not any(up in self._held for up in inputs_of(self._graph, node, partition)):
            return False
        self._held.add((node.key, partition))
        self._waiting[node.name] += 1
        return True

    def raise_any(self, report: BuildReport, spent: str) -> None:
        """Raise what a build with failures ends in.

        Args:
            report: what the build did.
            spent: what it has paid, for the message.

        Raises:
            BudgetError: if the budget was spent and nothing failed.
            BuildError: if anything failed.
        """
        if not self._held:
            return
        lines = list(self._failed)
        if self._unpaid:
            lines.append(
                f"the budget is spent ({spent}); calls are missing in {_listed(self._unpaid)}. Everything"
                " that was paid is kept: build again with more (--budget-usd, --budget-calls, or"
                " ledger.budget_usd and ledger.budget_calls in saber.yaml), and it goes on from here"
            )
        if self._waiting:
            lines.append(f"waiting for the above, left as they are: {_listed(self._waiting)}")
        if self._waiting[_BOARD] and any("judge/" in line for line in lines[:-1]):
            lines.append(
                f"the {_BOARD} needs the games of every judge in judges.yaml; bring the judge's lane to"
                " its end, or take the judge out of the file, and build again"
            )
        message = "\n".join(lines)
        error = BuildError(message) if self._failed else BudgetError(message)
        error.report = report
        raise error


def _listed(names: Counter[str]) -> str:
    return ", ".join(f"{name} ({n}×)" if n > 1 else name for name, n in names.items())
