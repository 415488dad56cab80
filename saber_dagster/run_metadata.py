"""What the parts of a run tell each other through Dagster: tags of runs, metadata of steps."""

from typing import Any

from saber_dagster.ledger import Counts

BUDGET_USD = "saber/budget_usd"
BUDGET_CALLS = "saber/budget_calls"
"""Tags: what a run may spend, over the budget of the settings."""
DRY_RUN = "saber/dry_run"
"""Tag: no engine is asked; the run's steps say what they would pay, and make nothing."""
STOPPED_BY = "saber/stopped_by"
"""Metadata of a failed step: ``budget`` or ``dry_run`` if that is why it stopped."""
FORECAST = "saber/forecast"
"""Metadata of a step that a dry run stopped: what it would pay."""


def call_metadata(counts: Counts) -> dict[str, Any]:
    """What the calls of a step came to and cost, also of one that failed.

    ``calls_asked`` counts every question, ``calls_replayed`` those that the ledger answered, and
    ``calls_made`` those that an engine was paid for; the rest is about the latter.
    """
    failed = {status: n for status, n in sorted(counts.by_status.items()) if status != "ok"}
    return {
        "calls_asked": counts.asked,
        "calls_replayed": counts.replayed,
        "calls_made": counts.made,
        "calls_failed": counts.failed,
        **{f"calls_{status}": n for status, n in failed.items()},
        "calls_asked_again": counts.reasked,
        "calls_paid_twice": counts.duplicates,
        "inputs_truncated": counts.truncated_input,
        "tokens": counts.tokens,
        "tokens_prompt": counts.prompt_tokens,
        "tokens_completion": counts.completion_tokens,
        "tokens_reasoning": counts.reasoning_tokens,
        "tokens_cached": counts.cached_tokens,
        "price_usd": counts.price,
        "calls_per_second": counts.made / counts.seconds if counts.seconds > 0 else 0.0,
    }
