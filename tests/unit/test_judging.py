import math
from pathlib import Path

import pytest

from resources.engines import judge_engine
from saber_dagster.engines import (
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    RELEVANCE_CHOICE,
    Call,
    Reply,
)
from saber_dagster.errors import SaberError
from saber_dagster.judging import (
    HOPELESS_BATCH,
    LOG_ODDS_BOUND,
    TASK_OF_ASK,
    guess,
    make_judge,
)
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.rating_prior import estimate_prior
from saber_dagster.ratings import rate
from saber_dagster.settings import Judge
from saber_dagster.tournament import Game, GameResult, run_tournament

TEXTS = {doc: (f"problem {doc}", f"solution {doc}") for doc in ("q", "a", "b")}


def game(first="a"):
    return Game("q", 1, "a", "b", first)


@pytest.fixture
def judge(tmp_path, scripted_engine):
    def of(script, *games):
        engine = scripted_engine(script)
        with Ledger(tmp_path).session(engine, "judge", "algebra|s00") as session:
            return list(make_judge("generate", session.ask, TEXTS)(games)), engine.asked

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
                frame = run_tournament(
                    {"q": docs}, rounds, 0, make_judge("generate", session.ask, texts)
                )
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
    assert "no answer to any of 10 calls (1 parse_error, 9 truncated; the first: " in message
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


# the other ways to ask


def logprobs(**of):
    return "\n".join(
        f'<logprob choice="{name[1:]}">{value}</logprob>' for name, value in of.items()
    )


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def ask_by(tmp_path, scripted_engine, mode, script, games, texts=TEXTS):
    engine = scripted_engine(script)
    with Ledger(tmp_path).session(engine, "judge", "algebra|s00") as session:
        return list(make_judge(mode, session.ask, texts)(games)), engine.asked


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_choice_is_the_mean_of_the_log_odds_of_both_orders(tmp_path, scripted_engine, first):
    def script(call):
        """One place is worth 1.5; document a is worth 0.5 more than b, on both sides."""
        odds = 1.5 + (0.5 if call.inputs["first"]["problem"] == "problem a" else -0.5)
        return logprobs(_1=-0.25, _2=-0.25 - odds)

    (result,), asked = ask_by(tmp_path, scripted_engine, "choice_logprobs", script, [game(first)])
    assert [call.task for call in asked] == [PAIRWISE_CHOICE] * 2
    assert result.preference == pytest.approx(sigmoid(0.5), abs=1e-9)
    in_order = {"a": sigmoid(2.0), "b": sigmoid(-1.0)}
    assert result.as_shown == pytest.approx(in_order[first], abs=1e-9)
    assert result.swapped == pytest.approx(in_order["ab".replace(first, "")], abs=1e-9)
    assert len(set(result.call_keys)) == 2
    assert asked[0].inputs["first"]["problem"] == f"problem {first}", "the order shown comes first"


def test_a_place_that_pulls_beyond_the_bound_still_cancels(tmp_path, scripted_engine):
    def script(call):
        odds = 15 + (1 if call.inputs["first"]["problem"] == "problem a" else -1)
        return logprobs(_1=0, _2=-odds)

    (result,), _ = ask_by(tmp_path, scripted_engine, "choice_logprobs", script, [game()])
    assert result.preference == pytest.approx(sigmoid(1.0), abs=1e-9)


def test_relevance_is_asked_once_of_each_document_however_often_it_plays(tmp_path, scripted_engine):
    odds = {"a": 2.0, "b": -1.0, "c": 2.0}
    texts = TEXTS | {"c": ("problem c", "")}

    def script(call):
        return logprobs(_yes=-3, _no=-3 - odds[call.inputs["document"]["problem"][-1]])

    games = [game(), Game("q", 2, "a", "c", "c"), Game("q", 3, "b", "c", "b")]
    results, asked = ask_by(tmp_path, scripted_engine, "relevance_logprobs", script, games, texts)
    assert [call.item for call in asked] == ["q: a", "q: b", "q: c"]
    assert {call.task for call in asked} == {RELEVANCE_CHOICE}
    expected = [sigmoid(3.0), 0.5, sigmoid(-3.0)]
    assert [r.preference for r in results] == [pytest.approx(x, abs=1e-9) for x in expected]
    assert {(r.as_shown, r.swapped) for r in results} == {(None, None)}
    assert results[0].call_keys[0] == results[1].call_keys[0]


def test_the_higher_grade_wins_and_equal_ones_tie(tmp_path, scripted_engine):
    texts = TEXTS | {"c": ("problem c", "")}
    grades = {"a": "62.5", "b": "62", "c": "62"}

    def script(call):
        return f"<score>{grades[call.inputs['document']['problem'][-1]]}</score>"

    games = [game(), Game("q", 1, "b", "c", "c")]
    results, asked = ask_by(tmp_path, scripted_engine, "ordinal", script, games, texts)
    assert [r.preference for r in results] == [1.0, 0.5]
    assert {call.task for call in asked} == {ORDINAL_JUDGMENT}


@pytest.mark.parametrize("mode", ["choice_logprobs", "relevance_logprobs", "ordinal"])
def test_one_failed_call_of_two_fails_the_game_with_its_status(tmp_path, scripted_engine, mode):
    good = {"ordinal": "<score>5</score>", "relevance_logprobs": logprobs(_yes=-1, _no=-2)}

    def script(call):
        shown = call.inputs.get("document", call.inputs.get("first"))
        if shown["problem"] == "problem b":
            return Reply("refused")
        return good.get(mode, logprobs(_1=-1, _2=-2))

    (result,), _ = ask_by(tmp_path, scripted_engine, mode, script, [game()])
    assert (result.preference, result.status) == (None, "refused")
    assert (result.as_shown, result.swapped, len(result.call_keys)) == (None, None, 2)


@pytest.mark.parametrize("mode", ["choice_logprobs", "ordinal"])
def test_of_two_failed_calls_the_first_names_the_status(tmp_path, scripted_engine, mode):
    def script(call):
        shown = call.inputs.get("document", call.inputs.get("first"))
        return Reply("refused" if shown["problem"] == "problem a" else "truncated")

    (result,), _ = ask_by(tmp_path, scripted_engine, mode, script, [game()])
    assert result.status == "refused"


def test_a_game_of_two_calls_names_the_replies_that_were_asked_again(tmp_path, scripted_engine):
    class Reminding(scripted_engine):
        def messages(self, call):
            return [*super().messages(call), {"role": "user", "content": f"{call.attempt}"}]

    engine = Reminding(lambda call: "<score>5</score>" if call.attempt else "no")
    with Ledger(tmp_path).session(engine, "judge", "algebra|s00", reasks=1) as session:
        (result,) = make_judge("ordinal", session.ask, TEXTS)([game()])
    assert result.preference == 0.5
    assert len(set(result.call_keys)) == 4


def test_certain_answers_stay_inside_the_bound_and_can_be_rated(tmp_path, scripted_engine):
    """Log-odds of 30 on each side, every document against every other."""
    docs = [f"d{n}" for n in range(6)]
    order = ["d3", "d0", "d5", "d1", "d4", "d2"]
    texts = {doc: (doc, "") for doc in ("q", *docs)}

    def script(call):
        first, second = (order.index(call.inputs[n]["problem"]) for n in ("first", "second"))
        worth = 30 if first < second else -30
        return logprobs(_1=min(0, worth), _2=min(0, -worth))

    engine = scripted_engine(script)
    with Ledger(tmp_path).session(engine, "judge", "p") as session:
        judge = make_judge("choice_logprobs", session.ask, texts)
        frame = run_tournament({"q": docs}, 5, 0, judge)
    outcomes = set(frame["outcome"])
    edge = sigmoid(-LOG_ODDS_BOUND)
    assert min(outcomes) == pytest.approx(edge, abs=1e-9)
    assert max(outcomes) == pytest.approx(1 - edge, abs=1e-9)
    ranked = rate(frame, {"q": docs}, estimate_prior(frame)).sort("rank")
    assert ranked["doc_id"].to_list() == order


@pytest.mark.parametrize("mode", TASK_OF_ASK)
def test_a_guess_has_the_form_of_an_answer_and_does_not_depend_on_the_order(mode):
    pointwise = mode in ("relevance_logprobs", "ordinal")
    q, a, b = ({"problem": name, "solution": ""} for name in "qab")
    if pointwise:
        assert guess(Call(TASK_OF_ASK[mode], {"query": q, "document": a}, "i")) >= 0
        return
    there = guess(Call(TASK_OF_ASK[mode], {"query": q, "first": a, "second": b}, "i"))
    back = guess(Call(TASK_OF_ASK[mode], {"query": q, "first": b, "second": a}, "i"))
    assert there + back == (1.0 if mode == "generate" else 0.0)


# what an engine can be asked


@pytest.mark.parametrize("mode", ["choice_logprobs", "relevance_logprobs", "ordinal"])
def test_an_engine_that_cannot_be_asked_so_says_how_it_can(mode):
    with pytest.raises(SaberError) as caught:
        judge_engine(Judge(slug="mine", engine="embedded", ask=mode))
    assert "judge mine" in str(caught.value)
    assert f"cannot be asked by {mode}" in str(caught.value)
    assert "It can be asked by generate; change `ask`" in str(caught.value)
    assert judge_engine(Judge(slug="mine")).model == "embedded-baseline"


def test_a_prompt_for_an_engine_without_prompts_is_an_error():
    with pytest.raises(SaberError, match=r"judge mine: .*has no prompts.*take `prompt: own.md`"):
        judge_engine(Judge(slug="mine", engine="embedded", prompt="own.md"))


def test_a_judges_prompt_is_that_of_its_way_to_ask(tmp_path):
    own = tmp_path / "own.md"
    shipped = Path(__file__).parents[2] / "prompts" / "relevance_choice.md"
    own.write_text(shipped.read_text().replace("name: relevance_choice", "name: own") + "\nThink.")
    options = {"model": "m", "revision": "1", "base_url": "http://127.0.0.1:9/v1"}
    entry = {"slug": "mine", "engine": "openai", "ask": "relevance_logprobs", "options": options}
    mine = judge_engine(Judge(**entry, prompt=str(own)))
    plain = judge_engine(Judge(**entry))
    assert mine.prompt(RELEVANCE_CHOICE).name != plain.prompt(RELEVANCE_CHOICE).name
    assert mine.prompt(PAIRWISE_CHOICE) == plain.prompt(PAIRWISE_CHOICE)
