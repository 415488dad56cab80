"""The API key stays in its variable."""

import logging
import traceback

import pytest
from llm_script import KEY, ask, completion, failure, gather, make, make_calls

from resources.engines.openai import OpenAIEngine
from saber_dagster.engines import TASKS
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger
from saber_dagster.replies import parse_verdict


def test_the_key_stays_in_its_variable(script, caplog):
    caplog.set_level(logging.DEBUG)
    engine = make(script, retries=0)
    shown = [repr(engine), str(vars(engine)), *(str(engine.params(task)) for task in TASKS)]
    for step in (
        failure(401, f"wrong: {KEY}"),
        failure(403, f"wrong: {KEY}"),
        failure(400, KEY),
        failure(500, f"saw {KEY}"),
        (200, {}, f"not JSON: {KEY}"),
    ):
        script.default = step
        replies, error = gather(engine.answer(make_calls(1)))
        shown += [str(replies), str(error), repr(error)]
        assert error is None or (error.__context__, error.__cause__) == (None, None)
    shown.append(caplog.text)
    assert "".join(shown).count("***") >= 5
    assert KEY not in "".join(shown)
    assert script.requests[0][1]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("value", "text"), [(None, "not set"), (" \n", "not set"), ("ké", "anew")])
def test_a_missing_or_broken_key_stops_before_the_first_call(script, monkeypatch, value, text):
    monkeypatch.delenv("MARKED_KEY")
    if value is not None:
        monkeypatch.setenv("MARKED_KEY", value)
    with pytest.raises(SaberError, match=f"MARKED_KEY.*{text}"):
        list(make(script).answer(make_calls(1)))
    assert not script.requests


def test_the_key_of_openai_goes_to_no_other_server(script, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    ask(script, api_key_env=None)
    assert KEY not in str(script.requests[0][1])


ECHO_STEPS = {
    "header": lambda: (200, {"X-Echo": f"Bearer {KEY}"}, completion()[2]),
    "text": lambda: completion(f"you sent {KEY}\n<verdict>1</verdict>", reasoning=f"hm, {KEY}"),
    "escaped": lambda: (200, {}, completion(KEY)[2].replace("sk-", "sk\\u002d")),
    "finish": lambda: completion(finish=f"stop {KEY}"),
    "error": lambda: failure(500, f"who is {KEY}?", {"X-Echo": KEY}),
    "code": lambda: failure(400, "no", code=KEY, type=KEY),
    "reason": lambda: (401, {}, KEY),
    "long": lambda: failure(500, "x" * 490 + KEY),
}


@pytest.mark.parametrize("step", ECHO_STEPS)
def test_a_server_that_repeats_what_it_was_sent(step, script, caplog, tmp_path):
    """Logs on DEBUG, tracebacks with variables, the ledger's files: the key is in none of them."""
    caplog.set_level(logging.DEBUG)
    script.default = ECHO_STEPS[step]()
    engine = make(script, retries=1, concurrency=2)
    shown = []
    try:
        with Ledger(tmp_path).session(engine, "judge", "p") as session:
            outcomes = session.ask(make_calls(2), lambda _, text: parse_verdict(text))
            shown.append(str(outcomes))
    except SaberError as error:
        trace = traceback.TracebackException.from_exception(error, capture_locals=True)
        shown.append("".join(trace.format()))
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*.*")]
    shown += [str(Ledger(tmp_path).frame().to_dicts()), caplog.text]
    shown += [str(record.__dict__) for record in caplog.records]
    assert len(script.requests) >= 1
    for text in shown:
        assert KEY not in text
        assert KEY[:10] not in text
    assert script.requests[0][1]["authorization"] == f"Bearer {KEY}"
    assert not any(logging.getLogger(name).filters for name in ("httpcore2.http11", "openai"))


@pytest.mark.parametrize("url", [f"http://u:{KEY}@127.0.0.1/v1", f"http://127.0.0.1/v1?key={KEY}"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(SaberError, match="api_key_env") as caught:
        OpenAIEngine("m", "r", base_url=url)
    assert KEY not in str(caught.value)


def test_a_short_key_is_no_secret_and_changes_no_reply(script, monkeypatch):
    monkeypatch.setenv("MARKED_KEY", "1")
    script.default = completion("<verdict>1</verdict>")
    assert ask(script)[0].text == "<verdict>1</verdict>"
