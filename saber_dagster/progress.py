"""What paid work is at. Whoever works says so here; whoever shows progress looks and listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from saber_dagster.ledger.counts import Counts


@dataclass(frozen=True)
class Work:
    """A step that asks an engine; its counts change while it does."""

    stage: str
    partition: str
    counts: Counts

    @property
    def done(self) -> int:
        """Calls that have an answer, of those known so far."""
        return self.counts.replayed + self.counts.made

    def __str__(self) -> str:
        """Calls, calls per second, tokens, money and time left."""
        return self.counts.line(max(self.counts.asked - self.done, 0))


Sink = Callable[[str, bool], None]
"""Takes a line, and whether it must be shown."""


def _ignore(line: str, urgent: bool) -> None:
    """Nobody listens."""


_sink: Sink = _ignore
_current: Work | None = None


def current() -> Work | None:
    """The step that asks an engine in this process at the moment."""
    return _current


def say(line: str, urgent: bool = False) -> None:
    """Tell whoever listens how it goes; ``urgent`` if it must not be left out."""
    _sink(line, urgent)


@contextmanager
def at_work(work: Work) -> Iterator[None]:
    """Within this context a step asks an engine."""
    global _current
    _current = work
    try:
        yield
    finally:
        _current = None


@contextmanager
def listening(sink: Sink) -> Iterator[None]:
    """Within this context lines go to ``sink``."""
    global _sink
    _sink = sink
    try:
        yield
    finally:
        _sink = _ignore
