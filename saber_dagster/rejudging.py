"""Which partitions of the judges' lanes are due, in which order, and under which run keys.

A partition is due if it is missing or stale and everything it reads is settled: fresh, or handed out by
a pinned release. One whose check failed is due only if it reads something else by now: else the ledger
would give the same replies.

Run keys have the form ``SLUG@REVISION:PROMPT:STATE:TABLE:PARTITION:TRY``. PROMPT is the start of the
prompt's SHA-256. STATE is a digest of the asset, its code version, the data versions of its inputs, and
the run that made the table which is there now. So each of these makes another key: a new version, other
inputs, and also going back to an earlier version, as another run has made the table since. TRY counts the
runs that were started for the rest of the key; it rises only if a run ended without making the table.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from saber_dagster.engines import PromptRef
from saber_dagster.freshness import Graph, Key, Node, Partition, State, inputs_of, states
from saber_dagster.hashing import digest
from saber_dagster.releases import PINNED_ASSETS, Release
from saber_dagster.tables import WHOLE, Provenance, TableStore, input_name

_ASKED_TABLE = "judgments"


@dataclass(frozen=True)
class Lane:
    """A judge as run keys name it; ``entry`` is a digest of its entry in ``judges.yaml``."""

    slug: str
    revision: str
    prompt: PromptRef
    entry: str
    free: bool = False
    """Whether the judge says that its answers cost nothing."""

    @property
    def version(self) -> str:
        """Changes with the entry, the revision and the prompt."""
        return digest([self.revision, self.prompt.sha256, self.entry])


@dataclass(frozen=True)
class Due:
    """A partition that should be made now."""

    slug: str
    node: Node
    partition: Partition
    key: str
    """The run key without the number of the try."""
    present: Provenance | None
    """How the table came about that is there now."""
    free: bool = False
    """Whether its judge costs nothing."""

    @property
    def place(self) -> tuple[Key, Partition]:
        """Asset and partition."""
        return self.node.key, self.partition

    @property
    def asks(self) -> bool:
        """Whether making it asks the judge."""
        return self.node.table == _ASKED_TABLE

    @property
    def paid(self) -> bool:
        """Whether making it costs money."""
        return self.asks and not self.free


@dataclass(frozen=True)
class Survey:
    """The lanes of some judges as they are on disk."""

    due: tuple[Due, ...]
    """In the order in which to start them: one of each judge in turn, upstream first."""
    waiting: tuple[tuple[State, str], ...]
    """Partitions that are not fresh and cannot be made yet, and the input that they wait for."""
    failed: tuple[State, ...]
    """Partitions that failed a check with what they read now."""


def survey(store: TableStore, graph: Graph, lanes: Iterable[Lane], release: Release) -> Survey:
    """Look at every partition of the judges' lanes.

    Args:
        store: the home's tables.
        graph: all assets, in topological order.
        lanes: the judges, in the order of ``judges.yaml``.
        release: the current release; until it is complete, nothing is due.
    """
    by_slug = {lane.slug: lane for lane in lanes}
    inside = [node for node in graph.values() if _slug_of(node.key) in by_slug]
    wanted = {key for node in inside for key in (node.key, *node.parents)}
    looked_at = [node for node in graph.values() if node.key in wanted]
    absent = set() if release.complete else {("release",)}
    settled: dict[tuple[Key, Partition], str] = {}  # their data versions
    due: dict[str, list[Due]] = {slug: [] for slug in by_slug}
    waiting: list[tuple[State, str]] = []
    failed: list[State] = []
    for state in states(store, graph, looked_at, absent):
        place, slug = (state.node.key, state.partition), _slug_of(state.node.key)
        fresh = state.condition == "fresh"
        if slug not in by_slug:
            if state.provenance and (fresh or (release.complete and _is_handed_out(state))):
                settled[place] = state.provenance.data_version
            continue
        inputs = list(inputs_of(graph, state.node, state.partition))
        missing = [source for source in inputs if source not in settled]
        if missing:
            waiting.append((state, input_name(*missing[0])))
            continue
        now = {input_name(*source): settled[source] for source in inputs}
        if fresh and state.provenance:
            settled[place] = state.provenance.data_version
        elif state.condition == "failed" and state.provenance and _read(state.provenance, now):
            failed.append(state)
        else:
            lane = by_slug[slug]
            key, made = _run_key(lane, state, now), state.provenance
            due[slug].append(Due(slug, state.node, state.partition, key, made, lane.free))
    in_turn = zip_longest(*due.values())
    return Survey(
        tuple(item for turn in in_turn for item in turn if item), tuple(waiting), tuple(failed)
    )


@dataclass(frozen=True)
class Campaign:
    """What the sensor remembers between two ticks: which judges have changed and are not done yet.

    Attributes:
        known: the judges' versions as of the last tick.
        open: slugs of the judges that changed and whose lanes are not complete.
        left: what is left to give to runs, in US dollars; None without a budget.
    """

    known: dict[str, str]
    open: tuple[str, ...] = ()
    left: float | None = None

    @classmethod
    def begin(cls, lanes: Iterable[Lane]) -> "Campaign":
        """Know the judges that there are; none of them has changed."""
        return cls({lane.slug: lane.version for lane in lanes})

    @classmethod
    def parse(cls, cursor: str | None) -> "Campaign | None":
        """A cursor's text; None if there is none, or not one of ours."""
        try:
            values = json.loads(cursor or "")
            return cls(dict(values["known"]), tuple(values["open"]), values["left"])
        except (ValueError, TypeError, KeyError):
            return None

    def cursor(self) -> str:
        """The text that :meth:`parse` reads."""
        return json.dumps({"known": self.known, "open": list(self.open), "left": self.left})

    def follow(self, lanes: Sequence[Lane], budget_usd: float | None) -> "Campaign":
        """Take up the judges that are new or have changed; each such change brings a new budget."""
        now = Campaign.begin(lanes).known
        changed = {slug for slug, version in now.items() if self.known.get(slug) != version}
        still = changed | set(self.open)
        return Campaign(
            now,
            tuple(slug for slug in now if slug in still),
            budget_usd if changed else self.left,
        )

    @property
    def spent(self) -> bool:
        """Whether the runs that were started have all the money; the schedule starts the others."""
        return self.left == 0.0

    def share(self, due: int, started: int) -> tuple[float | None, "Campaign"]:
        """What each paid run gets, and what is left then.

        Args:
            due: paid runs that are due; what is left is for all of them alike.
            started: how many of them start now.
        """
        if self.left is None or not due:
            return None, self
        share = self.left / due
        return share, replace(self, left=share * (due - started))

    def close(self) -> "Campaign":
        """Nothing more to do until a judge changes again."""
        return replace(self, open=(), left=None)


def _slug_of(key: Key) -> str:
    return key[1] if key[0] == "judge" else ""


def _is_handed_out(state: State) -> bool:
    """Whether a pinned table only looks stale: its inputs have moved, and it hands out the release."""
    return (
        state.node.key in PINNED_ASSETS
        and state.condition == "stale"
        and state.provenance is not None
        and state.provenance.code_version == state.node.code_version
    )


def _read(made: Provenance, inputs: dict[str, str]) -> bool:
    """Whether a table was made from its inputs as they are now."""
    return all(made.inputs.get(name) == version for name, version in inputs.items())


def _run_key(lane: Lane, state: State, inputs: dict[str, str]) -> str:
    present = state.provenance.run_id if state.provenance else ""
    told = [list(state.node.key), state.node.code_version, inputs, present]
    judge, table = f"{lane.slug}@{lane.revision}", state.node.key[-1]
    place = state.partition or WHOLE
    return ":".join((judge, lane.prompt.sha256[:12], digest(told), table, place))
