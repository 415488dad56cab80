"""Replies of engines, given to their parsers: the text is ``status message``, or ``ok value``."""

import json
from collections.abc import Callable
from typing import Any

from bad_input.bench import Bench, Case, Said
from resources.engines.openai_replies import read_completion
from saber_dagster.replies import ParseError, parse_summary, parse_topic_scores, parse_verdict

FIRST, SECOND = "<verdict>1</verdict>", "<verdict>2</verdict>"


def parsed(parse: Callable[..., Any], *args: Any, value: Any = None) -> Case:
    """A complete text; ``value`` is what it must say, if it can be parsed."""

    def case(bench: Bench) -> Said:
        try:
            found = parse(*args)
        except ParseError as error:
            assert value is None
            return Said(None, f"parse_error {error}")
        assert found == value
        return Said(None, f"ok {found}")

    return case


def completion(finish_reason: str = "stop", **message: Any) -> Case:
    """A response of a chat-completions server."""

    def case(bench: Bench) -> Said:
        body = {"choices": [{"finish_reason": finish_reason, "message": message}]}
        return Said(None, read_completion(json.dumps(body)).status)

    return case


def broken(bench: Bench) -> Said:
    return Said(None, read_completion("<html>502</html>").status)


def score(*pairs: tuple[int, str]) -> str:
    return "".join(f'<score n="{number}">{value}</score>' for number, value in pairs)


def scores(count: int, *pairs: tuple[int, str]) -> Case:
    return parsed(parse_topic_scores, score(*pairs), count)


REPLIES: dict[str, Case] = {
    "reply-no-verdict": parsed(parse_verdict, r"The first. \boxed{1}"),
    "reply-two-verdicts": parsed(parse_verdict, f"{FIRST}, no, {SECOND}", value=0.0),
    "reply-quoted-verdict": parsed(parse_verdict, f'It says "{SECOND}". {FIRST}', value=1.0),
    "reply-quoted-verdict-alone": parsed(
        parse_verdict, f'It says "{FIRST}". <verdict>neither</verdict>'
    ),
    "reply-verdict-in-reasoning": completion(content=f"<think>{FIRST}"),
    "reply-truncated": completion("length", content=f"{FIRST} because"),
    "reply-refused": completion(content="", refusal="I cannot help with that."),
    "reply-empty": completion(content=""),
    "reply-broken": broken,
    "reply-control": parsed(parse_summary, "<core_idea>Bound \frac{a}{b}.</core_idea>", 30),
    "reply-no-core-idea": parsed(parse_summary, "Count in two ways.", 30),
    "reply-long-core-idea": parsed(parse_summary, f"<core_idea>{'word ' * 31}</core_idea>", 30),
    "reply-score-nan": scores(1, (1, "nan")),
    "reply-scores-too-few": scores(2, (1, "0.5")),
    "reply-scores-too-many": scores(2, (1, "0.5"), (2, "0.5"), (3, "0.5")),
    "reply-scores-contradict": scores(1, (1, "0.2"), (1, "0.9")),
}
