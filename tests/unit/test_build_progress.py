"""What `saber build` shows while it asks: bars, or lines now and then."""

import io

import pytest
from rich.console import Console

from saber_dagster import progress
from saber_dagster.cli import build_progress
from saber_dagster.cli.build_progress import Bars, Lines, title
from saber_dagster.ledger import Counts
from saber_dagster.materialize import Event

LEVEL = Event("level", ("judge/a/ratings", "judge/b/ratings", "thresholds"), total=3)


@pytest.fixture
def shown(monkeypatch):
    """Everything that is printed to the errors' console."""
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=False)
    monkeypatch.setattr(build_progress, "errors", console)
    return file.getvalue


def test_lanes_of_a_kind_are_counted():
    assert title(LEVEL.assets) == "judge 2×, thresholds"
    assert title(("judge/a/ratings",)) == "judge/a/ratings"


def test_without_a_terminal_a_line_is_printed_every_half_minute_and_what_is_urgent_at_once(shown):
    now = [0.0]
    lines = Lines(lambda: now[0])
    lines.watch(LEVEL)
    for second, line, urgent in ((10, "early", False), (20, "[late]", True), (49, "soon", False)):
        now[0] = second
        lines.say(line, urgent)
    now[0] = 50
    lines.say("in time", False)
    assert shown().splitlines() == ["judge 2×, thresholds: 3 run(s)", "[late]", "in time"]


def test_the_bar_of_a_step_shows_calls_from_the_ledger_failures_money_and_time_left(shown):
    counts = Counts(asked=100, replayed=40, made=20, price=1.5, seconds=10.0, prompt_tokens=2_000)
    counts.by_status.update(ok=18, parse_error=2)
    bars = Bars()
    bars.watch(LEVEL)
    with progress.at_work(progress.Work("topic_tags", "c00", counts)):
        bars.console.print(bars.get_renderable())
        (calls,) = (task for task in bars.tasks if "topic_tags" in task.description)
        assert (calls.visible, calls.completed, calls.total) == (True, 60, 100)
        text = shown()
        for part in ("40 from the ledger", "2 parse_error", "2.0 calls/s", "$1.50", "20 s left"):
            assert part in text
    bars.get_renderable()
    assert not calls.visible, "the step has ended"
