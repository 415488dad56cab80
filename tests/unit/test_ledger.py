"""The ledger in one process, and in processes that are killed."""

import collections
import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from saber_dagster.engines import FINAL, Call, Engine, Reply, Usage, call_key
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Counts, Ledger, LedgerError, store
from saber_dagster.ledger.index import Index
from saber_dagster.ledger.segments import Keys, key_halves, read_segment
from saber_dagster.replies import ParseError


def calls(*texts):
    return [Call("task", {"text": text}, f"item of {text}") for text in texts]


def upper(call, text):
    if text.startswith("?"):
        raise ParseError(f"cannot read {text}")
    return text.upper()


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def ask(ledger, scripted_engine):
    """Ask texts in a session of their own; returns outcomes and the session's counts."""

    def of(*texts, engine=None, mode="live", parse=upper, partition="c00", run_id="run"):
        engine = engine or scripted_engine()
        with ledger.session(engine, "stage", partition, run_id, mode) as session:
            return session.ask(calls(*texts), parse), session.counts

    return of


def files(ledger, suffix):
    return sorted(ledger.root.rglob(f"*{suffix}"), key=lambda path: path.name)


def test_the_scripted_engine_follows_the_protocol(scripted_engine):
    assert isinstance(scripted_engine(), Engine)


# ---------------------------------------------------------------------------------------- keys


def key(engine_type, call=None, **options):
    return call_key(engine_type(**options), call or Call("task", {"text": "a"}, "item"))


def test_the_key_depends_on_what_can_change_the_answer(scripted_engine):
    changed = [
        key(scripted_engine),
        key(scripted_engine, model="other"),
        key(scripted_engine, revision="r2"),
        key(scripted_engine, params={"temperature": 0, "seed": 1}),
        key(scripted_engine, params={"temperature": 1}),
        key(scripted_engine, prompt="Say: {text} "),
        key(scripted_engine, prompt="Say; {text}"),
        key(scripted_engine, Call("task", {"text": "b"}, "item")),
        key(scripted_engine, Call("task", {"text": "a "}, "item")),
        key(scripted_engine, Call("task", {"text": "a"}, "item", sample=1)),
    ]
    assert len(set(changed)) == len(changed)


def test_the_key_does_not_depend_on_item_or_order_of_parameters(scripted_engine):
    one = key(scripted_engine, Call("task", {"text": "a"}, "item"), params={"a": 1, "b": 2})
    assert one == key(scripted_engine, Call("task", {"text": "a"}, "x"), params={"b": 2, "a": 1})


def test_run_partition_and_batch_do_not_matter(ask, scripted_engine):
    ask("a", "b", partition="c00", run_id="one")
    engine = scripted_engine()
    outcomes, counts = ask("b", "x", "a", engine=engine, partition="c01", run_id="two")
    assert [call.inputs["text"] for call in engine.asked] == ["x"]
    assert [outcome.value for outcome in outcomes] == ["B", "X", "A"]
    assert (counts.asked, counts.replayed, counts.made) == (3, 2, 1)


def test_another_model_stage_or_prompt_is_asked_itself(ask, ledger, scripted_engine):
    ask("a")
    for options in ({"model": "other"}, {"revision": "r2"}, {"prompt": "Tell: {text}"}):
        engine = scripted_engine(**options)
        ask("a", engine=engine)
        assert len(engine.asked) == 1
    engine = scripted_engine()
    with ledger.session(engine, "other stage", "c00") as session:
        session.ask(calls("a"), upper)
    assert len(engine.asked) == 1
    assert ledger.frame()["canonical"].all(), "each is the first of its stage"


# ------------------------------------------------------------------------------------- replies


def test_a_reply_is_stored_with_all_that_it_cost(ledger, ask, scripted_engine):
    usage = Usage(prompt=10, completion=20, reasoning=15, cached=5)
    reply = Reply("ok", "a\nb\x00é", "why", "stop", usage, price=0.25, latency=1.5)
    engine = scripted_engine(lambda call: reply)
    outcomes, counts = ask("a", engine=engine)
    assert (counts.price, counts.tokens, counts.failed) == (0.25, 30, 0)
    (row,) = ledger.frame().to_dicts()
    created = row.pop("created")
    assert created > 1e9
    assert row == {
        "key": outcomes[0].key,
        "item": "item of a",
        "status": "ok",
        "text": "a\nb\x00é",
        "reasoning": "why",
        "finish_reason": "stop",
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "reasoning_tokens": 15,
        "cached_tokens": 5,
        "price": 0.25,
        "latency": 1.5,
        "run_id": "run",
        "stage": "stage",
        "task": "task",
        "model": engine.model,
        "revision": engine.revision,
        "prompt": "task",
        "prompt_sha256": engine.prompt("task").sha256,
        "error": "",
        "params": '{"temperature":0}',
        "sample": 0,
        "attempt": 0,
        "inputs": '{"text":"a"}',
        "messages": "",
        "truncated_input": False,
        "partition": "c00",
        "segment": files(ledger, ".parquet")[0].name,
        "canonical": True,
    }
    assert files(ledger, ".parquet")[0].parent == ledger.root / "stage/scripted-model-1/c00"
    assert not files(ledger, ".journal")


def test_equal_calls_are_asked_once(ask, scripted_engine):
    engine = scripted_engine()
    outcomes, counts = ask("a", "b", "a", "a", engine=engine)
    assert [call.inputs["text"] for call in engine.asked] == ["a", "b"]
    assert [outcome.value for outcome in outcomes] == ["A", "B", "A", "A"]
    assert (counts.asked, counts.made, counts.replayed) == (4, 2, 2)


def test_nothing_asked_leaves_nothing_on_disk(ask, ledger):
    assert ask() == ([], Counts())
    assert not ledger.root.exists()
    assert ledger.frame().height == 0
    assert "canonical" in ledger.frame().columns


def test_a_reply_that_does_not_parse_is_final_and_a_better_parser_reads_it(ask, scripted_engine):
    engine = scripted_engine()
    (outcome,), counts = ask("?a", engine=engine)
    assert (outcome.status, outcome.value, outcome.error) == ("parse_error", None, "cannot read ?a")
    assert counts.failed == 1
    (again,), _ = ask("?a", engine=engine)
    assert again == outcome
    (better,), _ = ask("?a", engine=engine, parse=lambda call, text: text[1:])
    assert (better.status, better.value) == ("ok", "a")
    assert len(engine.asked) == 1


def test_a_worse_parser_makes_a_parse_error_of_a_stored_reply(ask):
    ask("a")

    def refuse(call, text):
        raise ParseError("no")

    (outcome,), counts = ask("a", parse=refuse)
    assert (outcome.status, outcome.value, counts.made) == ("parse_error", None, 0)


@pytest.mark.parametrize("status", ["refused", "truncated"])
def test_what_is_no_complete_reply_is_never_parsed_and_never_asked_again(
    ask, scripted_engine, status
):
    def fail(call, text):
        raise AssertionError("parsed")

    engine = scripted_engine(lambda call: Reply(status, "<verdict>1</verdict>", error="why"))
    for _ in range(2):
        (outcome,), _ = ask("a", engine=engine, parse=fail)
        assert (outcome.status, outcome.value, outcome.error) == (status, None, "why")
    assert len(engine.asked) == 1


def test_a_call_that_did_not_get_through_is_an_error_after_the_others_are_stored(
    ask, ledger, scripted_engine
):
    down = {"b"}

    def script(call):
        text = call.inputs["text"]
        return Reply("transport_error", error="HTTP 503") if text in down else text

    engine = scripted_engine(script)
    with pytest.raises(LedgerError, match=r"1 of 3 calls .* such as item of b: HTTP 503.*again"):
        ask("a", "b", "c", engine=engine)
    assert ledger.frame()["status"].to_list() == ["ok", "transport_error", "ok"]
    with pytest.raises(LedgerError, match="1 of 1 calls"):
        ask("a", "b", "c", engine=engine)
    down.clear()
    outcomes, counts = ask("a", "b", "c", engine=engine)
    assert [outcome.value for outcome in outcomes] == ["A", "B", "C"]
    assert (counts.made, len(engine.asked)) == (1, 5)
    frame = ledger.frame()
    assert frame.filter("canonical")["item"].sort().to_list() == [f"item of {t}" for t in "abc"]
    assert frame.filter(frame["status"] == "transport_error")["canonical"].any() is False


def test_a_transport_error_is_asked_again_in_the_same_session(ledger, scripted_engine):
    said = iter([Reply("transport_error"), Reply("ok", "a")])
    with ledger.session(scripted_engine(lambda call: next(said)), "stage", "c00") as session:
        with pytest.raises(LedgerError):
            session.ask(calls("a"), upper)
        (outcome,) = session.ask(calls("a"), upper)
    assert outcome.value == "A"


def test_an_exception_of_the_engine_keeps_what_was_answered(ask, ledger, scripted_engine):
    def script(call):
        return RuntimeError("boom") if call.inputs["text"] == "c" else call.inputs["text"]

    message = r"engine Scripted/Model-1: answer raised RuntimeError: boom \(.*\.py:\d+\).*run again"
    with pytest.raises(SaberError, match=message):
        ask("a", "b", "c", "d", engine=scripted_engine(script))
    assert ledger.frame()["text"].to_list() == ["a", "b"]
    engine = scripted_engine()
    ask("a", "b", "c", "d", engine=engine)
    assert [call.inputs["text"] for call in engine.asked] == ["c", "d"]


def test_an_exception_of_the_parser_keeps_the_reply(ask, ledger, scripted_engine):
    def broken(call, text):
        raise KeyError("a fault of ours")

    engine = scripted_engine()
    with pytest.raises(KeyError, match="a fault of ours"):
        ask("a", "b", engine=engine, parse=broken)
    outcomes, counts = ask("a", "b", engine=engine)
    assert ([outcome.value for outcome in outcomes], counts.made) == (["A", "B"], 0)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([0], "left 1 of 2 calls without a reply"),
        ([], "left 2 of 2 calls"),
        ([0, 0], "yielded position 0 of 2 calls, which does not exist or was answered before"),
        ([0, 1, 1], "yielded position 1"),
        ([0, 2], "yielded position 2"),
        ([0, -1], "yielded position -1"),
    ],
)
def test_an_engine_must_answer_each_call_once(ask, ledger, scripted_engine, positions, message):
    class Sloppy(scripted_engine):
        def answer(self, calls):
            for position in positions:
                yield position, Reply("ok", calls[min(position, 1)].inputs["text"])

    with pytest.raises(LedgerError, match=message):
        ask("a", "b", engine=Sloppy())
    stored = dict(ledger.frame().select("item", "text").iter_rows())
    assert stored == {f"item of {t}": t for t in "ab" if "ab".index(t) in positions}
    outcomes, _ = ask("a", "b")
    assert [outcome.value for outcome in outcomes] == ["A", "B"]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (None, "yielded None"),
        ("text", "yielded 'text'"),
        (Reply("ok", "b"), "yielded Reply"),
        ((1, "b"), r"yielded \(1, 'b'\)"),
        (("1", Reply("ok", "b")), r"yielded \('1'"),
        ((1, Reply("ok", "b"), 0), r"yielded \(1, Reply"),
        ((1, Reply("done", "b")), "status is 'done'"),
        ((1, Reply(None, "b")), "status is None"),
        ((1, Reply("ok", None)), "text is a NoneType, not a str"),
        ((1, Reply("refused", error=404)), "error is a int, not a str"),
        ((1, Reply("ok", "b", price=float("nan"))), "price is nan"),
        ((1, Reply("ok", "b", latency=None)), "latency is None"),
        ((1, Reply("ok", "b", usage={"prompt": 1})), "usage is {'prompt': 1}"),
        ((1, Reply("ok", "b", usage=Usage(prompt=None))), "usage is Usage"),
    ],
)
def test_what_is_no_reply_is_named_and_never_stored(ask, ledger, scripted_engine, item, message):
    class Sloppy(scripted_engine):
        def answer(self, calls):
            yield 0, Reply("ok", "a")
            yield item
            yield 2, Reply("ok", "c")

    with pytest.raises(LedgerError, match=f"Scripted/Model-1.*{message}.*must yield .position"):
        ask("a", "b", "c", engine=Sloppy())
    assert ledger.frame().select("status", "text").rows() == [("ok", "a")]


def test_a_list_of_lists_is_an_answer_too(ask, scripted_engine):
    class Eager(scripted_engine):
        def answer(self, calls):
            return [[n, Reply("ok", call.inputs["text"])] for n, call in enumerate(calls)]

    outcomes, _ = ask("a", "b", engine=Eager())
    assert [outcome.value for outcome in outcomes] == ["A", "B"]


@pytest.mark.parametrize("returned", [None, 3])
def test_an_answer_that_cannot_be_iterated_is_named(ask, ledger, scripted_engine, returned):
    class Silent(scripted_engine):
        def answer(self, calls):
            return returned

    message = f"Scripted/Model-1 returned {returned} from answer; an engine must yield"
    with pytest.raises(LedgerError, match=message):
        ask("a", engine=Silent())
    assert ledger.frame().height == 0


def test_parameters_that_are_not_json_are_named(ask, scripted_engine):
    message = "engine Scripted/Model-1: params or messages raised TypeError: .*set is not JSON"
    with pytest.raises(SaberError, match=message):
        ask("a", engine=scripted_engine(params={"stop": {1, 2}}))


def test_replies_in_any_order_find_their_calls(ask, scripted_engine):
    class Backwards(scripted_engine):
        def answer(self, calls):
            yield from reversed(list(super().answer(calls)))

    outcomes, _ = ask("a", "b", "c", engine=Backwards())
    assert [outcome.value for outcome in outcomes] == ["A", "B", "C"]


def test_lone_surrogates_in_a_reply_do_not_spoil_the_segment(ask, ledger, scripted_engine):
    bad = json.loads(r'"a\ud800b"')
    engine = scripted_engine(lambda call: Reply("ok", bad, reasoning=bad))
    (first,), _ = ask("a", engine=engine)
    (again,), _ = ask("a", engine=engine)
    assert first == again
    assert (again.value, len(engine.asked)) == ("A?B", 1)
    assert ledger.frame()["reasoning"].to_list() == ["a?b"]


def test_replay_makes_no_calls(ask, scripted_engine):
    ask("a", "?b")
    engine = scripted_engine()
    outcomes, _ = ask("a", "?b", engine=engine, mode="replay")
    assert [outcome.status for outcome in outcomes] == ["ok", "parse_error"]
    with pytest.raises(LedgerError, match=r"lacks 2 replies, the first for item of c \(key "):
        ask("a", "c", "d", engine=engine, mode="replay")
    assert engine.asked == []


def test_a_transport_error_is_missing_in_a_replay(ask, scripted_engine):
    with pytest.raises(LedgerError):
        ask("a", engine=scripted_engine(lambda call: Reply("transport_error")))
    with pytest.raises(LedgerError, match="lacks 1 replies"):
        ask("a", mode="replay")


def test_a_full_journal_becomes_a_segment(ask, ledger, monkeypatch):
    monkeypatch.setattr(store, "SEGMENT_ROWS", 3)
    outcomes, _ = ask(*"abcdefgh")
    assert [outcome.value for outcome in outcomes] == list("ABCDEFGH")
    assert ledger.frame().group_by("segment", maintain_order=True).len()["len"].to_list() == [
        3,
        3,
        2,
    ]
    assert ledger.frame()["text"].to_list() == list("abcdefgh")
    _, counts = ask(*"abcdefgh")
    assert counts.made == 0


def test_counts_and_lines_tell_how_far_a_step_is(ledger, ask, scripted_engine, monkeypatch):
    monkeypatch.setattr("saber_dagster.ledger.session.LOG_SECONDS", 0.0)
    ask("a")
    seen, lines = [], []

    def script(call):
        seen.append((session.counts.replayed, session.counts.made, session.counts.asked))
        return Reply("refused" if call.inputs["text"] == "c" else "ok", "x", usage=Usage(1000, 200))

    with ledger.session(scripted_engine(script), "stage", "c00", log=lines.append) as session:
        session.ask(calls("a", "b", "c", "b"), upper)
    assert seen == [(2, 0, 4), (2, 1, 4)]
    pattern = (
        r"stage c00: 3 of 4 calls \(2 from the ledger\), [\d.,]+ calls/s, 1.2 k tokens, about 0 .*"
    )
    assert re.fullmatch(pattern, lines[0])
    pattern = (
        r"stage c00: 4 of 4 calls \(2 from the ledger, 1 refused\), [\d.,]+ calls/s, 2.4 k tokens"
    )
    assert re.fullmatch(pattern, lines[-1])


def test_names_become_folders_without_danger(ledger, scripted_engine):
    with ledger.session(scripted_engine(model="../../Org/M 1"), "../x/", "a|b/..") as session:
        session.ask(calls("a"), upper)
    (path,) = files(ledger, ".parquet")
    assert path.parent == ledger.root / "x/org-m-1/a-b"


def test_a_damaged_segment_is_named(ask, ledger):
    ask("a")
    (path,) = files(ledger, ".parquet")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(LedgerError, match=r"\.parquet is damaged .* restore it"):
        ask("a")
    with pytest.raises(LedgerError, match="is damaged"):
        ledger.frame()


# ------------------------------------------------------------------------------ two at a time


def test_two_sessions_at_once_pay_both_and_agree_afterwards(ledger, scripted_engine):
    first, second = (scripted_engine(lambda call, n=n: f"{call.inputs['text']}{n}") for n in "12")
    message = r"stage c00: another step .* another reply to 2 of them, such as item of a; .* again"
    one = ledger.session(first, "stage", "c00").__enter__()
    with ledger.session(second, "stage", "c01") as two:
        assert two.ask(calls("b"), upper)[0].value == "B2"
        assert one.ask(calls("a", "b"), upper)[1].value == "B1"
        assert two.ask(calls("a"), upper)[0].value == "A2"
    before = ledger.frame()
    assert before["canonical"].all()
    with pytest.raises(LedgerError, match=message):
        one.__exit__(None)
    assert ledger.frame()[:2].equals(before), "what was settled first stays canonical"
    assert ledger.frame().height == 4
    with ledger.session(scripted_engine(), "stage", "c00", mode="replay") as session:
        assert [o.value for o in session.ask(calls("a", "b"), upper)] == ["A2", "B2"]


def test_a_journal_that_is_older_than_a_segment_never_overrules_it(ledger, ask, scripted_engine):
    engine = scripted_engine(lambda call: f"{call.inputs['text']} of old")
    old = ledger.session(engine, "stage", "c00").__enter__()
    old.ask(calls("a"), upper)
    (journal,) = files(ledger, ".journal")
    data = journal.read_bytes()
    ask("a", partition="c01")
    with pytest.raises(LedgerError, match="another step paid"):
        old.__exit__(None)
    files(ledger, ".parquet")[-1].unlink()
    journal.write_bytes(data)  # as if it had been killed
    ledger.recover()
    assert ledger.frame().select("text", "canonical").rows() == [("a", True), ("a of old", False)]


def test_the_same_reply_of_two_steps_is_no_fault(ledger, ask, scripted_engine):
    with ledger.session(scripted_engine(), "stage", "c00") as session:
        session.ask(calls("a"), upper)
        ask("a", partition="c01")
    assert session.counts.duplicates == 1


def test_another_status_is_another_reply_even_if_both_are_empty(ledger, ask, scripted_engine):
    engine = scripted_engine(lambda call: Reply("refused"))
    session = ledger.session(engine, "stage", "c00").__enter__()
    session.ask(calls("a"), upper)
    ask("a", engine=scripted_engine(lambda call: Reply("truncated")), partition="c01")
    with pytest.raises(LedgerError, match="another reply to 1 of them"):
        session.__exit__(None)


def test_half_a_line_on_a_full_disk_does_not_spoil_the_next(ledger, scripted_engine):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ledger.session(scripted_engine(), "stage", "c00") as session:
        session.ask(calls("a"), upper)
        (journal,) = files(ledger, ".journal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size + 40, limits[1]))
        try:
            with pytest.raises(OSError, match=r"\.journal"):
                session.ask(calls("b"), upper)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert journal.read_bytes().endswith(b"}\n")
        session.ask(calls("c"), upper)
        assert journal.read_bytes().count(b"\n") == 2
    assert ledger.frame()["text"].to_list() == ["a", "c"]


def test_keys_are_told_apart_by_their_second_half():
    keys = ["ab" * 8 + f"{n:016x}" + "0" * 32 for n in range(3)]
    high, low = key_halves(keys[:2])
    index = Index()
    index.add([(Path("s"), Keys((("s", 2),), high, low, np.array([True, True])))])
    assert index.find(keys[::-1]) == [None, (Path("s"), 1), (Path("s"), 0)]


def test_the_journal_of_a_step_at_work_is_left_alone(ledger, ask, scripted_engine):
    with ledger.session(scripted_engine(), "stage", "c00") as session:
        session.ask(calls("a"), upper)
        assert ledger.frame().height == 0
        ask("b")
        assert len(files(ledger, ".journal")) == 1
        session.flush()
        assert ledger.frame().height == 2
    assert not files(ledger, ".journal")


# ------------------------------------------------------------------------------------- kills


def abandoned_journal(ledger, ask, tail=b""):
    """A journal as a killed process leaves it, and the segment that it would have become."""
    ask("a", "?b")
    (segment,) = files(ledger, ".parquet")
    rows = ledger.frame().drop("partition", "segment", "canonical").to_dicts()
    journal = segment.with_suffix(".journal")
    journal.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + tail)
    return journal, segment


@pytest.mark.parametrize(
    "tail", [b"", b"{", b'{"key": "abc", "item": "x', b'{"key": 1}', b"\x00\x00"]
)
def test_a_journal_is_recovered_up_to_its_half_written_last_line(ledger, ask, tail):
    journal, segment = abandoned_journal(ledger, ask, tail)
    before = ledger_rows(segment)
    segment.unlink()
    outcomes, counts = ask("a", "?b")
    assert [outcome.status for outcome in outcomes] == ["ok", "parse_error"]
    assert counts.made == 0
    assert not journal.exists()
    (recovered,) = files(ledger, ".parquet")
    assert ledger_rows(recovered) == before


def ledger_rows(segment):
    return read_segment(segment).to_dicts()


def test_a_kill_between_segment_and_removal_of_the_journal_changes_nothing(ledger, ask):
    journal, segment = abandoned_journal(ledger, ask)
    before = segment.read_bytes()
    assert ledger.frame()["canonical"].to_list() == [True, True], "no reply is there twice"
    assert not journal.exists()
    assert segment.read_bytes() == before


def test_an_empty_journal_is_removed(ledger, ask):
    journal, segment = abandoned_journal(ledger, ask)
    segment.unlink()
    journal.write_bytes(b"")
    assert ledger.frame().height == 0
    assert not journal.exists()
    assert not segment.exists()


SCRIPT = '''
"""Fork children that ask; argv: root, mode, number of calls, number of children."""
import os, sys, time
from pathlib import Path
from saber_dagster.ledger import Ledger, store
from saber_dagster.engines import Call, PromptRef, Reply
from saber_dagster.hashing import hash64

root, mode, n, children = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
paid = root / "paid"
store.SEGMENT_ROWS = 23


class Engine:
    model = revision = "m"
    def params(self, task): return {}
    def prompt(self, task): return PromptRef("p", "0")
    def messages(self, call): return [{"role": "user", "content": call.inputs["text"]}]
    def answer(self, calls):
        for position, call in enumerate(calls):
            with paid.open("a") as file:
                file.write(call.inputs["text"] + "\\n")
            if mode == "race":
                (root / f"at-{os.getpid()}").touch()
                while len(list(root.glob("at-*"))) < children:
                    time.sleep(0.001)
            yield position, Reply("ok", f"{call.inputs['text']} by {os.getpid()}")


def child(number):
    with Ledger(root).session(Engine(), "stage", f"c{number % 2}") as session:
        calls = [Call("task", {"text": f"t{i}"}, f"i{i}") for i in range(n)]
        session.ask(calls, lambda call, text: text)


def other_reply(error):
    return mode == "race" and "another step paid the same calls" in str(error)


def lines():
    return paid.read_bytes().count(b"\\n") if paid.exists() else 0


pids = []
for number in range(children):
    start = lines()
    pid = os.fork()
    if not pid:
        try:
            child(number)
            os._exit(0)
        except BaseException as error:
            print(error, flush=True)
            os._exit(1 + other_reply(error))
    pids.append(pid)
    if mode == "kill":
        until = start + 1 + hash64("kill", number) % (n // children)
        while lines() < until and os.waitpid(pid, os.WNOHANG) == (0, 0):
            time.sleep(0.0002)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
if mode == "race":
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)
    # whoever settles a call second is told so; with several segments each, both may be
    sys.exit(0 if codes in ([0, 2], [2, 2]) else 1)
'''


def fork(root, mode, n, children):
    root.mkdir()
    arguments = [str(root), mode, str(n), str(children)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def ask_all(root, n, scripted_engine, mode="live"):
    """Ask the script's calls in this process; returns engine and outcomes."""

    class Twin(scripted_engine):
        def messages(self, call):
            return [{"role": "user", "content": call.inputs["text"]}]

    engine = Twin(model="m", revision="m", params={})
    with Ledger(root).session(engine, "stage", "c0", mode=mode) as session:
        return engine, session.ask(calls(*(f"t{i}" for i in range(n))), lambda call, text: text)


def test_a_kill_at_any_point_loses_at_most_the_call_in_flight(tmp_path, scripted_engine):
    root, n, kills = tmp_path / "ledger", 2000, 12
    fork(root, "kill", n, kills)
    assert len(list(root.rglob("*.journal"))) <= 1, "each start recovers the one before"
    paid = collections.Counter((root / "paid").read_text().split())
    assert sum(paid.values()) >= kills
    assert len(paid) < n, "the kills came in the middle"
    engine, outcomes = ask_all(root, n, scripted_engine)
    paid.update(call.inputs["text"] for call in engine.asked)
    assert sum(paid.values()) <= n + kills, "one call in flight for each kill"
    assert max(paid.values()) <= kills
    frame = Ledger(root).frame()
    assert frame.height == n, "no reply lost, none stored twice"
    assert frame["canonical"].all()
    assert [outcome.value.split()[0] for outcome in outcomes] == [f"t{i}" for i in range(n)]
    assert all(status in FINAL for status in frame["status"].unique())


def test_two_processes_that_pay_the_same_calls_at_once(tmp_path, scripted_engine):
    root = tmp_path / "ledger"
    fork(root, "race", 30, 2)
    frame = Ledger(root).frame()
    assert frame.height == 60
    assert frame["canonical"].sum() == 30
    canonical = frame.filter("canonical")
    assert canonical["key"].n_unique() == 30
    _, outcomes = ask_all(root, 30, scripted_engine, mode="replay")
    values = {outcome.key: outcome.value for outcome in outcomes}
    assert values == dict(canonical.select("key", "text").iter_rows())


def test_a_journal_line_that_this_version_cannot_read_is_kept(ledger, ask):
    journal, segment = abandoned_journal(ledger, ask)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + b'{"key": "of a later version", "mood": "fine"}\n' + lines[1])
    segment.unlink()
    assert ledger.frame().height == 2
    assert not journal.exists()
    assert b"later version" in journal.with_suffix(".damaged").read_bytes()
