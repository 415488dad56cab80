"""The limit of what a session may spend."""

from collections.abc import Callable
from dataclasses import dataclass

from saber_dagster.engines import Engine, Usage
from saber_dagster.ledger.counts import Counts
from saber_dagster.ledger.rows import LedgerError


class BudgetSpent(LedgerError):  # noqa: N818 (not an error: a stop)
    """The budget is spent. Everything that was paid is kept; a later run goes on."""


def engine_price(engine: Engine) -> Callable[[Usage], float] | None:
    """The engine's own function from tokens to US dollars, if it has one."""
    price = getattr(engine, "price", None)
    return price if callable(price) else None


@dataclass(frozen=True)
class Budget:
    """What a session may spend; None is no limit.

    It is looked at after each reply, so calls in flight then may pass it.
    """

    usd: float | None = None
    calls: int | None = None

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
        if self.calls is not None and counts.made >= self.calls:
            return f"ledger.budget_calls is {self.calls:,} and {counts.made:,} calls were made"
        if self.usd is not None and counts.price >= self.usd:
            return f"ledger.budget_usd is {self.usd:g} and ${counts.price:,.4f} were spent"
        return ""
