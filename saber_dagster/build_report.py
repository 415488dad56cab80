"""What a build did, and what it took."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saber_dagster.freshness import Partition


@dataclass
class AssetCost:
    """What one partition of an asset took to materialize, or to fail."""

    seconds: float = 0.0
    rows: int = 0
    calls_asked: int = 0
    calls_made: int = 0
    price_usd: float = 0.0
    tokens: int = 0

    def add_calls(self, metadata: Mapping[str, Any]) -> None:
        """Take over what the metadata of a step say of its calls."""
        self.calls_asked += int(metadata.get("calls_asked", 0))
        self.calls_made += int(metadata.get("calls_made", 0))
        self.price_usd += float(metadata.get("price_usd", 0.0))
        self.tokens += int(metadata.get("tokens", 0))


@dataclass
class RunRecord:
    """One run: its assets with what each took, and the peak memory of the process meanwhile."""

    partition: Partition
    seconds: float
    peak_mib: float
    assets: dict[str, AssetCost]


@dataclass
class BuildReport:
    """What a build did."""

    runs: list[RunRecord] = field(default_factory=list)
    fresh: int = 0
    seconds: float = 0.0

    def by_asset(self) -> dict[str, tuple[int, AssetCost, float]]:
        """Of each asset the number of partitions run, their summed cost, and the peak memory."""
        totals: dict[str, tuple[int, AssetCost, float]] = {}
        for run in self.runs:
            for name, cost in run.assets.items():
                n, total, peak = totals.get(name, (0, AssetCost(), 0.0))
                summed = AssetCost(
                    total.seconds + cost.seconds,
                    total.rows + cost.rows,
                    total.calls_asked + cost.calls_asked,
                    total.calls_made + cost.calls_made,
                    total.price_usd + cost.price_usd,
                    total.tokens + cost.tokens,
                )
                totals[name] = (n + 1, summed, max(peak, run.peak_mib))
        return totals

    def paid(self, assets: Collection[str]) -> tuple[int, float]:
        """Calls made for some assets and what they cost in US dollars, failed steps included."""
        costs = [run.assets[name] for run in self.runs for name in run.assets if name in assets]
        return sum(cost.calls_made for cost in costs), sum(cost.price_usd for cost in costs)


def forget_peak() -> None:
    """Start the process's peak memory anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_mib() -> float:
    """The process's peak memory since it was last forgotten."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
