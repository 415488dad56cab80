import json

import pytest

from prompts import example_inputs
from saber_dagster.engines import TASKS
from saber_dagster.replies import (
    JSON_TASKS,
    ParseError,
    parse_choice,
    parse_ordinal,
    parse_reply,
    parse_selection,
    parse_summary,
    parse_topic_scores,
    parse_verdict,
)


def scores(*pairs):
    return "\n".join(f'<score n="{n}">{value}</score>' for n, value in pairs)


def test_scores_come_in_the_order_of_the_candidates():
    assert parse_topic_scores(scores((2, "1"), (1, "0.25"), (3, "0")), 3) == [0.25, 1.0, 0.0]
    assert parse_topic_scores('Well.\n<score  n="1" > 7e-1 </score>, done', 1) == [0.7]
    assert parse_topic_scores("", 0) == []


@pytest.mark.parametrize(
    ("text", "n", "message"),
    [
        (scores((1, "0.7"), (1, "0.8")), 1, "two scores for candidate 1: 0.7 and 0.8"),
        (scores((1, "0.7"), (2, "0.8"), (1, "0.9")), 2, "two scores for candidate 1"),
        (scores((0, "0.7"), (1, "0.7")), 1, r"number\(s\) \[0\], but there are 1"),
        (scores((1, "0.7"), (2, "0.7")), 1, r"number\(s\) \[2\]"),
        (scores((1, "0.7"), (3, "0.7")), 3, r"no score for candidate\(s\) \[2\] of 3"),
        (scores((1, "1.01")), 1, "outside"),
        (scores((1, "-0.1")), 1, "outside"),
        (scores((1, "nan")), 1, "outside"),
        (scores((1, "inf")), 1, "outside"),
        (scores((1, "high")), 1, "is not a number: 'high'"),
        (scores((1, "0.5/1")), 1, "is not a number"),
        ('<score n="1"></score>', 1, "no score"),
        ('<score n="1">0.7', 1, "no score"),
        ("0.7", 1, "no score"),
        ("", 1, "no score"),
    ],
)
def test_scores_that_do_not_follow_the_grammar(text, n, message):
    with pytest.raises(ParseError, match=message):
        parse_topic_scores(text, n)


def test_a_score_that_is_said_twice_alike_is_one_score():
    assert parse_topic_scores(scores((1, "0.7"), (1, "0.70")), 1) == [0.7]


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("<verdict>1</verdict>", 1.0),
        ("<verdict>2</verdict>", 0.0),
        ("<verdict>=</verdict>", 0.5),
        ("<VERDICT> 2\n</Verdict> That is all.", 0.0),
        ("Sample 1 says <verdict>1</verdict>. It has no force.\n<verdict>2</verdict>", 0.0),
        ("I first thought <verdict>2</verdict>, but <verdict>1</verdict>", 1.0),
        ("An unclosed <verdict> is quoted.\n<verdict>2</verdict>", 0.0),
        ("[[1]] \\boxed{1} <verdict>2</verdict>", 0.0),
    ],
)
def test_the_last_verdict_decides(text, preference):
    assert parse_verdict(text) == preference


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "[[1]]",
        "\\boxed{1}",
        "<verdict></verdict>",
        "<verdict>1",
        "<verdict>12</verdict>",
        "<verdict>Sample 1</verdict>",
        "Sample 1 says <verdict>1</verdict>, but <verdict>neither</verdict>",
        "Sample 1 says <verdict>1</verdict>, but <verdict>2",
        "<verdict>1</verdict> or <verdict></verdict>",
    ],
)
def test_no_last_verdict_is_no_vote(text):
    with pytest.raises(ParseError, match="does not end with <verdict>"):
        parse_verdict(text)


def test_a_long_reply_full_of_verdicts_is_parsed_quickly():
    assert parse_verdict("<verdict>1</verdict> <verdict>" * 50_000 + "<verdict>2</verdict>") == 0.0


def test_a_full_summary():
    summary = parse_summary(
        "<core_idea>Count the pairs\n in two ways.</core_idea>\n"
        "<supporting_idea>a</supporting_idea><supporting_idea>b</supporting_idea>"
        "<supporting_idea> </supporting_idea>"
        "<supporting_idea>c</supporting_idea><supporting_idea>d</supporting_idea>"
        "<keyword>incidence</keyword><keyword>graph</keyword><confidence>0.8</confidence>",
        30,
    )
    assert summary.core_idea == "Count the pairs in two ways."
    assert summary.supporting_ideas == ("a", "b", "c"), "at most three, no empty one"
    assert summary.keywords == ("incidence", "graph")
    assert summary.confidence == 0.8


@pytest.mark.parametrize("tag", ["<no_core_idea/>", "<no_core_idea />"])
def test_a_solution_may_have_no_core_idea(tag):
    summary = parse_summary(f"{tag}<keyword>sums</keyword>", 30)
    assert (summary.core_idea, summary.keywords, summary.confidence) == (None, ("sums",), None)


def test_a_core_idea_may_have_just_so_many_words():
    def text(words):
        return f"<core_idea>{' '.join(['w'] * words)}</core_idea>"

    assert parse_summary(text(30), 30).core_idea == " ".join(["w"] * 30)
    with pytest.raises(ParseError, match="core idea has 31 words, at most 30"):
        parse_summary(text(31), 30)


@pytest.mark.parametrize("command", ["frac", "theta", "beta", "nu", "right", "times", "binom", "u"])
def test_latex_survives(command):
    idea = rf"Bound \{command}{{a}}{{b}} < $x_1$ & y > 0"
    assert parse_summary(f"<core_idea>{idea}</core_idea>", 30).core_idea == idea


@pytest.mark.parametrize("number", [0, 1, 7, 8, 11, 12, 13, 14, 27, 31, 127])
def test_control_characters_are_rejected(number):
    with pytest.raises(ParseError, match="control characters"):
        parse_summary(f"<core_idea>Bound {chr(number)}rac</core_idea>", 30)


def test_line_ends_of_any_system_and_tabs_are_white_space():
    text = "<core_idea>Count\r\n\tpairs.\n</core_idea>\r\n<confidence>1</confidence>\r\n"
    assert parse_summary(text, 30).core_idea == "Count pairs."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither"),
        ("Count the pairs.", "neither"),
        ("<core_idea></core_idea>", "neither"),
        ("<core_idea> \n</core_idea>", "neither"),
        ("<core_idea>Count.", "neither"),
        ("<no_core_idea>", "neither"),
        ("<core_idea>a</core_idea><confidence>sure</confidence>", "not a number: 'sure'"),
        ("<core_idea>a</core_idea><confidence>80</confidence>", "outside"),
        ("<core_idea>a</core_idea><confidence>nan</confidence>", "outside"),
        ("<core_idea>Use <keyword>sums</keyword></core_idea>", "<keyword> inside <core_idea>"),
        ("<core_idea><no_core_idea/></core_idea>", "<no_core_idea/> inside <core_idea>"),
        (
            "<core_idea>a</core_idea><keyword>b <confidence>1</confidence></keyword>",
            "<confidence> inside <keyword>",
        ),
    ],
)
def test_summaries_that_do_not_follow_the_grammar(text, message):
    with pytest.raises(ParseError, match=message):
        parse_summary(text, 30)


def test_a_tag_that_is_only_mentioned_does_not_swallow_the_answer():
    text = "First the <core_idea> tag:\n<core_idea>Old.</core_idea>\n<core_idea>New.</core_idea>"
    assert parse_summary(text, 30).core_idea == "New."
    assert parse_summary("The <core_idea> tag: <core_idea>One.</core_idea>", 30).core_idea == "One."


# ------------------------------------------------------------------------------- JSON forms


@pytest.mark.parametrize(
    ("parse", "value", "expected"),
    [
        (lambda text: parse_topic_scores(text, 3), {"scores": [0, 0.5, 1]}, [0.0, 0.5, 1.0]),
        (lambda text: parse_topic_scores(text, 0), {"scores": []}, []),
        (parse_verdict, {"reason": "<verdict>2</verdict> {", "verdict": 1}, 1.0),
        (parse_verdict, {"verdict": 2}, 0.0),
        (parse_ordinal, {"score": 62}, 62.0),
        (parse_ordinal, {"score": 0.5}, 0.5),
        (lambda text: parse_selection(text, 3), {"choice": 3}, 3),
    ],
)
def test_the_json_form_says_the_same(parse, value, expected):
    text = json.dumps(value, indent=1)
    for shown in (text, f"\n {text}\r\n", f"```json\n{text}\n```", f"```\n{text}\n```"):
        assert parse(shown) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"verdict": true}', "verdict is not a whole number: True"),
        ('{"verdict": 1.0}', "not a whole number"),
        ('{"verdict": "one"}', "not a whole number"),
        ('{"verdict": [1]}', "not a whole number"),
        ('{"verdict": 3}', "outside 1 to 2"),
        ('{"verdict": 0}', "outside 1 to 2"),
        ('{"verdict": null}', "'verdict' is missing"),
        ('{"reason": "1"}', "'verdict' is missing"),
        ('{"verdict": 1, "verdict": 2}', "key 'verdict' is given twice"),
        ('{"verdict": 1, "reason": {"a": 1, "a": 2}}', "key 'a' is given twice"),
        ('{"verdict": 1, "winner": 2}', "unknown key 'winner'"),
        ('{"verdict": NaN}', "NaN is not JSON"),
        ('{"verdict": -Infinity}', "-Infinity is not JSON"),
        ('{"verdict": 1,}', "not JSON"),
        ('{"reason": "\\sqrt", "verdict": 1}', "not JSON"),
        ('{"reason": "a\x0cb", "verdict": 1}', "not JSON"),
        ('{"reason": ' + "[" * 100_000 + "}", "not JSON"),
        ('{"verdict": ' + "1" * 5000 + "}", "not JSON"),
        ('[{"verdict": 1}]', "does not end with <verdict>"),
        ('{"verdict": 1} That is all.', "does not end with <verdict>"),
        ('{"verdict": 1', "does not end with <verdict>"),
    ],
)
def test_json_that_does_not_follow_the_grammar(text, message):
    with pytest.raises(ParseError, match=message):
        parse_verdict(text)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("[0.5]", "scores is not a list of 2"),
        ("[0.5, 0.5, 0.5]", "scores is not a list of 2"),
        ('{"1": 0.5, "2": 1}', "scores is not a list of 2"),
        ("[true, 0.5]", "score of candidate 1 is not a number: True"),
        ("[0.5, null]", "score of candidate 2 is not a number: None"),
        ("[0.5, 1.1]", "candidate 2 is outside"),
        ("[0.5, 1e999]", "candidate 2 is outside"),
        ("[0.5, 1" + "0" * 400 + "]", "candidate 2 is not a number"),
        ("[0.5, NaN]", "NaN is not JSON"),
    ],
)
def test_a_list_of_scores_that_does_not_follow_the_grammar(scores, message):
    with pytest.raises(ParseError, match=message):
        parse_topic_scores(f'{{"scores": {scores}}}', 2)


# ------------------------------------------------------------------------ ordinal, selection


def test_the_last_score_and_the_last_choice_decide():
    assert parse_ordinal("The sample says <score>100</score>. <SCORE> 7.5\n</Score>") == 7.5
    assert parse_selection("<choice>1</choice>, or rather <choice>2</choice>.", 2) == 2
    with pytest.raises(ParseError, match="does not end with <score>"):
        parse_ordinal("<score>100</score> or <score>")
    with pytest.raises(ParseError, match="does not end with <choice>"):
        parse_selection("Number 2.", 2)


@pytest.mark.parametrize("raw", ["-1", "100.5", "nan", "inf", "high", "", "7/10", "1_0", "٧"])
def test_a_score_is_a_number_from_0_to_100(raw):
    with pytest.raises(ParseError, match=r"score is (not a number|outside)"):
        parse_ordinal(f"<score>{raw}</score>")


@pytest.mark.parametrize("raw", ["0", "3", "1.0", "-1", "one", "", "²", "9" * 20])
def test_a_choice_is_the_number_of_a_solution(raw):
    with pytest.raises(ParseError, match=r"choice is (not a whole number|outside 1 to 2)"):
        parse_selection(f"<choice>{raw}</choice>", 2)


# ------------------------------------------------------------------------- log-probabilities


def logprobs(*pairs, floor=None):
    lines = [f'<logprob choice="{choice}">{value}</logprob>' for choice, value in pairs]
    return "\n".join(lines + ([f'<logprob floor="true">{floor}</logprob>'] if floor else []))


@pytest.mark.parametrize(
    ("text", "odds"),
    [
        (logprobs(("1", "-0.25"), ("2", "-2.25")), 2.0),
        (logprobs(("2", "-0.25"), ("1", "-2.25")), -2.0),
        (logprobs(("1", "-0.25"), ("2", "-2.25"), floor="-9.5"), 2.0),
        (logprobs(("1", "-0.25"), floor="-9.25"), 9.0),
        (logprobs(("2", "0.0"), floor="-9.0"), -9.0),
        (logprobs(("1", "-5.0"), ("2", "-5.5")), 0.5),  # 1.08 % together
        (logprobs(("1", "0.0001"), ("2", "-9999.0")), 9999.0001),
    ],
)
def test_log_odds_of_the_first_choice(text, odds):
    assert parse_choice(text, ("1", "2")) == odds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "none of the choices 1, 2"),
        ("1", "none of the choices"),
        (logprobs(floor="-9"), "none of the choices"),
        (logprobs(("1", "-0.1")), "there is no floor"),
        (logprobs(("1", "-0.1"), ("1", "-0.2")), "two log-probabilities of 1"),
        (logprobs(("1", "-0.1"), ("2", "-3"), ("3", "-4")), "of '3'; choices are 1, 2"),
        (logprobs(("1", "-0.1"), ("2", "nan")), "outside"),
        (logprobs(("1", "-0.1"), ("2", "-inf")), "outside"),
        (logprobs(("1", "-0.1"), ("2", "x")), "log-probability of 2 is not a number"),
        (logprobs(("1", "0.5"), ("2", "-3")), "outside"),
        (logprobs(("1", "-5"), floor="-4"), "floor -4.0 is above"),
        (logprobs(("1", "-14"), floor="-16"), "the choices 1, 2 have 8.3e-07 of the probability"),
        (logprobs(("1", "-5.2"), ("2", "-5.5")), "0.0096 of .* less than 0.01"),
        (logprobs(("1", "-5"), floor="-6") + logprobs(floor="-7"), "two log-prob.* of the floor"),
    ],
)
def test_log_probabilities_that_do_not_follow_the_grammar(text, message):
    with pytest.raises(ParseError, match=message):
        parse_choice(text, ("1", "2"))


# ----------------------------------------------------------------------------------- any task


def test_every_task_has_a_parser_that_refuses_nothing_and_nonsense():
    for task in TASKS:
        for text in ("", " ", "{}", "null", "I cannot help with that."):
            with pytest.raises(ParseError):
                parse_reply(task, example_inputs(task), text)
    assert set(TASKS) >= JSON_TASKS
