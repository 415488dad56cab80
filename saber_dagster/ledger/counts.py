"""What a session asked and what it cost, and the line that says so."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counts:
    """What a session asked and what it cost.

    Attributes:
        asked: calls asked, equal ones and those asked again among them.
        replayed: answered from the ledger, or by the reply to an equal call.
        made: replies that the engine gave.
        by_status: the replies made, by status.
        prompt_tokens: of the replies made; likewise the other tokens and ``price`` (US dollars).
        truncated_input: replies, made or replayed, to calls that were cut to fit into the context.
        reasked: calls asked again since the reply before did not parse.
        duplicates: replies that another step paid at the same time.
        seconds: wall time in which the engine was at work.
    """

    asked: int = 0
    replayed: int = 0
    made: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    price: float = 0.0
    truncated_input: int = 0
    reasked: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """Replies made that are not ok."""
        return self.made - self.by_status["ok"]

    @property
    def tokens(self) -> int:
        """Tokens of the replies made: of prompts and completions, in which reasoning is contained."""
        return self.prompt_tokens + self.completion_tokens

    def line(self, left: int) -> str:
        """Where a session stands, for people.

        Args:
            left: calls known and not answered yet.
        """
        notes = [f"{self.replayed:,} from the ledger"] if self.replayed else []
        notes += [
            f"{number:,} {status}"
            for status, number in sorted(self.by_status.items())
            if status != "ok" and number
        ]
        parts = [f"{self.asked - left:,} of {self.asked:,} calls"]
        parts[0] += f" ({', '.join(notes)})" if notes else ""
        rate = self.made / self.seconds if self.seconds > 0 else 0.0
        if self.made:
            parts += [f"{rate:,.1f} calls/s", f"{amount(self.tokens)} tokens"]
        if self.price:
            parts.append(f"${self.price:,.2f}")
        if left and rate:
            parts.append(f"about {duration(left / rate)} left")
        return ", ".join(parts)


def amount(number: float) -> str:
    """A large number in three digits: ``950``, ``41 k``, ``1.2 M``."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return (
                f"{number / size:.1f}{unit}" if number < 10 * size else f"{number / size:.0f}{unit}"
            )
    return f"{number:.0f}"


def duration(seconds: float) -> str:
    """A time in its largest unit: ``54 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
