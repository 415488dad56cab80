"""The planted question: judges that are fit, and judges that are not."""

import polars as pl
import pytest

from saber_dagster.engines import Reply, Usage
from saber_dagster.errors import SaberError
from saber_dagster.judge_check import STAGE, TEXTS, check_judge, forecast
from saber_dagster.ledger import Ledger
from saber_dagster.settings import Judge

MATCH = TEXTS["match"][0]


def pair(first_wins, second_wins):
    """Replies to a pairwise call: if the match is shown first, and if it is shown second."""
    return lambda call: first_wins if call.inputs["first"]["problem"] == MATCH else second_wins


def single(match, other):
    return lambda call: match if call.inputs["document"]["problem"] == MATCH else other


def verdict(winner):
    return f"I think so.\n<verdict>{winner}</verdict>"


def odds(one, two, names=("1", "2")):
    return "\n".join(
        f'<logprob choice="{name}">{value}</logprob>'
        for name, value in zip(names, (one, two), strict=True)
    )


def yes(log_odds):
    return odds(-2 + log_odds / 2, -2 - log_odds / 2, ("yes", "no"))


@pytest.fixture
def check(tmp_path, scripted_engine):
    def of(ask, script, **options):
        engine = scripted_engine(script)
        judge = Judge(slug="j", engine="python:x:Y", ask=ask)
        return check_judge(judge, engine, Ledger(tmp_path / "ledger"), **options), engine

    return of


@pytest.mark.parametrize(
    ("ask", "script", "preferences"),
    [
        ("generate", pair(verdict(1), verdict(2)), (1.0, 1.0)),
        ("choice_logprobs", pair(odds(-0.1, -2.1), odds(-2.1, -0.1)), (0.8808, 0.8808)),
        ("relevance_logprobs", single(yes(1.0), yes(-1.0)), (0.8808,)),
        ("ordinal", single("<score>80</score>", "<score>5</score>"), (1.0,)),
    ],
)
def test_a_fit_judge_in_every_way_to_ask(check, ask, script, preferences):
    made, engine = check(ask, script)
    assert (made.problem, made.note, made.made) == ("", "", 2)
    assert made.preferences == pytest.approx(preferences, abs=1e-4)
    assert len(engine.asked) == len(made.answers) == 2
    assert all(answer.status == "ok" and answer.value is not None for answer in made.answers)
    assert made.answers[0].messages[0]["role"] == "system"
    assert MATCH in made.answers[0].messages[1]["content"]
    assert not any("mismatch" in m["content"] for a in made.answers for m in a.messages)


def test_a_second_check_pays_nothing_unless_it_is_told_to(check):
    script = pair(verdict(1), verdict(2))
    first, _ = check("generate", script)
    second, engine = check("generate", script)
    assert (second.made, engine.asked) == (0, [])
    assert second.answers == first.answers
    for sample in (1, 2):
        again, engine = check("generate", script, again=True)
        assert again.made == 2
        assert {call.sample for call in engine.asked} == {sample}


@pytest.mark.parametrize(
    ("ask", "script", "problem"),
    [
        ("generate", pair(verdict(2), verdict(1)), "does not prefer the document"),
        ("generate", pair(verdict(1), verdict(1)), "goes by the place, not by the text"),
        ("generate", pair(verdict("="), verdict("=")), "does not prefer the document"),
        (
            "generate",
            pair(verdict(1), "Well."),
            r"gave no verdict \(parse_error\)\. .*take a larger",
        ),
        (
            "choice_logprobs",
            pair(odds(-0.1, -1), odds(-0.1, -2)),
            "goes by the place.* larger model, or ask by relevance_logprobs$",
        ),
        ("choice_logprobs", pair(odds(-2, -0.1), odds(-0.1, -2)), "does not prefer the document"),
        (
            "ordinal",
            single("<score>5</score>", "<score>80</score>"),
            "does not prefer the document",
        ),
        (
            "generate",
            lambda call: Reply("truncated", "<verdict>1"),
            r"\(truncated\)\. .*max_tokens",
        ),
        ("ordinal", lambda call: Reply("refused"), r"\(refused\)\. .*another model"),
    ],
)
def test_an_unfit_judge_is_found_out_and_the_remedy_named(check, ask, script, problem):
    made, _ = check(ask, script)
    with pytest.raises(SaberError, match=problem):
        raise SaberError(made.problem)


def test_a_place_that_the_mean_makes_good_is_worth_a_note(check):
    made, _ = check("choice_logprobs", pair(odds(-0.1, -4), odds(-0.1, -1)))
    assert made.problem == ""
    assert "the two orders disagree" in made.note
    assert made.preferences[0] > 0.5 > made.preferences[1]


def test_a_line_that_is_dead_is_an_error(check):
    with pytest.raises(SaberError, match=r"did not get through, such as .*: the line is dead"):
        check("generate", lambda call: Reply("transport_error", error="the line is dead"))


def test_a_forecast_follows_from_the_check_and_the_release(tmp_path, scripted_engine):
    def script(call):
        return Reply("ok", verdict(1), usage=Usage(prompt=500, completion=20), latency=2.0)

    engine = scripted_engine(script)
    engine.count_tokens = len
    engine.price = lambda usage: usage.prompt * 1e-6 + usage.completion * 1e-5
    judge = Judge(slug="j", engine="python:x:Y", options={"concurrency": 4})
    made = check_judge(judge, engine, Ledger(tmp_path))
    planted = sum(len(text) for document in TEXTS.values() for text in document)
    texts = pl.DataFrame(
        {"doc_id": ["a", "b"], "problem": ["x" * 100, ""], "solution": ["", "y" * 300]}
    )
    found = forecast(judge, engine, made, 1000, texts)
    prompt = 500 + 3 * 200 - planted
    assert found.calls == 1000
    assert found.prompt_tokens == pytest.approx(1000 * prompt, abs=1000)
    assert found.completion_tokens == 20_000
    assert found.price == pytest.approx(1000 * prompt * 1e-6 + 0.2, abs=1e-3)
    assert (found.seconds, found.at_a_time) == (500.0, 4)
    del engine.price
    assert forecast(judge, engine, made, 1000, texts).price is None
    assert STAGE in {path.name for path in tmp_path.iterdir()}
