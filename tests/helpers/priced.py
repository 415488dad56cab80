"""A judge for tests with a prompt, tokens and a price: the longer document is preferred."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resources.engines.prompted import PromptedEngine
from saber_dagster.engines import Call, Reply, Usage

CALL_USD = 0.25


class PricedEngine(PromptedEngine):
    """Every call takes 120 tokens and costs a quarter of a dollar."""

    model = "priced"

    def __init__(self, revision: str = "1") -> None:
        self.revision = revision

    def params(self, task: str) -> Mapping[str, Any]:
        return {"temperature": 0.5}

    def price(self, usage: Usage) -> float:
        return CALL_USD * (usage.prompt + usage.completion) / 120

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        for position, call in enumerate(calls):
            first, second = (len(call.inputs[name]["solution"]) for name in ("first", "second"))
            text = (
                f"The first has {first} letters.\n<verdict>{1 if first > second else 2}</verdict>"
            )
            usage = Usage(prompt=100, completion=20, reasoning=5)
            yield position, Reply("ok", text, "Let me count.", usage=usage, price=self.price(usage))
