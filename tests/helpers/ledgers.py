"""A judge with a real prompt, calls for it, and a ledger that has its replies."""

import os

from resources.engines.prompted import PromptedEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, Call, Reply, Usage
from saber_dagster.ledger import Ledger
from saber_dagster.replies import parse_verdict

TEXT = "Let $x \\in \\{1, 2\\}$ with {{problem}} and \x00 é 😀. " * 4
DOCUMENTS = [{"problem": f"{n} {TEXT}", "solution": f"{n}: {TEXT}"} for n in range(12)]


def judgment(n: int) -> Call:
    """One of 1,728 judgments, with texts that are archived."""
    query, first, second = n % 12, n // 12 % 12, n // 144 % 12
    parts = {"query": query, "first": first, "second": second}
    inputs = {name: DOCUMENTS[number] for name, number in parts.items()}
    return Call(PAIRWISE_JUDGMENT, inputs, f"q{n}")


class Judge(PromptedEngine):
    """Prefers the first document; ``asked`` has the items. It says which process it is."""

    model, revision = "org/judge", "r1"

    def __init__(self, cut: bool = False) -> None:
        self.cut = cut
        self.asked: list[str] = []

    def params(self, task):
        return {"temperature": 0, "stop": ["é"]}

    def messages(self, call):
        messages = super().messages(call)
        return [{**m, "content": m["content"][:300]} for m in messages] if self.cut else messages

    def answer(self, calls):
        usage = Usage(100, 10)
        for position, call in enumerate(calls):
            self.asked.append(call.item)
            text = f"By {os.getpid()}: <verdict>1</verdict>"
            yield position, Reply("ok", text, usage=usage, truncated_input=self.cut)


def judge(ledger: Ledger, numbers, engine=None, partition="c00", stage="tournament_rounds"):
    """Ask judgments in a session of their own; returns its outcomes and counts."""
    with ledger.session(engine or Judge(), stage, partition) as session:
        outcomes = session.ask([judgment(n) for n in numbers], lambda _, text: parse_verdict(text))
    return outcomes, session.counts
