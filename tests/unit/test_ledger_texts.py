"""What calls were made of: archived once, restored exactly, read only where it is needed."""

import json

import polars as pl
import pytest
from ledgers import DOCUMENTS, Judge
from ledgers import TEXT as LONG

from prompts import load_prompt
from resources.engines.prompted import render_archived
from saber_dagster.engines import PAIRWISE_JUDGMENT, TOPIC_SCORES, Call, Reply, call_key
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.ledger.rendering import rendering, row_key
from saber_dagster.ledger.texts import Archive, packed, references, unpacked
from saber_dagster.ledger.transfer import export, import_from
from saber_dagster.ledger.verify import verify

JUDGMENT = Call(
    PAIRWISE_JUDGMENT,
    {"query": DOCUMENTS[0], "first": DOCUMENTS[1], "second": DOCUMENTS[2]},
    "q 1",
    sample=2,
)
TOPICS = Call(
    TOPIC_SCORES,
    {
        **DOCUMENTS[0],
        "candidates": ({"label": "sets", "synonyms": ("set",), "terms": ("a", LONG)},),
    },
    "topics",
)


class Engine(Judge):
    """Answers topics, too."""

    def answer(self, calls):
        for position, call in enumerate(calls):
            text = '<score n="1">1</score>' if call.task == TOPIC_SCORES else "<verdict>1</verdict>"
            yield position, Reply("ok", text, truncated_input=self.cut)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


def ask(ledger, *calls, engine=None, partition="c00"):
    with ledger.session(engine or Engine(), "stage", partition) as session:
        return session.ask(calls, lambda call, text: text)


def packs(ledger):
    return list((ledger.root / "texts").glob("*.parquet"))


@pytest.mark.parametrize("call", [JUDGMENT, TOPICS], ids=["judgment", "topics"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_the_key_is_computed_again_from_the_row_alone(ledger, call, cut):
    engine = Engine(cut)
    (outcome,) = ask(ledger, call, engine=engine)
    (row,) = Ledger(ledger.root).lookup(outcome.key[:6])
    restored = ledger.call_of(row)
    assert restored.inputs == json.loads(json.dumps(call.inputs))
    assert (restored.task, restored.item, restored.sample) == (call.task, call.item, call.sample)
    assert row["truncated_input"] is cut
    assert bool(row["messages"]) is cut, "messages are kept only where they cannot be rendered"
    sent = rendering(row, Archive(ledger.root), render_archived)
    assert sent.verified
    assert list(sent.messages) == list(engine.messages(call))
    assert ledger.prompt_text(row["prompt_sha256"]) == load_prompt(call.task).text
    if not cut:
        assert call_key(engine, restored) == outcome.key


def test_a_row_that_was_changed_does_not_verify(ledger):
    (outcome,) = ask(ledger, JUDGMENT)
    (row,) = ledger.lookup(outcome.key)
    assert row_key(row, Engine().messages(JUDGMENT)) == row["key"]
    for change in (
        {"revision": "r2"},
        {"params": "{}"},
        {"sample": 3},
        {
            "inputs": row["inputs"]
            .replace("first", "x")
            .replace("query", "first")
            .replace("x", "query")
        },
    ):
        sent = rendering({**row, **change}, ledger.archive, render_archived)
        assert not sent.verified


def test_texts_are_written_once_and_not_read_by_a_replay(ledger, monkeypatch):
    ask(ledger, JUDGMENT)
    (pack,) = packs(ledger)
    assert pl.read_parquet(pack).height == 6
    other = Call(
        PAIRWISE_JUDGMENT, {**JUDGMENT.inputs, "first": {"problem": LONG, "solution": "short"}}, ""
    )
    ask(ledger, other, partition="c01")
    heights = sorted(pl.read_parquet(path).height for path in packs(ledger))
    assert heights == [1, 6], "only the one that is new"
    monkeypatch.setattr("saber_dagster.ledger.texts.read_pack", None)
    monkeypatch.setattr("saber_dagster.ledger.texts.pack_keys", None)
    ask(ledger, JUDGMENT, other)


def test_a_missing_text_is_named_where_it_is_needed_only(ledger):
    (outcome,) = ask(ledger, JUDGMENT)
    for path in packs(ledger):
        path.unlink()
    assert ask(ledger, JUDGMENT) == [outcome]
    row = ledger.lookup(outcome.key)[0]
    with pytest.raises(LedgerError, match=r"the text [0-9a-f]{64} is missing in .*restore"):
        ledger.call_of(row)
    assert "is missing" in rendering(row, ledger.archive, render_archived).problem


def test_texts_of_a_journal_are_recovered(ledger):
    session = ledger.session(Engine(), "stage", "c00")
    with session:
        (outcome,) = session.ask([JUDGMENT], lambda call, text: text)
        (journal,) = ledger.root.rglob("*.journal")
        lines = journal.read_bytes()
    for path in [*packs(ledger), *ledger.root.rglob("stage/**/*.parquet")]:
        path.unlink()
    journal.write_bytes(lines)
    again = Ledger(ledger.root)
    assert again.recover() == 1
    assert rendering(again.lookup(outcome.key)[0], again.archive, render_archived).verified


def test_candidates_that_many_calls_share_are_kept_once(ledger, tmp_path):
    terms = tuple(f"a term of topic {n}" for n in range(500))
    candidates = ({"label": "sets", "synonyms": ("set",), "terms": terms},)
    calls = [
        Call(TOPIC_SCORES, {**document, "candidates": candidates}, f"d{n}")
        for n, document in enumerate(DOCUMENTS)
    ]
    keys = [outcome.key for outcome in ask(ledger, *calls)]
    rows = [ledger.lookup(key)[0] for key in keys]
    assert max(len(row["inputs"]) for row in rows) < 500
    assert len({json.loads(row["inputs"])["candidates"]["$list"] for row in rows}) == 1
    export(ledger, tmp_path / "out")
    other = Ledger(tmp_path / "other")
    import_from(other, tmp_path / "out")
    for whole in (ledger, other):
        assert verify(whole, render_archived).keys_verified == len(calls)
        assert rendering(rows[0], whole.archive, render_archived).verified


def test_an_engine_without_prompts_has_its_inputs_kept(ledger, scripted_engine):
    call = Call("task", {"text": LONG, "$": {"$": "x"}, "n": 3, "none": None}, "item")
    (outcome,) = ask(ledger, call, engine=scripted_engine())
    row = ledger.lookup(outcome.key)[0]
    assert ledger.call_of(row) == call
    sent = rendering(row, ledger.archive, render_archived)
    assert (sent.messages, sent.verified) == (None, None)
    assert "no prompt file" in sent.problem


@pytest.mark.parametrize(
    "value",
    [
        "x" * 64,
        "x" * 65,
        {"$": "0" * 64},
        {"$$": LONG},
        {"$list": "0" * 64},
        {"$$list": LONG},
        {"a": [LONG, {"b": LONG}]},
        {"a": [{"label": "x", "terms": ["y"] * 200, "$": 1}, {"label": "z", "terms": []}]},
        {"a": [[LONG], ["y"] * 200, {"$list": ["z" * 64] * 5}]},
        ["y" * 63] * 3,
        ["y" * 63] * 4,
        [],
        {},
        1.5,
        None,
    ],
)
def test_packing_is_undone_exactly(value):
    texts = {}

    def keep(text):
        texts[f"{len(texts):064}"] = text
        return f"{len(texts) - 1:064}"

    stored = json.loads(packed(value, keep))
    assert unpacked(stored, texts) == value
    assert sorted(references(stored)) == sorted(texts)


def test_a_segment_of_version_0_1_is_read(ledger, scripted_engine):
    """Such a segment lacks seven columns, and has neither a digest nor a file of keys."""
    call = Call("task", {"text": "a"}, "item")
    ask(ledger, call, engine=scripted_engine())
    (path,) = ledger.root.rglob("*.parquet")
    new = ["params", "sample", "attempt", "inputs", "messages", "truncated_input"]
    old = pl.read_parquet(path).drop(new)
    path.with_suffix(".keys").unlink()
    old.write_parquet(path)
    engine = scripted_engine()
    (outcome,) = ask(ledger, call, engine=engine)
    assert (outcome.value, engine.asked) == ("a", [])
    row = ledger.lookup(outcome.key)[0]
    assert {name: row[name] for name in new} == dict(
        zip(new, ["", 0, 0, "", "", False], strict=True)
    )
    with pytest.raises(LedgerError, match="stored without its inputs"):
        ledger.call_of(row)
