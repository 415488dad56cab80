"""The openai_batch engine against a Batch API that plays a script, and killed at each of many points."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import batch_server
import batch_step
import polars as pl
import pytest
import yaml

from resources.engines import judge_engine, load_engine
from resources.engines.batch_spare import Spare, SpareReplies
from resources.engines.batch_state import FORGOTTEN_AFTER_S, Batch, BatchState
from resources.engines.openai import OpenAIEngine
from saber_dagster.engines import Usage, call_key
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Budget, BudgetSpent, Ledger, LedgerError
from saber_dagster.replies import parse_verdict
from saber_dagster.settings import Judge

ROOT = Path(__file__).parents[2]
USAGE = (batch_server.USAGE["prompt_tokens"], batch_server.USAGE["completion_tokens"])


class Remote:
    """The server in its process, as a test sees it."""

    def __init__(self, url):
        self.url = url

    def play(self, **script):
        data = json.dumps(script).encode()
        urllib.request.urlopen(f"{self.url}/script", data, timeout=10).read()

    def log(self, event=None):
        with urllib.request.urlopen(f"{self.url}/log", timeout=10) as answer:
            return [row for row in json.load(answer) if event in (None, row["event"])]

    def answered(self):
        return Counter(row["custom_id"] for row in self.log("answered"))

    def look(self, batch="batch-0000"):
        headers = {"Authorization": f"Bearer {batch_server.KEY}"}
        request = urllib.request.Request(f"{self.url}/v1/batches/{batch}", headers=headers)
        urllib.request.urlopen(request, timeout=10).read()

    def requests(self):
        return Counter(row["route"] for row in self.log("request"))


@pytest.fixture(scope="module")
def process():
    command = [sys.executable, str(ROOT / "tests/helpers/batch_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        yield running.stdout.readline().strip()
        running.terminate()


@pytest.fixture
def server(process, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MARKED_KEY", batch_server.KEY)
    remote = Remote(process)
    remote.play()
    return remote


def replies(server, n, **options):
    """All replies, by position; every call must have exactly one."""
    found = list(batch_step.make(server.url, **options).answer(batch_step.make_calls(n)))
    assert sorted(position for position, _ in found) == list(range(n))
    return [reply for _, reply in sorted(found, key=lambda pair: pair[0])]


def rows(root):
    return Ledger(root).frame()


def state_files(root):
    return list(root.rglob("state/*.json"))


def spare_files(root):
    return list(root.rglob("state/*.spare.jsonl"))


def leave_out(server, root, calls, **script):
    """Submit calls and stop before their batches have ended, which they have afterwards."""
    server.play(polls=2, **script)
    with pytest.raises(SaberError, match="They go on"):
        batch_step.ask(root, server.url, calls, max_requests=10, wait_s=1e-6)
    for _ in range(3):
        server.look()


def killed_at_hang(server, root, *arguments):
    """Run a step in a process of its own, and kill it when the server hangs."""
    command = [sys.executable, batch_step.__file__, str(root), server.url, *arguments]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/helpers")])
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}) as step:
        end = time.monotonic() + 60
        while not server.log("hang"):
            assert step.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(step.pid, signal.SIGKILL)


# What is sent and what comes back


def test_results_find_their_calls_whatever_their_order(server, tmp_path):
    outcomes = batch_step.ask(tmp_path, server.url, 10)
    keys = [outcome.key for outcome in outcomes]
    assert [outcome.value for outcome in outcomes] == [1.0 - int(key, 16) % 2 for key in keys]
    assert server.answered() == Counter(keys)
    assert [row["requests"] for row in server.log("create")] == [4, 4, 2]
    assert state_files(tmp_path) == []
    frame = rows(tmp_path)
    assert frame["status"].to_list() == ["ok"] * 10
    assert set(frame.select("prompt_tokens", "completion_tokens").iter_rows()) == {USAGE}
    batch_step.ask(tmp_path, server.url, 10)
    assert len(server.log("create")) == 3


def test_a_reply_that_the_live_engine_paid_for_is_not_asked_again(server):
    live = OpenAIEngine("judge", "r1", base_url="http://elsewhere/v1")
    batch = batch_step.make(server.url)
    (call,) = batch_step.make_calls(1)
    assert call_key(live, call) == call_key(batch, call)
    assert batch.body(call) == live.body(call)


def test_equal_calls_are_one_request_and_are_paid_once(server):
    engine = batch_step.make(server.url, price_per_million={"prompt": 2, "completion": 10})
    found = dict(engine.answer(batch_step.make_calls(1) * 3))
    assert sorted(found) == [0, 1, 2]
    assert len({reply.text for reply in found.values()}) == 1
    assert sum(reply.price for reply in found.values()) == pytest.approx((200 + 100) / 1e6 / 2)
    assert sum(server.answered().values()) == 1


@pytest.mark.parametrize(
    ("kind", "status", "words", "usage"),
    [
        ("ok", "ok", "", USAGE),
        ("duplicate", "ok", "", USAGE),
        ("length", "truncated", "limit of tokens", USAGE),
        ("refusal", "refused", "refused", USAGE),
        ("filtered", "refused", "prompt was filtered", (0, 0)),
        ("too_long", "transport_error", "context_tokens", (0, 0)),
        ("429", "transport_error", "Rate limit reached", USAGE),
        ("500", "transport_error", "The server had an error", (0, 0)),
        ("expired", "transport_error", "could not be executed in time", (0, 0)),
        ("missing", "transport_error", "has no result for this call", (0, 0)),
        ("broken", "transport_error", "1 lines of its files cannot be read", (0, 0)),
    ],
)
def test_a_line_becomes_a_reply_by_the_rules_for_live_requests(server, kind, status, words, usage):
    server.play(lines=["ok", kind])
    good, reply = replies(server, 2)
    assert good.status == "ok"
    assert reply.status == status
    assert words in reply.error
    assert (reply.usage.prompt, reply.usage.completion) == usage
    assert batch_server.KEY not in f"{reply}"
    assert "<verdict>=" not in reply.text  # of two results the first counts


def test_calls_that_do_not_fit_can_be_left_unanswered(server):
    server.play(lines=["too_long"])
    (reply,) = replies(server, 1, skip_too_long=True)
    assert (reply.status, reply.finish_reason) == ("truncated", "context_length")


def test_every_kind_at_once_through_the_ledger(server, tmp_path):
    n = len(batch_server.KINDS)
    server.play(lines=list(batch_server.KINDS))
    with pytest.raises(LedgerError, match="6 of 11 calls did not get through"):
        batch_step.ask(tmp_path, server.url, n, max_requests=n)
    assert Counter(rows(tmp_path)["status"]) == Counter(
        ok=2, truncated=1, refused=2, transport_error=6
    )
    before = server.answered()
    server.play()
    batch_step.ask(tmp_path, server.url, n, max_requests=n)
    again = server.answered()
    assert sum(again.values()) == 6
    lost = {"missing", "broken"}  # answered, and paid, with nothing to show for it
    assert sum((before & again).values()) == len(lost)
    assert Counter(rows(tmp_path).filter(canonical=True)["status"]) == Counter(
        ok=8, truncated=1, refused=2
    )


@pytest.mark.parametrize("end", ["expired", "cancelled", "failed"])
def test_what_a_batch_finished_is_kept(server, tmp_path, end):
    server.play(end=end)
    with pytest.raises(LedgerError, match="2 of 4" if end != "failed" else "4 of 4") as caught:
        batch_step.ask(tmp_path, server.url, 4)
    assert end in f"{caught.value}" or "in time" in f"{caught.value}"
    server.play()
    batch_step.ask(tmp_path, server.url, 4)
    assert sum(server.answered().values()) == (4 if end == "failed" else 2)


def test_after_a_failed_batch_no_further_one_is_submitted(server, tmp_path):
    server.play(end="failed")
    with pytest.raises(SaberError, match=r"token_limit_exceeded.*Set max_queued_tokens"):
        batch_step.ask(tmp_path, server.url, 9, max_queued_tokens=3000)
    assert len(server.log("create")) == 1
    assert state_files(tmp_path) == []


# Limits


def test_files_keep_to_their_limits(server):
    (call, *_) = calls = batch_step.make_calls(5)
    line = len(json.dumps(batch_step.make(server.url).body(call))) + 150
    server.play(max_bytes=3 * line)
    replies(server, 5, max_bytes=3 * line)
    assert all(row["lines"] <= 3 for row in server.log("upload"))
    assert sum(row["lines"] for row in server.log("upload")) == len(calls)
    with pytest.raises(SaberError, match=r"item 0 has [\d,]+ bytes"):
        replies(server, 1, max_bytes=100)


def test_batches_wait_while_the_queue_of_tokens_is_full(server):
    server.play(polls=2)
    engine = batch_step.make(server.url, max_requests=1)
    one = sum(engine.count_tokens(m["content"]) for m in engine.messages(*batch_step.make_calls(1)))
    replies(server, 5, max_requests=1, max_queued_tokens=2 * one + 1)
    out, most = set(), 0
    for row in server.log():
        if row["event"] == "create":
            out.add(row["batch"])
            most = max(most, len(out))
        if row["event"] == "ended":
            out.discard(row["batch"])
    assert len(server.log("create")) == 5
    assert most == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"discount": 2}, "discount"),
        ({"max_requests": 0}, "max_requests"),
        ({"poll_s": 0}, "poll_s"),
        ({"concurency": 3}, "did you mean 'concurrency'"),
        ({"temperature": "hot"}, "option temperature"),
        ({"base_url": "nowhere"}, "base_url"),
    ],
)
def test_a_wrong_option_is_named(options, words):
    with pytest.raises(SaberError, match=words):
        load_engine("openai_batch", {"model": "m", "revision": "r", **options})


def test_prices_are_discounted():
    prices = {"prompt": 3.0, "completion": 9.0}
    options = {"model": "m", "revision": "r", "price_per_million": prices}
    spent = Usage(prompt=1_000_000, completion=1_000_000)
    assert load_engine("openai", options).price(spent) == 12.0
    assert load_engine("openai_batch", options).price(spent) == 6.0
    assert load_engine("openai_batch", {**options, "discount": 0.8}).price(spent) == pytest.approx(
        9.6
    )


# Waiting, stopping, faults of the server


def test_the_step_stops_waiting_and_the_next_one_collects(server, tmp_path):
    server.play(polls=10**6)
    with pytest.raises(
        SaberError, match=r"2 batch\(es\) of 6 calls.*They go on; run the partition"
    ):
        batch_step.ask(tmp_path, server.url, 6, wait_s=0.1)
    assert len(state_files(tmp_path)) == 2
    held = [json.loads(path.read_bytes()) for path in state_files(tmp_path)]
    assert batch_server.KEY not in f"{held}"
    with pytest.raises(SaberError, match="They go on"):
        batch_step.ask(tmp_path, server.url, 8, wait_s=0.1)  # two more calls, one more batch
    assert [row["requests"] for row in server.log("create")] == [4, 2, 2]


def test_after_stop_what_is_out_is_collected_and_no_more_is_submitted(server):
    engine = batch_step.make(server.url, max_queued_tokens=1)  # one call at a time
    found = []
    for position, _ in engine.answer(batch_step.make_calls(6)):
        found.append(position)
        engine.stop()
    assert found == [0]
    assert len(server.log("create")) == 1


def test_polls_that_get_no_answer_are_made_again(server, caplog):
    caplog.set_level(logging.INFO, "saber_dagster.engines")
    server.play(faults=[{"route": "GET /batches/ID", "nth": n, "do": 503} for n in (1, 2, 3, 4)])
    assert [reply.status for reply in replies(server, 2, retries=0)] == ["ok", "ok"]
    assert "no answer (scripted failure)" in caplog.text
    assert "2 calls are out" in caplog.text
    assert batch_server.KEY not in caplog.text
    server.play(faults=[{"route": "GET /batches/ID", "nth": n, "do": "drop"} for n in range(1, 9)])
    with pytest.raises(SaberError, match=r"did not look at batch .* Batches that are out go on"):
        replies(server, 2, retries=0)


@pytest.mark.parametrize("do", ["drop", "drop_after", 500, 429])
def test_a_start_without_an_answer_starts_no_second_batch(server, do):
    server.play(faults=[{"route": "POST /batches", "nth": 1, "do": do}], list_after_s=0.2)
    assert [reply.status for reply in replies(server, 3)] == ["ok"] * 3
    assert set(server.answered().values()) == {1}
    assert len(server.log("create")) == 1


def test_a_twin_of_a_batch_is_cancelled(server, tmp_path):
    """The listing came too late to show the first: the one case that pays twice, and it is ended."""
    server.play(
        faults=[
            {"route": "POST /batches", "nth": 1, "do": "drop_after"},
            {"route": "POST /batches", "nth": 2, "do": "drop_after"},
        ],
        list_after_s=0.6,
        polls=3,
    )
    assert [reply.status for reply in replies(server, 2)] == ["ok", "ok"]
    assert [row["batch"] for row in server.log("cancel")] == ["batch-0001"]


@pytest.mark.parametrize(
    ("route", "do", "words"),
    [
        ("POST /files", 403, "Check the key"),
        ("POST /batches", 404, "engine openai asks them all"),
        ("POST /batches", 400, "Check the options"),
        ("GET /files/ID/content", 500, "run the partition again"),
    ],
)
def test_what_fails_for_good_names_a_remedy(server, tmp_path, route, do, words):
    times = (1, 2, 3) if do == 500 else (1,)  # retries do not help
    server.play(faults=[{"route": route, "nth": n, "do": do} for n in times])
    with pytest.raises(SaberError, match=words):
        batch_step.ask(tmp_path, server.url, 2)
    batch_step.ask(tmp_path, server.url, 2)
    assert set(server.answered().values()) == {1}


def test_the_key_is_told_to_nobody(server, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MARKED_KEY", "sk-another-marked-key")
    with pytest.raises(SaberError, match="Check the key") as caught:
        replies(server, 1)
    told = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r} {caplog.text}"
    assert "sk-another-marked-key" not in told
    monkeypatch.delenv("MARKED_KEY")
    with pytest.raises(SaberError, match="MARKED_KEY is not set"):
        replies(server, 1)


# State


def test_a_batch_that_the_server_does_not_know_is_not_paid_again_unasked(server, tmp_path):
    server.play(polls=10**6)
    with pytest.raises(SaberError, match="They go on"):
        batch_step.ask(tmp_path, server.url, 2, wait_s=0.05)
    server.play()  # it has forgotten everything
    with pytest.raises(SaberError, match=r"knows no batch batch-0000.*remove") as caught:
        batch_step.ask(tmp_path, server.url, 2)
    (file,) = state_files(tmp_path)
    assert file.name in f"{caught.value}"
    file.unlink()
    batch_step.ask(tmp_path, server.url, 2)
    assert sum(server.answered().values()) == 2


def test_state_files(tmp_path):
    folder = tmp_path / "model" / "p0" / "state"
    state = BatchState(folder)
    assert state.load("u") == []
    first, second = Batch("b" * 32, "u", ["k1"], started=time.time() - 9), Batch("a", "u", ["k2"])
    for batch in (second, first, Batch("c", "elsewhere", ["k3"])):
        state.save(batch)
    assert state.load("u") == [first, second]
    state.save(Batch("old", "u", [], started=time.time() - FORGOTTEN_AFTER_S - 1))
    assert state.load("u") == [first, second]
    state.forget(first)
    assert state.load("u") == [second]
    BatchState(tmp_path / "model" / "p1" / "state").save(first)
    assert state.load("u") == [first, second]
    assert [state.owns(batch) for batch in (first, second)] == [False, True]
    state.forget(first)
    assert state.load("u") == [second]
    damaged = folder / "d.json"
    damaged.write_text('{"token": "d", "url"')
    with pytest.raises(SaberError, match=r"d\.json is damaged.*paid, again"):
        state.load("u")


POINTS = {
    "after the upload": ("POST /files", 1, "hang_after"),
    "before the start": ("POST /batches", 1, "hang"),
    "after the start": ("POST /batches", 1, "hang_after"),
    "after the start of the second": ("POST /batches", 2, "hang_after"),
    "between two results": ("GET /files/ID/content", 2, "hang"),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_pays_nothing_twice(server, tmp_path, point):
    route, nth, do = POINTS[point]
    server.play(faults=[{"route": route, "nth": nth, "do": do}], polls=1, list_after_s=0.1)
    killed_at_hang(server, tmp_path, "6")
    outcomes = batch_step.ask(tmp_path, server.url, 6)
    keys = [outcome.key for outcome in outcomes]
    assert [outcome.value for outcome in outcomes] == [1.0 - int(key, 16) % 2 for key in keys]
    assert server.answered() == Counter(keys)
    assert state_files(tmp_path) == []
    assert rows(tmp_path)["key"].sort().to_list() == sorted(keys)


# Replies that were paid and are not asked for


def changed(calls, n=1):
    """The calls with the first n replaced by others."""
    return [*batch_step.make_calls(n, "q"), *calls[n:]]


def test_a_reply_that_is_not_asked_for_now_is_kept_until_it_is(server, tmp_path, caplog):
    caplog.set_level(logging.INFO, "saber_dagster.engines")
    calls = batch_step.make_calls(10)
    leave_out(server, tmp_path, calls)
    batch_step.ask(tmp_path, server.url, changed(calls))
    assert "1 replies that were paid and are not asked for now are kept" in caplog.text
    assert state_files(tmp_path) == []
    assert len(spare_files(tmp_path)) == 1
    prices = {"prompt": 2, "completion": 10}
    (first, *_) = batch_step.ask(tmp_path, server.url, calls, price_per_million=prices)
    assert spare_files(tmp_path) == []
    answered = server.answered()
    assert len(answered) == sum(answered.values()) == 11
    frame = rows(tmp_path)
    assert sorted(frame["key"]) == sorted(answered)
    row = frame.row(by_predicate=pl.col("key") == first.key, named=True)
    assert (row["status"], row["prompt_tokens"], row["completion_tokens"]) == ("ok", *USAGE)
    assert row["price"] == pytest.approx((200 + 100) / 1e6 / 2)


def test_a_batch_of_which_nothing_is_asked_is_collected_when_it_has_ended(server, tmp_path):
    calls = batch_step.make_calls(6)
    leave_out(server, tmp_path, calls, lines=["echo"])
    batch_step.ask(tmp_path, server.url, batch_step.make_calls(1, "q"))
    assert state_files(tmp_path) == []
    (file,) = spare_files(tmp_path)
    assert batch_server.KEY not in file.read_text()
    batch_step.ask(tmp_path, server.url, calls[:2])
    assert len(file.read_text().splitlines()) == 4
    batch_step.ask(tmp_path, server.url, calls)
    assert spare_files(tmp_path) == []
    assert len(server.log("create")) == 2
    assert set(server.answered().values()) == {1}


def test_a_batch_of_which_nothing_is_asked_keeps_nobody_waiting(server, tmp_path, caplog):
    server.play(polls=10**6)
    with pytest.raises(SaberError, match="They go on"):
        batch_step.ask(tmp_path, server.url, 2, wait_s=1e-6)
    (before,) = state_files(tmp_path)
    other = batch_step.make_calls(1, "q")
    with pytest.raises(SaberError, match=r"1 batch\(es\) of 1 calls"):
        batch_step.ask(tmp_path, server.url, other, wait_s=1e-6)
    for file in set(state_files(tmp_path)) - {before}:
        file.unlink()
    server.play()  # it has forgotten everything
    batch_step.ask(tmp_path, server.url, other)
    assert f"remove {before}" in caplog.text
    assert state_files(tmp_path) == [before]


def test_another_partition_finds_what_is_out_and_what_is_kept(server, tmp_path):
    calls = batch_step.make_calls(6)
    leave_out(server, tmp_path, calls)
    batch_step.ask(tmp_path, server.url, calls[:2], partition="p1")
    assert state_files(tmp_path) == []
    batch_step.ask(tmp_path, server.url, calls[2:], partition="p2")
    assert spare_files(tmp_path) == []
    assert len(server.log("create")) == 1
    assert rows(tmp_path)["key"].n_unique() == rows(tmp_path).height == 6


def test_a_kill_while_spare_replies_are_collected_loses_none(server, tmp_path, monkeypatch):
    calls = batch_step.make_calls(6)
    hang = {"route": "GET /files/ID/content", "nth": 1, "do": "hang"}
    leave_out(server, tmp_path, calls, faults=[hang])
    killed_at_hang(server, tmp_path, "1", "q")
    assert len(state_files(tmp_path)) == 1
    assert spare_files(tmp_path) == []
    with monkeypatch.context() as patch:  # a kill between the two files
        patch.setattr(BatchState, "forget", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            batch_step.ask(tmp_path, server.url, changed(calls, 5))
    assert state_files(tmp_path)
    assert len(spare_files(tmp_path)) == 1
    batch_step.ask(tmp_path, server.url, changed(calls, 5))
    batch_step.ask(tmp_path, server.url, calls)
    assert set(server.answered().values()) == {1}
    assert rows(tmp_path)["key"].n_unique() == rows(tmp_path).height == 11


def test_spare_replies_stay_until_they_are_stored(tmp_path):
    spare = SpareReplies(tmp_path / "model" / "p0" / "state")
    kept = [Spare(key, 1.0, {"response": None}) for key in "abc"]
    spare.keep(Batch("t", "u", []), kept)
    taking = spare.take({"a", "b"})
    assert next(taking) == kept[0]
    taking.close()
    assert list(spare.take({"a", "b"})) == kept[:2]
    assert list(spare.take({"a", "b", "c"})) == kept[2:]
    assert spare_files(tmp_path) == []
    file = tmp_path / "model" / "p0" / "state" / "d.spare.jsonl"
    file.write_text("{")
    with pytest.raises(SaberError, match=r"d\.spare\.jsonl is damaged.*paid, again"):
        list(spare.take({"a"}))


def test_the_judges_in_the_docs_can_be_made():
    text = (ROOT / "docs/batch-and-vllm.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    judges = [judge for block in blocks for judge in yaml.safe_load(block)["judges"]]
    assert {judge["engine"] for judge in judges} == {"embedded", "openai_batch", "vllm"}
    for judge in judges:
        judge_engine(Judge(**judge))


def test_a_spent_budget_submits_no_further_batch_and_keeps_what_was_paid(server, tmp_path):
    engine = batch_step.make(server.url, max_requests=2, max_queued_tokens=2000)
    with (
        pytest.raises(BudgetSpent),
        Ledger(tmp_path).session(engine, "judge", "p0", budget=Budget(calls=1)) as session,
    ):
        session.ask(batch_step.make_calls(6), lambda call, text: parse_verdict(text))
    assert [row["requests"] for row in server.log("create")] == [2]
    assert rows(tmp_path)["status"].to_list() == ["ok", "ok"]
    assert state_files(tmp_path) == []
