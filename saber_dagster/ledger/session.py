"""One step's access to the ledger: answers calls from it, and has the engine answer the rest."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from saber_dagster.engines import Call, Engine, Reply, call_key
from saber_dagster.ledger.answers import Answers, answers, stop
from saber_dagster.ledger.budget import Budget, BudgetSpent
from saber_dagster.ledger.counts import Counts
from saber_dagster.ledger.forecast import DryRun, Estimate
from saber_dagster.ledger.record import Recorder
from saber_dagster.ledger.rows import LedgerError, Mode, utf8
from saber_dagster.ledger.store import Store
from saber_dagster.plugins import call_user
from saber_dagster.replies import ParseError

LOG_SECONDS = 30.0
"""A line is logged so often."""

Value = TypeVar("Value")
Parse = Callable[[Call, str], Value]
Guess = Callable[[Call], Value]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Value]):
    """What a call came to: a parsed value if ``status`` is ok, else None and the reason.

    ``earlier`` has the keys of the replies before, which did not parse. A dry run has the status
    ``dry_run`` where nothing is known.
    """

    key: str
    status: str
    value: Value | None
    error: str = ""
    earlier: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all replies that were paid for this outcome, the last one deciding."""
        return (*self.earlier, self.key)


class Session:
    """One step's access to the ledger and its engine; made by :meth:`Ledger.session`."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        stage: str,
        partition: str,
        run_id: str,
        mode: Mode,
        budget: Budget,
        reasks: int,
        log: Callable[[str], None] | None,
    ) -> None:
        self.counts = Counts()
        self._store = store
        self._engine = engine
        self._stage = stage
        self._what = f"{stage} {partition}"
        self._name = f"{stage}: engine {engine.model}"
        self._mode = mode
        self._budget = budget
        self._reasks = reasks
        self._log = log
        self._logged = time.monotonic()
        self._estimate: Estimate | None = None
        self._recorder = Recorder(store, engine, stage, run_id, self._name)
        self._prepared = False

    def __enter__(self) -> "Session":
        self._store.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.flush()
        if kind is None:
            self.counts.duplicates = self._store.duplicates()
        if self._log and self.counts.asked:
            left = self.counts.asked - self.counts.replayed - self.counts.made
            self._log(f"{self._what}: {self.counts.line(max(left, 0))}")
        if kind is None and (overruled := self._store.overruled):
            raise LedgerError(
                f"{self._what}: another step paid the same calls at the same time, and got another"
                f" reply to {len(overruled):,} of them, such as {overruled[0]}; the one stored first"
                " counts. Run the partition again: nothing is paid"
            )
        if kind is None and self._estimate:
            raise DryRun(self._what, self._estimate.forecast(self.counts.replayed))

    def flush(self) -> None:
        """Make a segment of the replies so far."""
        self._store.flush()

    def ask(
        self, calls: Sequence[Call], parse: Parse[Value], guess: Guess[Value] | None = None
    ) -> list[Outcome[Value]]:
        """Answer calls from the ledger, and the rest by the engine.

        A call whose reply does not parse is asked again, as often as the session's ``reasks`` says,
        unless the engine's messages for a further attempt are the same.

        Args:
            calls: in any order; equal ones are asked once.
            parse: turns the text of a complete reply into a value, or raises ``ParseError``.
            guess: the value that a dry run takes for a missing reply.

        Returns:
            One outcome per call, in order. Failures are outcomes, never values.

        Raises:
            LedgerError: if a call did not get through (after all other replies were stored), if the
                engine did not yield each position once with a reply that can be stored, or in replay
                mode if a reply is missing.
            BudgetSpent: if the budget was spent before all calls had a reply.
            SaberError: if the engine raises. The replies before any error are kept.
        """
        keys = self._keys(calls)
        outcomes = self._round(keys, calls, parse, guess)
        for attempt in range(1, self._reasks + 1):
            failed = [n for n, outcome in enumerate(outcomes) if outcome.status == "parse_error"]
            again = [replace(calls[n], attempt=attempt) for n in failed]
            changed = [
                (n, key, call)
                for n, key, call in zip(failed, self._keys(again), again, strict=True)
                if key not in outcomes[n].keys
            ]
            if self._mode == "replay":  # the ledger may have been made with fewer attempts
                stored = self._store.known(key for _, key, _ in changed)
                changed = [one for one in changed if one[1] in stored]
            if not changed:
                break
            numbers, keys, again = map(list, zip(*changed, strict=True))
            self.counts.reasked += len(again)
            for n, outcome in zip(numbers, self._round(keys, again, parse, guess), strict=True):
                outcomes[n] = replace(outcome, earlier=outcomes[n].keys)
        return outcomes

    def _keys(self, calls: Sequence[Call]) -> list[str]:
        return [
            call_user(self._name, "params or messages", call_key, self._engine, call)
            for call in calls
        ]

    def _round(
        self,
        keys: Sequence[str],
        calls: Sequence[Call],
        parse: Parse[Value],
        guess: Guess[Value] | None,
    ) -> list[Outcome[Value]]:
        """One attempt at calls."""
        distinct: dict[str, Call] = {}
        for key, call in zip(keys, calls, strict=True):
            distinct.setdefault(key, call)
        known = self._store.known(distinct)
        missing = {key: call for key, call in distinct.items() if key not in known}
        self.counts.asked += len(calls)
        self.counts.replayed += len(calls) - len(missing)
        outcomes: dict[str, Outcome[Value]] = {}
        if missing:
            outcomes = (
                self._guess(missing, guess)
                if self._mode == "dry_run"
                else self._make(missing, parse)
            )
        for key, said in self._store.read(known).items():
            self.counts.truncated_input += said.truncated_input
            outcomes[key] = _outcome(key, distinct[key], parse, said.status, said.text, said.error)
        return [outcomes[key] for key in keys]

    def _guess(
        self, missing: dict[str, Call], guess: Guess[Value] | None
    ) -> dict[str, Outcome[Value]]:
        if self._estimate is None:
            self._estimate = Estimate(self._engine, self._store.completions())
        for key, call in missing.items():
            self._estimate.add(key, call)
        if guess is None:
            return {key: Outcome(key, "dry_run", None, "not asked") for key in missing}
        return {key: Outcome(key, "ok", guess(call)) for key, call in missing.items()}

    def _make(self, missing: dict[str, Call], parse: Parse[Value]) -> dict[str, Outcome[Value]]:
        keys, calls = list(missing), list(missing.values())
        if self._mode == "replay":
            raise LedgerError(
                f"{self._stage}: the ledger lacks {len(calls)} replies, the first for"
                f" {calls[0].item} (key {keys[0][:12]}); replay mode makes no calls"
            )
        outcomes: dict[str, Outcome[Value]] = {}
        lost: list[str] = []
        fault: Exception | None = None
        left, spent, draining = len(calls), self._budget.spent(self.counts), False
        start, before = time.monotonic(), self.counts.seconds
        with closing(self._answers(calls, spent)) as replies:
            for position, reply in replies:
                key, call = keys[position], calls[position]
                text = utf8(reply.text)
                try:
                    outcome = _outcome(key, call, parse, reply.status, text, reply.error)
                except Exception as error:  # the parser's own; what was paid is kept first
                    fault = fault or error
                    outcome = Outcome(key, "ok", None, "the parser failed")
                outcomes[key] = outcome
                left -= 1
                self._keep(key, call, reply, text, outcome)
                self.counts.seconds = before + time.monotonic() - start
                self._report(left)
                if reply.status == "transport_error":
                    lost.append(f"{call.item}: {reply.error}")
                if left and not draining and (spent := self._budget.spent(self.counts)):
                    draining = stop(self._engine)
                    if not draining:
                        break
        if left and spent:
            self.flush()
            raise BudgetSpent(
                f"{self._what}: stopped with {left:,} of {len(calls):,} calls left, as"
                f" {self._budget.spent(self.counts)}."
                " Everything that was paid is kept; raise the budget or run again, and the build goes"
                " on from here"
            )
        if lost:
            raise LedgerError(
                f"{self._stage}: {len(lost)} of {len(calls)} calls did not get through, such as"
                f" {lost[0]}. Nothing that was paid is lost; run the partition again"
            )
        if left:
            raise LedgerError(
                f"{self._name} left {left} of {len(calls)} calls without a reply; an engine must yield"
                " one for each"
            )
        if fault:
            raise fault
        return outcomes

    def _answers(self, calls: list[Call], spent: str) -> Answers:
        """The engine's replies; none if the budget is spent before, which an engine must be fit for."""
        self._budget.check(self._engine, self._name)
        if spent:
            return
        if not self._prepared:
            keep_state = getattr(self._engine, "keep_state_in", None)
            if callable(keep_state):
                call_user(self._name, "keep_state_in", keep_state, self._store.state)
            self._prepared = True
        yield from answers(self._engine, calls, self._name)

    def _keep(self, key: str, call: Call, reply: Reply, text: str, outcome: Outcome[Any]) -> None:
        self._store.add(self._recorder.row(key, call, reply, text, outcome.status, outcome.error))
        counts, usage = self.counts, reply.usage
        counts.made += 1
        counts.by_status[outcome.status] += 1
        counts.price += reply.price
        counts.prompt_tokens += usage.prompt
        counts.completion_tokens += usage.completion
        counts.reasoning_tokens += usage.reasoning
        counts.cached_tokens += usage.cached
        counts.truncated_input += reply.truncated_input

    def _report(self, left: int) -> None:
        if self._log and time.monotonic() - self._logged >= LOG_SECONDS:
            self._logged = time.monotonic()
            self._log(f"{self._what}: {self.counts.line(left)}")


def _outcome(
    key: str, call: Call, parse: Parse[Value], status: str, text: str, error: str
) -> Outcome[Value]:
    if status not in ("ok", "parse_error"):
        return Outcome(key, status, None, error)
    try:
        return Outcome(key, "ok", parse(call, text))
    except ParseError as problem:
        return Outcome(key, "parse_error", None, str(problem))
