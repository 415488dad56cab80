"""A step that asks a Batch API through the ledger; run in a process of its own, it can be killed.

``python batch_step.py LEDGER URL CALLS [TEXT]``, with MARKED_KEY in the environment.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resources.engines import batch_client
from resources.engines.openai_batch import BatchEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, Call
from saber_dagster.ledger import Ledger, Outcome
from saber_dagster.replies import parse_verdict

SETTLE_S = 0.4


def make(url: str, **options: Any) -> BatchEngine:
    batch_client.SETTLE_S = SETTLE_S
    batch_client.RETRY_PAUSE_S = 0.01
    options = {"api_key_env": "MARKED_KEY", "retries": 2, "poll_s": 0.02, **options}
    return BatchEngine("judge", "r1", base_url=f"{url}/v1", **options)


def make_calls(n: int, text: str = "p") -> list[Call]:
    document = {"problem": "p", "solution": "s"}
    return [
        Call(
            PAIRWISE_JUDGMENT,
            {
                "query": {"problem": f"{text}{i}", "solution": "s"},
                "first": document,
                "second": document,
            },
            f"item {i}",
        )
        for i in range(n)
    ]


def ask(
    root: Path, url: str, calls: int | Sequence[Call], partition: str = "p0", **options: Any
) -> list[Outcome[float]]:
    """Ask calls, or so many, at most four in a batch."""
    if isinstance(calls, int):
        calls = make_calls(calls)
    engine = make(url, **{"max_requests": 4, **options})
    with Ledger(root).session(engine, "judge", partition) as session:
        return session.ask(calls, lambda call, text: parse_verdict(text))


if __name__ == "__main__":
    ask(Path(sys.argv[1]), sys.argv[2], make_calls(int(sys.argv[3]), *sys.argv[4:]))
