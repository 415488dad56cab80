"""What a dry run says: how many calls are missing, and what they would cost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from saber_dagster.engines import Call, Engine, Usage
from saber_dagster.hashing import canonical_json
from saber_dagster.ledger.budget import engine_price
from saber_dagster.ledger.counts import amount
from saber_dagster.ledger.rows import LedgerError

_OF_LIMIT = "completions of max_tokens, as there is no earlier reply: an upper limit"
_UNKNOWN = "completions not counted, as there is neither an earlier reply nor a limit"
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True)
class Forecast:
    """What the missing calls of a step would cost.

    Attributes:
        calls: calls that the ledger has no reply to.
        replayed: calls that cost nothing.
        prompt_tokens: estimated from the messages.
        completion_tokens: estimated; see ``basis``.
        price: US dollars; None if the engine does not know its prices.
        basis: what the estimates rest on.
        tasks: of the missing calls.
    """

    calls: int
    replayed: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    basis: str
    tasks: tuple[str, ...] = ()


class DryRun(LedgerError):  # noqa: N818 (not an error: an end)
    """A dry run ended with calls that were not made; what they would cost is in ``forecast``."""

    def __init__(self, what: str, forecast: Forecast) -> None:
        self.forecast = forecast
        money = "an unknown sum" if forecast.price is None else f"${forecast.price:,.2f}"
        super().__init__(
            f"{what}: {forecast.calls:,} calls are missing and {forecast.replayed:,} are in the ledger;"
            f" about {amount(forecast.prompt_tokens)} + {amount(forecast.completion_tokens)} tokens and"
            f" {money} ({forecast.basis}). Nothing was asked: ledger.mode is dry_run"
        )


class _Length(NamedTuple):
    """How many tokens a completion of a task is taken to have, and why."""

    tokens: float
    replies: int = 0
    of_limit: bool = False
    unknown: bool = False


class Estimate:
    """Sums up missing calls, each once."""

    def __init__(
        self, engine: Engine, earlier: Mapping[tuple[str, str], tuple[int, float]]
    ) -> None:
        """Begin with nothing.

        Args:
            engine: that would be asked.
            earlier: (task, parameters as canonical JSON) → number and mean length, in tokens, of
                earlier replies.
        """
        self._engine = engine
        self._earlier = earlier
        self._tasks: dict[str, _Length] = {}
        self._keys: set[str] = set()
        self._prompt_tokens = 0
        self._completion_tokens = 0.0

    def add(self, key: str, call: Call) -> None:
        """Count a missing call."""
        if key in self._keys:
            return
        self._keys.add(key)
        count = _counter(self._engine)
        for message in self._engine.messages(call):
            self._prompt_tokens += count(message["content"])
        if call.task not in self._tasks:
            self._tasks[call.task] = self._length(call.task)
        self._completion_tokens += self._tasks[call.task].tokens

    def _length(self, task: str) -> "_Length":
        params = self._engine.params(task)
        limit = _limit(params)
        if earlier := self._earlier.get((task, canonical_json(dict(params)).decode())):
            replies, mean = earlier
            return _Length(mean if limit is None else min(mean, limit), replies)
        return _Length(limit or 0, of_limit=limit is not None, unknown=limit is None)

    def forecast(self, replayed: int) -> Forecast:
        """What was summed up, beside the calls that the ledger has."""
        lengths = self._tasks.values()
        replies = sum(length.replies for length in lengths)
        bases = [
            text
            for holds, text in (
                (replies, f"completions as long as the mean of {replies:,} earlier replies"),
                (any(length.of_limit for length in lengths), _OF_LIMIT),
                (any(length.unknown for length in lengths), _UNKNOWN),
            )
            if holds
        ]
        basis = "; ".join(bases)
        usage = Usage(self._prompt_tokens, round(self._completion_tokens))
        price = engine_price(self._engine)
        money = price(usage) if price and price(Usage(1_000_000, 1_000_000)) else None
        if getattr(self._engine, "free", False):
            money = 0.0
        return Forecast(
            len(self._keys),
            replayed,
            usage.prompt,
            usage.completion,
            money,
            basis,
            tuple(self._tasks),
        )


def _limit(params: Mapping[str, Any]) -> int | None:
    limits = [params[name] for name in _LIMITS if isinstance(params.get(name), int)]
    return limits[0] if limits else None


def _counter(engine: Engine) -> Callable[[str], int]:
    """The engine's own count of tokens, or an estimate."""
    count: Callable[[str], int] | None = getattr(engine, "count_tokens", None)
    if count is not None:
        return count
    from saber_dagster.tokens import estimate_tokens

    return estimate_tokens
