from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saber_dagster.engines import FINAL, Call, Reply
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.ledger import compact as compacting
from saber_dagster.ledger.index import Index
from saber_dagster.ledger.segments import Keys, key_halves
from saber_dagster.replies import ParseError

pytestmark = pytest.mark.property

STATUSES = ["ok", "ok", "parse_error", "refused", "truncated", "transport_error", "crash"]
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 1)), max_size=6),
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(STATUSES)),
        st.booleans(),
    ),
    max_size=6,
)


def parse(call, text):
    if text.endswith("!"):
        raise ParseError("!")
    return text


@pytest.fixture
def count(tmp_path):
    """A fresh folder for each example."""
    numbers = iter(range(10**6))
    return lambda: tmp_path / str(next(numbers))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_whatever_happens_a_call_is_paid_until_it_has_a_final_reply(scripted_engine, count, steps):
    """Sessions after sessions against a plain dictionary of what has a final reply."""
    ledger = Ledger(count())
    final: dict[tuple[str, int], str] = {}
    paid = 0
    for number, (batch, moods, flush) in enumerate(steps):

        def script(call, moods=moods):
            mood = moods.get(call.inputs["text"], "ok")
            if mood == "crash":
                return RuntimeError("crash")
            if mood in ("ok", "parse_error"):
                return call.inputs["text"] + str(call.sample) + "!" * (mood == "parse_error")
            return Reply(mood)

        expected = []
        crashed = lost = False
        for text, sample in dict.fromkeys(batch):
            mood = moods.get(text, "ok")
            if (text, sample) in final or crashed:
                continue
            expected.append((text, sample))
            crashed = mood == "crash"
            lost |= mood == "transport_error"
            paid += not crashed
            if mood in FINAL:
                final[text, sample] = mood
        engine = scripted_engine(script)
        calls = [Call("task", {"text": text}, text, sample) for text, sample in batch]
        outcomes = None
        with ledger.session(engine, "stage", f"c{number % 2}") as session:
            try:
                outcomes = session.ask(calls, parse)
            except LedgerError:
                assert lost
                assert not crashed
            except SaberError:
                assert crashed
            if flush:
                session.flush()
        assert [(call.inputs["text"], call.sample) for call in engine.asked] == expected
        assert (outcomes is None) == (crashed or lost)
        for call, outcome in zip(calls, outcomes or [], strict=False):
            status = final[call.inputs["text"], call.sample]
            assert outcome.status == status
            assert outcome.value == (
                f"{call.inputs['text']}{call.sample}" if status == "ok" else None
            )
    frame = ledger.frame()
    assert frame.height == paid
    assert frame["canonical"].sum() == len(final)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True), cut=st.data()
)
def test_a_journal_cut_anywhere_gives_its_whole_lines(scripted_engine, count, texts, cut):
    ledger = Ledger(count())
    calls = [Call("task", {"text": text}, text) for text in texts]
    with ledger.session(scripted_engine(), "stage", "c00") as session:
        session.ask(calls, lambda call, text: text)
        if not texts:
            return
        (journal,) = ledger.root.rglob("*.journal")
        data = journal.read_bytes()
    (segment,) = (ledger.root / "stage").rglob("*.parquet")
    segment.unlink()
    length = len(data) * cut.draw(st.integers(0, 1000)) // 1000
    journal.write_bytes(data[:length])
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    lines = data.splitlines()
    whole = sum(  # the line's end itself may be missing; long texts have lines of their own
        end <= length and line.startswith(b'{"key"') for end, line in zip(ends, lines, strict=True)
    )
    assert ledger.frame()["text"].to_list() == texts[:whole]
    assert ledger.recover() == 0
    engine = scripted_engine()
    with ledger.session(engine, "stage", "c00") as session:
        assert [o.value for o in session.ask(calls, lambda call, text: text)] == texts
    assert len(engine.asked) == len(texts) - whole


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["c0", "c1", "c2"]), st.text("abcdef", min_size=1, max_size=4)),
        min_size=1,
        max_size=8,
    ),
    cuts=st.lists(st.integers(2, 12), min_size=1, max_size=3),
)
def test_compaction_keeps_rows_order_and_canonical_replies(scripted_engine, count, steps, cuts):
    """Steps that pay the same calls at the same time, in several partitions, then joined at random."""
    ledger = Ledger(count())
    sessions = [
        ledger.session(scripted_engine(lambda call, n=n: f"{call.item}{n}"), "stage", partition)
        for n, (partition, _) in enumerate(steps)
    ]
    for session in sessions:
        session.__enter__()
    for session, (_, texts) in zip(sessions, steps, strict=True):
        session.ask([Call("task", {"text": text}, text) for text in texts], lambda _, text: text)
    for session in reversed(sessions):
        with suppress(LedgerError):  # another reply than a session's own may count
            session.__exit__(None)

    def answers():
        engine = scripted_engine()
        with ledger.session(engine, "stage", "c0", mode="replay") as session:
            calls = [Call("task", {"text": text}, text) for text in "abcdef" if text in asked]
            return session.ask(calls, lambda _, text: text)

    asked = {text for _, texts in steps for text in texts}
    frame, replies = ledger.frame(), answers()
    for most in sorted(cuts):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compacting, "JOINED_ROWS", most)
            compacting.compact(ledger)
        assert ledger.frame().equals(frame)
        assert answers() == replies
    compacting.compact(ledger)
    files = list(ledger.root.glob("stage/*/*/*.parquet"))
    assert len(files) == len({partition for partition, _ in steps})


KEY = st.tuples(st.sampled_from(["0" * 16, "8" * 16, "f" * 16]), st.integers(0, 3)).map(
    lambda pair: f"{pair[0]}{pair[1]:016x}".ljust(64, "0")
)
"""Keys of which many share their first half."""


@given(
    batches=st.lists(
        st.lists(st.lists(st.tuples(KEY, st.booleans()), max_size=5), max_size=4), max_size=5
    ),
    asked=st.lists(KEY, max_size=8),
)
def test_the_index_finds_what_a_dictionary_finds(batches, asked):
    """Batches of files, the files of a batch in any order, against the obvious dictionary."""
    index, twin, number = Index(), {}, 0
    for batch in batches:
        files = []
        for rows in batch:
            name = f"{number:04}"
            number += 1
            keys = [key for key, _ in rows]
            final = [final for _, final in rows]
            high, low = key_halves(keys)
            part = Keys(((name, len(rows)),), high, low, np.array(final, dtype=bool))
            files.append((Path(name), part))
            for row, key in enumerate(keys):
                if final[row]:
                    twin.setdefault(key, (Path(name), row))
        index.add(reversed(files))
        index.add(files)  # segments that are there already change nothing
    assert index.find(asked) == [twin.get(key) for key in asked]
    assert index.rows == sum(len(rows) for batch in batches for rows in batch)
