"""How far a stage is. Whoever shows progress sets the sink; whoever works reports to it."""

from collections.abc import Callable

Sink = Callable[[str, int, int], None]
"""Called with stage, calls done and calls known so far."""


def _ignore(stage: str, done: int, total: int) -> None:
    """Nobody watches."""


_sink: Sink = _ignore


def set_sink(sink: Sink | None) -> None:
    """Send reports to ``sink`` from now on; None to ignore them again."""
    global _sink
    _sink = sink or _ignore


def report(stage: str, done: int, total: int) -> None:
    """Report that ``done`` of ``total`` calls of a stage have an answer."""
    _sink(stage, done, total)
