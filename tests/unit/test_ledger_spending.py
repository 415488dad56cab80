"""Asking again, budgets, dry runs, and what a session does with the engine's extra methods."""

import dataclasses
import time

import pytest

from saber_dagster.engines import Call, Reply, Usage
from saber_dagster.ledger import Budget, BudgetSpent, Counts, DryRun, Ledger, LedgerError
from saber_dagster.replies import ParseError


def calls(*texts):
    return [Call("task", {"text": text}, f"item of {text}") for text in texts]


def upper(call, text):
    if text.startswith("?"):
        raise ParseError(f"cannot read {text}")
    return text.upper()


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def reminding(scripted_engine):
    """An engine that says in its messages which attempt it is."""

    class Reminding(scripted_engine):
        def messages(self, call):
            return [*super().messages(call), {"role": "user", "content": f"again {call.attempt}"}]

    return Reminding


# ------------------------------------------------------------------------------- asking again


def clears_after(attempts):
    """The attempt at which each text parses; any other text never does."""

    def script(call):
        parses = call.attempt >= attempts.get(call.inputs["text"], 99)
        return f"{'' if parses else '?'}{call.inputs['text']}{call.attempt}"

    return script


def test_what_does_not_parse_is_asked_again_and_replayed_the_same_way(ledger, reminding):
    engine = reminding(clears_after({"a": 0, "b": 1, "c": 2}))
    texts = ["a", "b", "c", "d"]
    with ledger.session(engine, "stage", "c00", reasks=2) as session:
        outcomes = session.ask(calls(*texts), upper)
    assert [outcome.value for outcome in outcomes] == ["A0", "B1", "C2", None]
    assert [outcome.status for outcome in outcomes] == ["ok", "ok", "ok", "parse_error"]
    assert [len(outcome.earlier) for outcome in outcomes] == [0, 1, 2, 2]
    assert outcomes[3].error == "cannot read ?d2"
    assert [(call.inputs["text"], call.attempt) for call in engine.asked] == [
        *((text, 0) for text in "abcd"),
        *((text, 1) for text in "bcd"),
        *((text, 2) for text in "cd"),
    ]
    counts = session.counts
    assert (counts.asked, counts.made, counts.reasked, counts.failed) == (9, 9, 5, 6)
    keys = [key for outcome in outcomes for key in outcome.keys]
    assert sorted(keys) == sorted(ledger.frame()["key"]), "every reply that was paid is named"
    with ledger.session(reminding(), "stage", "c00", mode="replay", reasks=2) as session:
        assert session.ask(calls(*texts), upper) == outcomes
    assert (session.counts.made, session.counts.replayed) == (0, 9)


def test_a_ledger_made_without_asking_again_is_replayed_with_it(ledger, reminding):
    with ledger.session(reminding(clears_after({})), "stage", "c00") as session:
        outcomes = session.ask(calls("a", "b"), upper)
    with ledger.session(reminding(), "stage", "c00", mode="replay", reasks=2) as session:
        assert session.ask(calls("a", "b"), upper) == outcomes
        with pytest.raises(LedgerError, match="lacks 1 replies"):
            session.ask(calls("c"), upper)
    assert session.counts.reasked == 0


def test_an_engine_that_ignores_attempts_is_not_asked_again(ledger, scripted_engine):
    engine = scripted_engine(clears_after({}))
    with ledger.session(engine, "stage", "c00", reasks=3) as session:
        (outcome,) = session.ask(calls("a"), upper)
    assert (outcome.status, outcome.earlier, session.counts.reasked) == ("parse_error", (), 0)
    assert len(engine.asked) == 1


def test_a_refusal_after_a_parse_error_is_the_outcome(ledger, reminding):
    engine = reminding(lambda call: Reply("refused", error="no") if call.attempt else "?a")
    with ledger.session(engine, "stage", "c00", reasks=2) as session:
        (outcome,) = session.ask(calls("a"), upper)
    assert (outcome.status, outcome.error, len(outcome.keys)) == ("refused", "no", 2)
    assert len(engine.asked) == 2


# ------------------------------------------------------------------------------------ budgets


class InFlight:
    """Mixed into an engine: keeps three calls in flight, and can be stopped."""

    stopped = False

    def stop(self):
        self.stopped = True

    def answer(self, calls):
        flight = []
        for item in super().answer(calls):
            flight.append(item)
            if len(flight) == 3:
                yield flight.pop(0)
                if self.stopped:
                    break
        yield from flight


def test_a_budget_of_calls_stops_a_plain_engine_at_once(ledger, scripted_engine):
    engine = scripted_engine()
    message = r"stage c00: stopped with 2 of 5 calls left, as ledger.budget_calls is 3 .* run again"
    session = ledger.session(engine, "stage", "c00", budget=Budget(calls=3))
    with session, pytest.raises(BudgetSpent, match=message):
        session.ask(calls(*"abcde"), upper)
    assert session.counts.made == len(engine.asked) == 3
    assert ledger.frame()["text"].to_list() == ["a", "b", "c"]
    with ledger.session(engine, "stage", "c00", budget=Budget(calls=3)) as session:
        assert [outcome.value for outcome in session.ask(calls(*"abcde"), upper)] == list("ABCDE")
    assert session.counts.made == 2


def test_calls_in_flight_are_drained_and_kept(ledger, scripted_engine):
    class Engine(InFlight, scripted_engine):
        pass

    engine = Engine(lambda call: Reply("ok", call.inputs["text"], price=0.5))
    session = ledger.session(engine, "stage", "c00", budget=Budget(usd=1.0))
    with session, pytest.raises(BudgetSpent, match=r"budget_usd is 1 and \$2.0000 were spent"):
        session.ask(calls(*"abcdefgh"), upper)
    assert engine.stopped
    assert session.counts.made == len(engine.asked) == ledger.frame().height == 4


def test_a_budget_that_just_suffices_is_not_spent(ledger, scripted_engine):
    with ledger.session(scripted_engine(), "stage", "c00", budget=Budget(calls=2)) as session:
        assert [outcome.value for outcome in session.ask(calls("a", "b"), upper)] == ["A", "B"]
        assert session.ask(calls("a"), upper)[0].value == "A", "a replay costs nothing"
        with pytest.raises(BudgetSpent, match="stopped with 1 of 1"):
            session.ask(calls("c"), upper)


def test_what_was_paid_before_is_part_of_a_budget(ledger, scripted_engine):
    engine = scripted_engine(lambda call: Reply("ok", "x", price=0.5))
    with ledger.session(engine, "stage", "c00", "run") as session:
        session.ask(calls("a", "b"), upper)
    with ledger.session(engine, "stage", "c01", "other") as session:
        session.ask(calls("c"), upper)
    assert ledger.paid("stage", ["run"]) == (2, 1.0)
    assert ledger.paid("stage", ["run", "other"]) == (3, 1.5)
    assert ledger.paid("stage", ["none"]) == ledger.paid("none", ["run"]) == (0, 0.0)
    before = ledger.paid("stage", ["run"])
    for limit, said, texts in (
        (Budget(usd=1.5), r"\$1.5000 were", "de"),
        (Budget(calls=3), "and 3 calls", "fg"),
    ):
        session = ledger.session(engine, "stage", "c00", budget=limit.after(*before))
        with session, pytest.raises(BudgetSpent, match=said):
            session.ask(calls(*texts), upper)
        assert session.counts.made == 1


def test_a_limit_of_money_needs_prices(ledger, scripted_engine):
    engine = scripted_engine()
    engine.price = lambda usage: 0.0
    session = ledger.session(engine, "stage", "c00", budget=Budget(usd=1.0))
    with (
        session,
        pytest.raises(LedgerError, match=r"no prices.*option price_per_million.*budget_calls"),
    ):
        session.ask(calls("a"), upper)
    assert engine.asked == []


# ----------------------------------------------------------------------------------- dry runs


def test_a_dry_run_forecasts_and_makes_nothing(ledger, scripted_engine):
    def script(call):
        return Reply("ok", "x", usage=Usage(50, 30 if call.inputs["text"] == "a" else 10))

    engine = scripted_engine(script)
    with ledger.session(engine, "stage", "c00") as session:
        session.ask(calls("a", "b"), upper)
    engine = scripted_engine()
    engine.count_tokens = lambda text: 7
    engine.price = lambda usage: usage.prompt * 1.0 + usage.completion * 0.1
    session = ledger.session(engine, "stage", "c00", mode="dry_run").__enter__()
    outcomes = session.ask(calls("a", "c", "d", "c"), upper)
    assert [outcome.status for outcome in outcomes] == ["ok", *["dry_run"] * 3]
    guessed = session.ask(calls("b", "c"), upper, guess=lambda call: call.item)
    assert [outcome.value for outcome in guessed] == ["X", "item of c"]
    with pytest.raises(DryRun, match=r"stage c00: 2 calls are missing and 3 are in the") as end:
        session.__exit__(None)
    forecast = end.value.forecast
    assert dataclasses.astuple(forecast)[:4] == (2, 3, 2 * 2 * 7, 2 * 20)
    assert forecast.price == pytest.approx(28 + 4)
    assert "mean of 2 earlier replies" in forecast.basis
    assert engine.asked == []
    assert ledger.frame().height == 2


def test_a_dry_run_goes_by_replies_to_the_same_task_and_parameters(ledger, scripted_engine):
    lengths = {"prove": 900, "choose": 1}

    def script(call):
        return Reply("ok", "x", usage=Usage(50, lengths[call.task]))

    def call(task, text):
        return Call(task, {"text": text}, text)

    def forecast(task, **params):
        with (
            pytest.raises(DryRun) as end,
            ledger.session(
                scripted_engine(params=params), "stage", "c00", mode="dry_run"
            ) as session,
        ):
            session.ask([call(task, "new")], upper)
        told = end.value.forecast
        assert told.tasks == (task,)
        return told.completion_tokens, told.basis

    for params in ({"max_tokens": 1000}, {"max_tokens": 1000, "seed": 1}):
        with ledger.session(scripted_engine(script, params=params), "stage", "c00") as session:
            session.ask([call("prove", "a"), call("prove", "b")], upper)
            lengths["prove"] = 400
    assert forecast("prove", max_tokens=1000)[0] == 900
    assert forecast("prove", max_tokens=1000, seed=1)[0] == 400
    tokens, basis = forecast("choose", max_tokens=1000)
    assert (tokens, "upper limit" in basis) == (1000, True), "none of this task"
    with ledger.session(
        scripted_engine(script, params={"max_tokens": 5}), "stage", "c00"
    ) as session:
        session.ask([call("prove", "c")], upper)
    assert forecast("prove", max_tokens=5)[0] == 5, "never more than the limit"


def test_a_dry_run_without_history_takes_the_limit_and_says_so(ledger, scripted_engine):
    engine = scripted_engine(params={"max_tokens": 100})
    with (
        pytest.raises(DryRun, match="an unknown sum") as end,
        ledger.session(engine, "stage", "c00", mode="dry_run") as session,
    ):
        session.ask(calls("a"), upper)
    assert end.value.forecast.completion_tokens == 100
    assert end.value.forecast.prompt_tokens > 0
    assert "upper limit" in end.value.forecast.basis
    assert not ledger.root.exists()


def test_a_dry_run_in_which_nothing_is_missing_just_ends(ledger, scripted_engine):
    for mode in ("live", "dry_run"):
        with ledger.session(scripted_engine(), "stage", "c00", mode=mode) as session:
            assert session.ask(calls("a"), upper)[0].value == "A"


# ------------------------------------------------------------------------------------- others


def test_counts_have_all_tokens_statuses_and_cut_inputs(ledger, scripted_engine):
    reply = Reply("ok", "x", usage=Usage(10, 5, 3, 4), price=0.5, truncated_input=True)
    for made in (True, False):
        with ledger.session(scripted_engine(lambda call: reply), "stage", "c00") as session:
            session.ask(calls("a", "b"), upper)
        counts = session.counts
        assert counts.truncated_input == 2, "a replay tells it, too"
        if made:
            assert counts.seconds > 0
            assert dataclasses.replace(counts, seconds=0.0) == Counts(
                2, 0, 2, {"ok": 2}, 20, 10, 6, 8, 1.0, truncated_input=2
            )


def test_the_engines_time_is_that_of_all_batches(ledger, scripted_engine):
    def script(call):
        time.sleep(0.05 if call.inputs["text"] == "slow" else 0.0)
        return "x"

    with ledger.session(scripted_engine(script), "stage", "c00") as session:
        session.ask(calls("slow"), upper)
        before = session.counts.seconds
        session.ask(calls("quick"), upper)
    assert session.counts.seconds > before >= 0.05


def test_an_engine_that_keeps_a_state_is_told_where(ledger, scripted_engine):
    told = []

    class Keeping(scripted_engine):
        def keep_state_in(self, folder):
            told.append(folder)
            assert self.asked == []

    with ledger.session(Keeping(), "stage", "a|s00") as session:
        session.ask(calls("a"), upper)
        session.ask(calls("b"), upper)
    assert told == [ledger.root / "stage/scripted-model-1/a-s00/state"]


def test_replies_that_others_paid_meanwhile_are_counted(ledger, scripted_engine):
    one = ledger.session(scripted_engine(), "stage", "c00")
    with one:
        with ledger.session(scripted_engine(), "stage", "c01") as two:
            two.ask(calls("a", "b"), upper)
        one.ask(calls("b", "c"), upper)
    assert (one.counts.duplicates, two.counts.duplicates) == (1, 0)
