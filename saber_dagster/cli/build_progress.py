"""How ``saber build`` shows where it is: bars in a terminal, a line now and then elsewhere."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from saber_dagster import progress
from saber_dagster.cli.common import errors

if TYPE_CHECKING:
    from saber_dagster.materialize import Event

QUIET_S = 30.0
"""Without a terminal a line of progress is printed at most so often."""


class Bars(Progress):
    """A bar per level of the graph, and below the last one for the calls of a step."""

    def __init__(self) -> None:
        self._level: Any = None
        self._calls: Any = None
        super().__init__(
            TextColumn("{task.description:<34}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[calls]}"),
            TimeElapsedColumn(),
            console=errors,
        )

    def watch(self, event: "Event") -> None:
        """Follow a build."""
        if event.kind == "level":
            if self._calls is not None:
                self.remove_task(self._calls)
            self._level = self.add_task(title(event.assets), total=event.total, calls="")
            self._calls = self.add_task("", total=1, visible=False, calls="")
        elif event.kind == "done":
            self.advance(self._level)

    def say(self, line: str, urgent: bool) -> None:
        """Print what must be shown above the bars; the rest is in them."""
        if urgent:
            self.console.print(escape(line), highlight=False, soft_wrap=True)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars as they are now."""
        work = progress.current()
        if self._calls is not None and (work is None or not work.counts.asked):
            self.update(self._calls, visible=False)
        elif self._calls is not None and work is not None:
            self.update(
                self._calls,
                visible=True,
                description=f"  {work.stage} {work.partition}",
                completed=work.done,
                total=work.counts.asked,
                calls=str(work).partition(" calls")[2].removeprefix(", "),
            )
        yield from super().get_renderables()


class Lines:
    """Plain lines: each level, what must be shown, and where a step is every half a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._printed = clock()

    def watch(self, event: "Event") -> None:
        """Follow a build."""
        if event.kind == "level":
            self._print(f"{title(event.assets)}: {event.total} run(s)")

    def say(self, line: str, urgent: bool) -> None:
        """Print a line of a step, if it must be shown or none was for a while."""
        if urgent or self._clock() - self._printed >= QUIET_S:
            self._print(line)

    def _print(self, line: str) -> None:
        errors.print(escape(line), highlight=False, soft_wrap=True)
        self._printed = self._clock()


def title(assets: tuple[str, ...]) -> str:
    """Assets in short: lanes of the same kind are counted."""
    lanes = defaultdict(list)
    for name in assets:
        lane, _, rest = name.partition("/")
        lanes[lane if rest else name].append(rest)
    return ", ".join(
        f"{n} {len(r)}×" if len(r) > 1 else "/".join([n, *r]).rstrip("/") for n, r in lanes.items()
    )
