import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saber_dagster import ledger_files
from saber_dagster.engines import FINAL, Call, Reply
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger, LedgerError
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
    (segment,) = ledger.root.rglob("*.parquet")
    segment.unlink()
    length = cut.draw(st.integers(0, len(data)))
    journal.write_bytes(data[:length])
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    whole = sum(end <= length for end in ends)  # the line's end itself may be missing
    assert ledger.frame()["text"].to_list() == texts[:whole]
    assert ledger_files.recover(ledger.root) == 0
    engine = scripted_engine()
    with ledger.session(engine, "stage", "c00") as session:
        assert [o.value for o in session.ask(calls, lambda call, text: text)] == texts
    assert len(engine.asked) == len(texts) - whole
