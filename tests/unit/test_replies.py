import pytest

from saber_dagster.replies import ParseError, parse_summary, parse_topic_scores, parse_verdict


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
