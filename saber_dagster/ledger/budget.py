"""The limit of what a session may spend."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from saber_dagster.engines import Engine, Usage
from saber_dagster.ledger.counts import Counts
from saber_dagster.ledger.rows import LedgerError


class BudgetSpent(LedgerError):  # noqa: N818 (not an error: a stop)
    """The budget is spent. Everything that was paid is kept; a later run goes on."""


def engine_price(engine: Engine) -> Callable[[Usage], float] | None:
    """The engine's own function from tokens to US dollars, if it has one."""
    price = getattr(engine, "price", None)
    return price if callable(price) else None


def knows_price(engine: Engine) -> bool:
    """Whether a price of 0 in its replies means that they cost nothing."""
    price = engine_price(engine)
    return bool(getattr(engine, "free", False) or (price and price(Usage(1_000_000, 1_000_000))))


def dollars(amount: float) -> str:
    """A sum with four decimals, or as many as show four of its digits: ``$2.0000``, ``$0.00001234``."""
    places = 3 - math.floor(math.log10(amount)) if amount > 0 else 0
    return f"${amount:,.{max(4, places)}f}"


@dataclass(frozen=True)
class Budget:
    """What a session may spend; None is no limit.

    It is looked at after each reply, so calls in flight then may pass it.

    Attributes:
        usd: US dollars.
        calls: replies.
        paid_usd: part of it that was spent before the session; likewise ``paid_calls``.
    """

    usd: float | None = None
    calls: int | None = None
    paid_usd: float = 0.0
    paid_calls: int = 0

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.usd is not None or self.calls is not None

    def after(self, calls: int, usd: float) -> "Budget":
        """The same budget, of which so much was spent before."""
        return replace(self, paid_usd=usd, paid_calls=calls)

    def check(self, engine: Engine, what: str) -> None:
        """Before the first call: a limit of money needs prices.

        Raises:
            LedgerError: if the engine counts tokens and does not know what they cost. An engine
                without a method ``price`` is taken at the prices in its replies.
        """
        price = engine_price(engine)
        if self.usd is not None and price and not price(Usage(1_000_000, 1_000_000)):
            raise LedgerError(
                f"{what} has no prices, so ledger.budget_usd cannot be kept. Give the engine's option"
                " price_per_million, or limit calls by ledger.budget_calls"
            )

    def spent(self, counts: Counts) -> str:
        """Which limit has been reached, in words; empty if none."""
        calls, usd = self.paid_calls + counts.made, self.paid_usd + counts.price
        if self.calls is not None and calls >= self.calls:
            return f"ledger.budget_calls is {self.calls:,} and {calls:,} calls were made"
        if self.usd is not None and usd >= self.usd:
            return f"ledger.budget_usd is {self.usd:g} and {dollars(usd)} were spent"
        return ""
