"""The ledger as a resource: what ends a step, and what its failure says."""

import logging
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.storage.tags import RETRY_NUMBER_TAG

from resources import ledger as module
from resources.ledger import ENGINES_LOG, LedgerResource
from saber_dagster import progress
from saber_dagster.engines import Call, Reply, Usage
from saber_dagster.instance import BUILD_TAGS
from saber_dagster.ledger import Ledger
from saber_dagster.run_metadata import BUDGET_CALLS, BUDGET_USD, DRY_RUN, FORECAST, STOPPED_BY

LOST = Reply("transport_error", error="the line is dead")
PRICED = Reply("ok", "fine", usage=Usage(prompt=10, completion=2), price=0.25)


@pytest.fixture
def run(tmp_path):
    """Runs one step that asks four calls; returns the result of the run and the session's lines."""

    def of(engine, tags=None, **options):
        resource = LedgerResource(root=str(tmp_path / "ledger"), **options)
        lines = []

        @dg.asset
        def step(context: dg.AssetExecutionContext, ledger: LedgerResource) -> None:
            calls = [Call("task", {"text": f"t{n}"}, f"item {n}") for n in range(4)]
            with ledger.session(engine, "stage", context) as session:
                session.ask(calls, lambda _, text: text)

        with progress.listening(lambda line, urgent: lines.append((line, urgent))):
            result = dg.materialize(
                [step], resources={"ledger": resource}, tags=tags, raise_on_error=False
            )
        return result, lines

    return of


def failure(result):
    (event,) = result.get_step_failure_events()
    told = event.step_failure_data.user_failure_data
    return told.description, {name: value.value for name, value in told.metadata.items()}


def replies(tmp_path):
    return Ledger(tmp_path / "ledger").frame().height


def test_a_step_that_asks_its_calls_says_what_they_were(run, scripted_engine):
    result, lines = run(scripted_engine(lambda call: PRICED))
    assert result.success
    assert [line for line, _ in lines if "4 of 4 calls" in line]
    assert progress.current() is None


@pytest.mark.parametrize(
    ("options", "tags", "made"),
    [
        ({"budget_calls": 2}, {}, 2),
        ({"budget_usd": 0.5}, {}, 2),
        ({"budget_usd": 100.0}, {BUDGET_USD: "0.75"}, 3),
        ({}, {BUDGET_CALLS: "0"}, 0),
        ({}, {BUDGET_USD: "0"}, 0),
    ],
)
def test_a_spent_budget_ends_the_step_and_says_what_was_paid(
    run, scripted_engine, tmp_path, options, tags, made
):
    result, _ = run(scripted_engine(lambda call: PRICED), tags, **options)
    description, metadata = failure(result)
    assert "everything that was paid is kept" in description.lower()
    assert metadata[STOPPED_BY] == "budget"
    assert (metadata["calls_made"], metadata["price_usd"]) == (made, 0.25 * made)
    assert replies(tmp_path) == made
    assert run(scripted_engine(lambda call: PRICED))[0].success, "a later run goes on"
    assert replies(tmp_path) == 4


def test_an_engine_that_is_free_has_no_budget(run, scripted_engine, tmp_path):
    engine = scripted_engine()
    engine.free = True
    assert run(engine, {BUDGET_USD: "0", BUDGET_CALLS: "0"})[0].success
    assert replies(tmp_path) == 4


def test_a_budget_that_is_no_number_is_named(run, scripted_engine):
    result, _ = run(scripted_engine(), {BUDGET_USD: "five"})
    (event,) = result.get_step_failure_events()
    assert "saber/budget_usd" in str(event.step_failure_data.error)


@pytest.mark.parametrize("tags", [{DRY_RUN: "yes"}, {}])
def test_a_dry_run_ends_in_a_forecast_whether_calls_are_missing_or_not(
    run, scripted_engine, tmp_path, tags
):
    options = {} if tags else {"mode": "dry_run"}
    description, metadata = failure(run(scripted_engine(), tags, **options)[0])
    assert "4 calls are missing" in description
    assert metadata[STOPPED_BY] == "dry_run"
    assert (metadata[FORECAST]["calls"], metadata[FORECAST]["replayed"]) == (4, 0)
    assert replies(tmp_path) == 0

    assert run(scripted_engine())[0].success
    _, metadata = failure(run(scripted_engine(), tags, **options)[0])
    assert (metadata[FORECAST]["calls"], metadata[FORECAST]["replayed"]) == (0, 4)


def test_lost_calls_are_tried_again_by_the_step_and_not_in_a_build(
    run, scripted_engine, monkeypatch, tmp_path
):
    monkeypatch.setattr(module, "RETRY_DELAY_S", 0.01)
    said = {"t1": [LOST, LOST, PRICED]}

    def script(call):
        waiting = said.get(call.inputs["text"])
        return waiting.pop(0) if waiting else PRICED

    result, _ = run(scripted_engine(script))
    assert result.success
    assert len(result.filter_events(lambda event: event.is_step_up_for_retry)) == 2

    engine = scripted_engine(lambda call: LOST, model="other")
    result, _ = run(engine, BUILD_TAGS)
    description, metadata = failure(result)
    assert "did not get through" in description
    assert (metadata["calls_made"], metadata["calls_transport_error"]) == (4, 4)
    assert len(engine.asked) == 4, "the step was tried once"

    engine = scripted_engine(lambda call: LOST, model="third")
    assert not run(engine)[0].success
    assert len(engine.asked) == 4 * (1 + module.RETRIES), "no more than that"


@pytest.mark.parametrize("tags", [{BUDGET_USD: "0.75"}, {BUDGET_CALLS: "4"}])
def test_retries_of_a_step_share_its_budget(run, scripted_engine, monkeypatch, tags):
    monkeypatch.setattr(module, "RETRY_DELAY_S", 0.01)
    engine = scripted_engine(lambda call: LOST if call.item == "item 1" else PRICED)
    result, _ = run(engine, tags)
    assert len(result.filter_events(lambda event: event.is_step_up_for_retry)) == 1
    assert failure(result)[1][STOPPED_BY] == "budget"
    assert len(engine.asked) == 4, "the first try spent it all"


def test_the_runs_that_dagster_tries_again_are_one(tmp_path):
    retry = {RETRY_NUMBER_TAG: "1"}
    runs = [
        dg.DagsterRun("job", "first"),
        dg.DagsterRun("job", "by-a-person", root_run_id="first", parent_run_id="first"),
        dg.DagsterRun("job", "again", root_run_id="first", parent_run_id="by-a-person", tags=retry),
        dg.DagsterRun("job", "third", root_run_id="first", parent_run_id="again", tags=retry),
    ]
    with dg.DagsterInstance.ephemeral() as instance:
        for one in runs:
            instance.add_run(one)
        tries = [module._tries(SimpleNamespace(run=one, instance=instance)) for one in runs]
    assert tries == [
        ["first"],
        ["by-a-person"],
        ["again", "by-a-person"],
        ["third", "again", "by-a-person"],
    ]


def test_other_faults_are_not_tried_again_and_what_was_paid_is_said(run, scripted_engine):
    engine = scripted_engine(lambda c: ValueError("broken") if c.item == "item 2" else PRICED)
    result, _ = run(engine)
    description, metadata = failure(result)
    assert "raised ValueError: broken" in description
    assert (metadata["calls_made"], metadata["price_usd"]) == (2, 0.5)
    assert len(engine.asked) == 3


def test_what_engines_log_is_part_of_the_runs_log_and_of_the_progress(run, scripted_engine):
    logger = logging.getLogger(ENGINES_LOG)

    def script(call):
        if call.item == "item 1":
            logger.info("a batch was submitted")
            logger.warning("the server is slow: %d s", 40)
        return PRICED

    result, lines = run(scripted_engine(script))
    assert result.success
    assert ("a batch was submitted", False) in lines
    assert ("the server is slow: 40 s", True) in lines
    assert not logger.handlers, "nothing is left behind"
