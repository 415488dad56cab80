"""Files beside segments, and journals, whose bytes or values are not what they should be."""

import json

import pytest
from ledgers import Judge, judge

from saber_dagster.engines import Reply, Usage
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.ledger.segments import keys_beside, parquet_bytes, read_segment


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger")
    judge(made, range(3))
    return made


def stored(ledger):
    (path,) = ledger.root.glob("tournament_rounds/**/*.parquet")
    return path


def test_a_flipped_byte_in_the_keys_pays_no_call_again(ledger):
    beside = stored(ledger).with_suffix(".keys")
    whole = beside.read_bytes()
    for place in [0, len(whole) // 3, *range(whole.index(b"\n"), len(whole), 7), len(whole) - 1]:
        changed = bytearray(whole)
        changed[place] ^= 0x01
        beside.write_bytes(bytes(changed))
        assert judge(ledger, range(3))[1].made == 0
        assert beside.read_bytes() == whole, "it is made again"


def test_keys_without_a_checksum_are_made_again(ledger):
    beside = stored(ledger).with_suffix(".keys")
    whole = beside.read_bytes()
    head, _, body = whole.partition(b"\n")
    old = {name: value for name, value in json.loads(head).items() if name != "crc32"}
    beside.write_bytes(json.dumps(old).encode() + b"\n" + body)
    assert keys_beside(stored(ledger)) is None
    assert judge(ledger, range(3))[1].made == 0
    assert beside.read_bytes() == whole


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_tokens": 2**63},
        {"prompt_tokens": True},
        {"sample": 1.5},
        {"price": float("nan")},
        {"price": 10**400},
        {"truncated_input": 1},
        {"text": None},
        {"text": "\ud800"},
    ],
)
def test_a_line_that_no_column_can_hold_blocks_nothing(ledger, wrong):
    rows = read_segment(stored(ledger)).to_dicts()
    segment = stored(ledger)
    segment.unlink()
    segment.with_suffix(".keys").unlink()
    rows[1] |= wrong
    journal = segment.with_suffix(".journal")
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = journal.read_bytes()
    assert judge(ledger, range(3))[1].made == 1, "the other two are saved"
    assert journal.with_suffix(".damaged").read_bytes() == whole
    assert not journal.exists()


def test_a_text_of_a_journal_that_was_changed_is_not_archived(ledger):
    journal = ledger.root / "tournament_rounds/org-judge/c00/1.journal"
    line = json.dumps({"sha256": "0" * 64, "content": "another text"})
    journal.write_text(line + "\n")
    ledger.recover()
    assert not ledger.archive.has("0" * 64)
    assert journal.with_suffix(".damaged").exists()


def test_a_journal_that_makes_no_segment_is_named(ledger, monkeypatch):
    journal = stored(ledger).with_name("1.journal")
    row = read_segment(stored(ledger)).to_dicts()[0]
    journal.write_text(json.dumps(row) + "\n")

    def fail(frame):
        raise RuntimeError("a fault of the writer")

    monkeypatch.setattr("saber_dagster.ledger.segments.parquet_bytes", fail)
    with pytest.raises(LedgerError, match=r"\.journal cannot be turned .*a fault of the writer"):
        ledger.recover()
    monkeypatch.setattr("saber_dagster.ledger.segments.parquet_bytes", parquet_bytes)
    assert ledger.recover() == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply("ok", usage=Usage(prompt=2**63)),
        Reply("ok", usage=Usage(completion=-1)),
        Reply("ok", usage=Usage(cached=True)),
        Reply("ok", price=10**400),
        Reply("ok", latency=float("nan")),
    ],
)
def test_a_number_that_cannot_be_stored_is_an_error_of_the_engine(ledger, reply):
    class Wrong(Judge):
        def answer(self, calls):
            yield 0, reply

    with pytest.raises(LedgerError, match=r"yielded a Reply whose (usage|price|latency) is"):
        judge(ledger, [5], Wrong())
    assert not list(ledger.root.rglob("*.journal"))
