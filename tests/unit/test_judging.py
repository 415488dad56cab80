import pytest

from saber_dagster.engines import PAIRWISE_JUDGMENT, Reply
from saber_dagster.errors import SaberError
from saber_dagster.judging import HOPELESS_BATCH, pairwise_judge
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.tournament import Game, GameResult, run_tournament

TEXTS = {doc: (f"problem {doc}", f"solution {doc}") for doc in ("q", "a", "b")}


def game(first="a"):
    return Game("q", 1, "a", "b", first)


@pytest.fixture
def judge(tmp_path, scripted_engine):
    def of(script, *games):
        engine = scripted_engine(script)
        with Ledger(tmp_path).session(engine, "judge", "algebra|s00") as session:
            return list(pairwise_judge(session.ask, TEXTS)(games)), engine.asked

    return of


@pytest.mark.parametrize(
    ("verdict", "first", "preference"),
    [
        ("1", "a", 1.0),
        ("2", "a", 0.0),
        ("1", "b", 0.0),
        ("2", "b", 1.0),
        ("=", "a", 0.5),
        ("=", "b", 0.5),
    ],
)
def test_the_preference_is_for_doc_a_whichever_is_shown_first(judge, verdict, first, preference):
    (result,), (call,) = judge(lambda call: f"<verdict>{verdict}</verdict>", game(first))
    assert (result.preference, result.status) == (preference, "ok")
    assert len(result.call_keys) == 1
    assert call.task == PAIRWISE_JUDGMENT
    second = {"a": "b", "b": "a"}[first]
    assert call.inputs == {
        "query": {"problem": "problem q", "solution": "solution q"},
        "first": {"problem": f"problem {first}", "solution": f"solution {first}"},
        "second": {"problem": f"problem {second}", "solution": f"solution {second}"},
    }
    assert call.item == f"q: {first} | {second}"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("I cannot say.", "parse_error"),
        (Reply("refused", "<verdict>1</verdict>"), "refused"),
        (Reply("truncated", "<verdict>1</verdict>", finish_reason="length"), "truncated"),
    ],
)
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_failure_is_no_vote(judge, reply, status, first):
    (result,), _ = judge(lambda call: reply, game(first))
    assert result == GameResult(None, status, result.call_keys)
    assert len(result.call_keys) == 1


def test_a_call_that_did_not_get_through_stops_the_round(judge):
    with pytest.raises(LedgerError, match="did not get through"):
        judge(lambda call: Reply("transport_error", error="HTTP 500"), game())


def test_results_are_in_the_order_of_the_games_and_both_orders_are_two_calls(judge):
    def script(call):
        return f"<verdict>{1 if call.inputs['first']['problem'] == 'problem a' else '='}</verdict>"

    results, asked = judge(script, game("b"), game("a"), game("b"))
    assert [result.preference for result in results] == [0.5, 1.0, 0.5]
    assert len(asked) == 2
    assert results[0].call_keys == results[2].call_keys != results[1].call_keys


def test_the_round_is_not_part_of_the_call(judge):
    judge(lambda call: "<verdict>1</verdict>", game())
    _, asked = judge(lambda call: "<verdict>1</verdict>", Game("q", 9, "a", "b", "a"))
    assert asked == []


@pytest.fixture
def play(tmp_path, scripted_engine):
    def of(script, games, rounds=5):
        docs = [f"d{n:02d}" for n in range(2 * games)]
        texts = {doc: (doc, "") for doc in ("q", *docs)}
        engine = scripted_engine(script)
        try:
            with Ledger(tmp_path).session(engine, "judge", "p") as session:
                frame = run_tournament({"q": docs}, rounds, 0, pairwise_judge(session.ask, texts))
            return frame, engine.asked
        except SaberError as error:
            return str(error), engine.asked

    return of


def test_a_judge_without_a_single_verdict_is_stopped_after_the_first_round(play, tmp_path):
    said = iter(["no idea"])

    def script(call):
        return next(said, Reply("truncated", error="cut at 16 tokens"))

    message, asked = play(script, HOPELESS_BATCH)
    assert len(asked) == HOPELESS_BATCH
    assert "no verdict on any of 10 games (1 parse_error, 9 truncated; the first: " in message
    assert "<verdict>1</verdict>" in message or "cut at 16 tokens" in message
    assert "saber ledger stats" in message
    assert "max_tokens" in message
    assert Ledger(tmp_path).frame().height == HOPELESS_BATCH, "what was paid is kept"


def test_a_small_batch_or_a_single_verdict_lets_the_rounds_go_on(play):
    frame, asked = play(lambda call: "no idea", HOPELESS_BATCH - 1, rounds=2)
    assert len(asked) == frame.height == 2 * (HOPELESS_BATCH - 1)
    answered = []

    def script(call):
        answered.append(call)
        return "<verdict>1</verdict>" if len(answered) % HOPELESS_BATCH == 1 else "no idea"

    frame, _ = play(script, HOPELESS_BATCH, rounds=2)
    assert frame.height == 2 * HOPELESS_BATCH
