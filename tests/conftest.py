"""What several test modules share: an engine that says what a test tells it to."""

from collections.abc import Callable, Iterator, Sequence

import hypothesis
import pytest

from saber_dagster.engines import Call, PromptRef, Reply
from saber_dagster.hashing import canonical_json, sha256_hex

# A busy machine is no fault of the code: the suite has a limit of time for each test.
hypothesis.settings.register_profile("saber", deadline=None)
hypothesis.settings.load_profile("saber")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that may take long go first, so that no worker is left with one at the end."""

    def allowed(item: pytest.Item) -> float:
        marker = item.get_closest_marker("timeout")
        return float(marker.args[0]) if marker else 0.0

    items.sort(key=allowed, reverse=True)


class ScriptedEngine:
    """Answers by a function of the call; ``asked`` holds every call in order.

    A string is the text of a complete reply; an exception is raised when its turn comes.
    """

    def __init__(
        self,
        script: Callable[[Call], str | Reply | Exception] = lambda call: call.inputs["text"],
        model: str = "Scripted/Model-1",
        revision: str = "r1",
        params: dict | None = None,
        prompt: str = "Say: {text}",
    ) -> None:
        self.script = script
        self.model = model
        self.revision = revision
        self.asked: list[Call] = []
        self._params = {"temperature": 0} if params is None else params
        self._prompt = prompt

    def params(self, task: str) -> dict:
        return self._params

    def prompt(self, task: str) -> PromptRef:
        return PromptRef(task, sha256_hex(self._prompt))

    def messages(self, call: Call) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": self._prompt},
            {"role": "user", "content": canonical_json(dict(call.inputs)).decode()},
        ]

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        for position, call in enumerate(calls):
            self.asked.append(call)
            said = self.script(call)
            if isinstance(said, Exception):
                raise said
            yield position, said if isinstance(said, Reply) else Reply("ok", said)


@pytest.fixture(scope="session")
def scripted_engine() -> type[ScriptedEngine]:
    return ScriptedEngine
