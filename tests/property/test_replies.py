import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber_dagster.replies import ParseError, parse_summary, parse_topic_scores, parse_verdict

pytestmark = pytest.mark.property

SCORES = st.lists(st.floats(0, 1), max_size=6)
SCRAPS = st.lists(
    st.sampled_from(["<verdict>", "</verdict>", "1", "2", "=", " ", "text", '<score n="1">', "0.5"])
    | st.sampled_from(["</score>", "<core_idea>", "</core_idea>", "<no_core_idea/>", "\n", "nan"])
)


@given(SCORES, st.data())
def test_scores_come_back_whatever_their_order_of_lines(scores, data):
    lines = [f'<score n="{n}">{s!r}</score>' for n, s in enumerate(scores, 1)]
    text = "\n".join(data.draw(st.permutations(lines)))
    assert parse_topic_scores(text, len(scores)) == scores


@given(SCRAPS, st.sampled_from("12="))
def test_what_comes_before_the_last_verdict_does_not_matter(scraps, verdict):
    text = "".join(scraps) + f"<verdict>{verdict}</verdict>"
    assert parse_verdict(text) == {"1": 1.0, "2": 0.0, "=": 0.5}[verdict]


@given(SCRAPS)
def test_scraps_are_a_value_in_bounds_or_a_parse_error(scraps):
    text = "".join(scraps)
    for parse in (
        parse_verdict,
        lambda text: parse_topic_scores(text, 1)[0],
        lambda text: parse_summary(text, 30).confidence or 0.0,
    ):
        try:
            value = parse(text)
        except ParseError:
            continue
        assert math.isfinite(value)
        assert 0.0 <= value <= 1.0


@given(st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs", "Cc"])))
def test_a_core_idea_comes_back_with_its_words(idea):
    text = f"<core_idea>{idea}</core_idea><no_core_idea/>"
    expected = " ".join(idea.split()) or None
    assert parse_summary(text, max_words=1000).core_idea == expected
