"""``saber ledger``: what is damaged is named, and joining, moving and reparsing lose nothing."""

import dataclasses
import json
import os

import polars as pl
import pytest
from ledgers import Judge, judge, judgment
from typer.testing import CliRunner

from resources.engines.prompted import render_archived
from saber_dagster.cli import app
from saber_dagster.engines import Reply
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.ledger.compact import compact
from saber_dagster.ledger.reparse import reparse
from saber_dagster.ledger.segments import (
    keys_beside,
    parquet_bytes,
    read_checked,
    write_keys,
    write_segment,
)
from saber_dagster.ledger.texts import write_pack
from saber_dagster.ledger.transfer import export, import_from
from saber_dagster.ledger.verify import verify
from saber_dagster.replies import ParseError


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Three segments in two partitions."""
    monkeypatch.setenv("SABER_HOME", str(tmp_path))
    made = Ledger(tmp_path / "ledger")
    judge(made, range(3))
    judge(made, range(3, 5))
    judge(made, range(5, 9), partition="c01")
    return made


@pytest.fixture
def saber(tmp_path):
    def run(*args, code=0):
        result = CliRunner().invoke(app, ["ledger", *args, "--json"])
        assert result.exit_code == code, result.output + repr(result.exception)
        return json.loads(result.stdout)

    return run


def segments(ledger):
    return sorted(ledger.root.glob("tournament_rounds/**/*.parquet"), key=lambda path: path.name)


def problems(ledger):
    return [str(finding) for finding in verify(ledger, render_archived).findings]


def replayed(ledger, numbers=range(9)):
    return [outcome.value for outcome in judge(ledger, numbers, Silent())[0]]


class Silent(Judge):
    """A judge that must not be asked."""

    def answer(self, calls):
        raise AssertionError(f"asked {len(calls)} calls")


# ------------------------------------------------------------------------------------- verify


def test_a_whole_ledger_is_verified_key_by_key(ledger, saber):
    result = saber("verify")
    assert (result["segments"], result["replies"], result["keys_verified"]) == (3, 9, 9)
    assert (result["prompts"], result["damaged"], result["findings"]) == (1, 0, [])
    assert result["texts"] == 18, "the documents of these judgments"


@pytest.mark.parametrize("kind", ["segment", "pack"])
def test_every_flipped_byte_is_found(ledger, kind):
    path = segments(ledger)[0] if kind == "segment" else next(ledger.root.glob("texts/*.parquet"))
    whole = path.read_bytes()
    for place in [*range(0, len(whole), 97), *range(len(whole) - 8, len(whole))]:
        changed = bytearray(whole)
        changed[place] ^= 0x10
        path.write_bytes(bytes(changed))
        with pytest.raises(LedgerError, match=f"{path.name} is damaged"):
            read_checked(path)
    assert any(str(path) in problem for problem in problems(ledger))


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def other_schema(path):
    pl.DataFrame({"key": [1]}).write_parquet(path)


def other_model(path):
    write_segment(path, pl.read_parquet(path).with_columns(pl.lit("other").alias("model")))


def other_status(path):
    write_segment(path, pl.read_parquet(path).with_columns(pl.lit("good").alias("status")))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (other_status, "3 rows have a status such as 'good'"),
        (truncate, "is damaged"),
        (other_schema, "is no segment of a ledger"),
        (other_model, "3 rows have a key that their content does not give"),
    ],
)
def test_a_damaged_segment_is_named_and_left_alone(ledger, saber, damage, message):
    path = segments(ledger)[0]
    damage(path)
    before = path.read_bytes()
    result = saber("verify", code=1)
    assert [message in finding["problem"] for finding in result["findings"]] == [True]
    assert result["findings"][0]["place"] == str(path)
    assert "move it away" not in result["findings"][0]["problem"], "the remedy is told once"
    assert path.read_bytes() == before


def test_damage_around_the_segments_is_named(ledger):
    pack = next(ledger.root.glob("texts/*.parquet"))
    texts = pl.read_parquet(pack)
    changed = texts.with_columns(pl.col("content").str.replace("Let", "Set"))
    pack.write_bytes(parquet_bytes(changed))
    (found,) = [problem for problem in problems(ledger) if pack.name in problem]
    assert "texts have another SHA-256 than their name" in found
    assert any("refer to texts that are missing" in problem for problem in problems(ledger))
    pack.write_bytes(parquet_bytes(texts))
    prompt = next(ledger.root.glob("prompts/*.md"))
    text = prompt.read_text()
    prompt.write_text(text + " ")
    assert any(prompt.name in problem for problem in problems(ledger))
    prompt.write_text(text)
    keys = segments(ledger)[0].with_suffix(".keys")
    whole = keys.read_bytes()
    keys.write_bytes(whole[:-1] + b"\0")
    (finding,) = verify(ledger, render_archived).findings
    assert (finding.place, finding.damage) == (str(keys), False), "it is made again"
    keys.write_bytes(whole)
    made = keys_beside(segments(ledger)[0])
    write_keys(segments(ledger)[0], dataclasses.replace(made, final=~made.final))
    (found,) = problems(ledger)
    assert str(keys) in found
    assert "Remove this file alone" in found
    keys.unlink()
    assert problems(ledger) == []
    (ledger.root / "stage").mkdir()
    (ledger.root / "stage/1.journal").write_bytes(b'{"key": 1}\n')
    (ledger.root / "stage/1.damaged").write_bytes(b"?")
    found = problems(ledger)
    assert "1.damaged" in found[0]
    assert "killed (0 of 1 lines readable)" in found[1]
    assert (ledger.root / "stage/1.journal").exists()


def test_wrong_keys_beside_a_segment_give_no_wrong_reply(ledger):
    first, second, _ = segments(ledger)
    beside = second.with_suffix(".keys")
    right = keys_beside(second)
    beside.write_bytes(first.with_suffix(".keys").read_bytes())
    assert replayed(ledger) == [1.0] * 9, "it names the file that it belongs to"
    swapped = dataclasses.replace(right, high=right.high[::-1], low=right.low[::-1])
    write_keys(second, swapped)
    with pytest.raises(LedgerError, match="run `saber ledger verify`"):
        replayed(ledger, [3])
    beside.unlink()
    assert replayed(ledger) == [1.0] * 9


def test_different_replies_to_one_call_are_told_and_are_no_damage(ledger):
    class Contrary(Judge):
        def answer(self, calls):
            yield from ((n, Reply("ok", "<verdict>2</verdict>")) for n in range(len(calls)))

    other = Ledger(ledger.root.with_name("other"))
    judge(other, range(2), Contrary())
    (path,) = segments(other)
    path.rename(segments(ledger)[0].with_name(path.name))
    result = verify(ledger, render_archived)
    (finding,) = result.findings
    assert "2 calls were paid more than once" in finding.problem
    assert result.damaged == []
    assert replayed(ledger) == [1.0] * 9, "the oldest counts"


# ------------------------------------------------------------------------------------ compact


def test_compaction_changes_nothing_but_the_number_of_files(ledger, saber):
    before, result = ledger.frame(), replayed(ledger)
    assert saber("compact") == {"files_before": 6, "files_after": 3, "in_use": []}
    assert len(segments(ledger)) == 2
    assert ledger.frame().equals(before)
    assert replayed(ledger) == result
    assert problems(ledger) == []
    assert compact(ledger).files_after == 3
    judge(ledger, range(9, 12))
    compact(ledger)
    assert ledger.frame()[:9].equals(before)
    assert replayed(ledger, range(12)) == [1.0] * 12


def test_a_folder_in_which_a_step_writes_is_left_alone(ledger):
    with ledger.session(Judge(), "tournament_rounds", "c00") as session:
        session.ask([judgment(20)], lambda _, text: text)
        done = compact(ledger)
        assert [folder[-4:] for folder in done.in_use] == ["/c00"]
    assert len(segments(ledger)) == 4


def test_a_reader_that_listed_before_finds_the_joined_file(ledger):
    with ledger.session(Silent(), "tournament_rounds", "c00") as session:
        row = ledger.lookup(ledger.frame()["key"][0])[0]
        ledger.call_of(row)
        compact(Ledger(ledger.root))
        outcomes = session.ask([judgment(n) for n in range(9)], lambda _, text: text)
        assert len(outcomes) == 9
        assert ledger.call_of(row).task == "pairwise_judgment"


def test_rows_that_lie_in_two_files_after_a_kill_count_once(ledger):
    before, old = ledger.frame(), {path: path.read_bytes() for path in segments(ledger)}
    compact(ledger)
    for path, data in old.items():
        path.write_bytes(data)
    assert len(segments(ledger)) == 4
    assert ledger.frame().equals(before)
    assert replayed(ledger) == [1.0] * 9
    assert problems(ledger) == []
    assert verify(ledger, render_archived).replies == 9
    assert ledger.paid("tournament_rounds", [""])[0] == 9
    compact(ledger)
    assert len(segments(ledger)) == 2
    assert ledger.frame().equals(before)


def test_compaction_does_not_change_which_reply_counts(ledger):
    """A joined file has a younger name than the segments in it."""

    class Second(Judge):
        def answer(self, calls):
            yield from ((n, Reply("ok", "<verdict>2</verdict>")) for n in range(len(calls)))

    late = ledger.session(Second(), "tournament_rounds", "c02").__enter__()
    late.ask([judgment(20)], lambda _, text: text)
    judge(ledger, [20])
    with pytest.raises(LedgerError, match="another step paid"):
        late.__exit__(None)
    before = ledger.frame()
    compact(ledger)
    assert [path.parent.name for path in segments(ledger)] == ["c01", "c02", "c00"]
    assert replayed(ledger, [20]) == [1.0]
    assert ledger.frame().equals(before)


@pytest.mark.parametrize(
    ("folder", "writer", "less"),
    [
        ("tournament_rounds", write_segment, lambda rows: rows.head(-1)),
        ("texts", write_pack, lambda texts: dict(list(texts.items())[1:])),
    ],
)
def test_compaction_keeps_the_old_files_if_the_new_one_lacks_a_row(
    ledger, monkeypatch, folder, writer, less
):
    def lose(path, rows):
        return writer(path, less(rows))

    monkeypatch.setattr(f"saber_dagster.ledger.compact.{writer.__name__}", lose)
    before = {path: path.read_bytes() for path in (ledger.root / folder).rglob("*.*")}
    with pytest.raises(LedgerError, match="did not come back as it was written; the files that it"):
        compact(ledger)
    assert {path: path.read_bytes() for path in (ledger.root / folder).rglob("*.*")} == before
    assert replayed(ledger) == [1.0] * 9


def test_compaction_stops_at_a_damaged_file(ledger):
    path = segments(ledger)[1]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(LedgerError, match=f"{path.name} is damaged"):
        compact(ledger)
    assert len(segments(ledger)) == 3


@pytest.mark.parametrize("kind", ["segment", "pack"])
def test_compaction_does_not_make_a_changed_file_look_whole(ledger, saber, kind):
    if kind == "segment":  # the last, so that the folders before it could have been joined
        path = segments(ledger)[-1]
        forge(path)
    else:
        path = sorted(ledger.root.glob("texts/*.parquet"))[-1]
        texts = pl.read_parquet(path).with_columns(pl.col("content").str.replace("Let", "Set"))
        path.write_bytes(parquet_bytes(texts))
    before = {path: path.read_bytes() for path in ledger.root.rglob("*") if path.is_file()}
    result = CliRunner().invoke(app, ["ledger", "compact"])
    assert result.exit_code == 1
    assert f"{path} is damaged" in str(result.exception)
    assert before == {path: path.read_bytes() for path in ledger.root.rglob("*") if path.is_file()}
    assert str(path) in [finding["place"] for finding in saber("verify", code=1)["findings"]]


def forge(path):
    """Other replies, with the digest of the file as it was."""
    old = path.read_bytes()
    frame = pl.read_parquet(path).with_columns(pl.lit("<verdict>2</verdict>").alias("text"))
    new = parquet_bytes(frame)
    name = b"saber_file_sha256"
    place, was = (data.rfind(name) + len(name) + 2 for data in (new, old))
    path.write_bytes(new[:place] + old[was : was + 64] + new[place + 64 :])


def test_a_step_uses_no_reply_of_a_changed_segment(ledger):
    path = segments(ledger)[0]
    forge(path)
    with pytest.raises(LedgerError, match=f"{path.name} is damaged .*another SHA-256"):
        replayed(ledger)
    assert replayed(ledger, range(3, 9)) == [1.0] * 6, "the others are whole"


# --------------------------------------------------------------------------- export and import


def test_an_export_is_a_ledger_that_replays(ledger, tmp_path, saber):
    compact(ledger)
    judge(ledger, range(9, 12), stage="other")
    done = saber("export", str(tmp_path / "out"), "--stage", "tournament_rounds")
    assert (done["replies"], done["texts"], done["prompts"]) == (9, 18, 1)
    out = Ledger(tmp_path / "out")
    assert out.frame().equals(ledger.frame("tournament_rounds"))
    assert problems(out) == []
    assert verify(out, render_archived).keys_verified == 9
    assert replayed(out) == [1.0] * 9
    with pytest.raises(LedgerError, match="is not empty"):
        export(ledger, out.root)
    with pytest.raises(
        LedgerError, match=r"of stage x and model any; it has other/org-judge, tour"
    ):
        export(ledger, tmp_path / "new", stage="x")


def test_an_import_adds_what_is_missing_and_changes_nothing(ledger, tmp_path, monkeypatch, saber):
    class Later(Judge):
        def answer(self, calls):
            yield from ((n, Reply("ok", "<verdict>2</verdict>")) for n in range(len(calls)))

    export(ledger, tmp_path / "out")
    here = Ledger(tmp_path / "home/ledger")
    judge(here, range(2), Later())
    before = here.frame()
    monkeypatch.setenv("SABER_HOME", str(tmp_path / "home"))
    done = saber("import", str(tmp_path / "out"))
    assert (done["replies"], done["present"], done["texts"]) == (7, 2, 14)
    assert replayed(here) == [0.0] * 2 + [1.0] * 7, "older replies from elsewhere change no answer"
    assert here.frame()[:2].equals(before)
    assert here.frame()["canonical"].all()
    assert problems(here) == []
    again = saber("import", str(tmp_path / "out"))
    assert (again["replies"], again["present"], again["texts"], again["prompts"]) == (0, 9, 0, 0)
    assert saber("import", str(tmp_path))["replies"] == 0, "a home is as good as its ledger"


def test_an_import_takes_the_reply_that_counts_and_no_other(ledger, tmp_path):
    class Contrary(Judge):
        def answer(self, calls):
            yield from ((n, Reply("ok", "<verdict>2</verdict>")) for n in range(len(calls)))

    other = Ledger(tmp_path / "other")
    judge(other, range(2), Contrary())
    (path,) = segments(other)
    path.rename(segments(ledger)[0].with_name(path.name))
    assert ledger.frame().height == 11
    here = Ledger(tmp_path / "here")
    done = import_from(here, ledger.root)
    assert (done.replies, done.present) == (9, 0)
    assert set(here.frame()["text"].str.slice(-20)) == {"<verdict>1</verdict>"}
    assert import_from(here, ledger.root).replies == 0


@pytest.mark.parametrize(
    "suffix", ["tournament_rounds/**/*.parquet", "texts/*.parquet", "prompts/*"]
)
def test_a_damaged_import_is_refused_whole(ledger, tmp_path, suffix):
    export(ledger, tmp_path / "out")
    path = sorted((tmp_path / "out").glob(suffix))[-1]
    path.write_bytes(path.read_bytes()[:-9])
    here = Ledger(tmp_path / "home")
    with pytest.raises(LedgerError, match=path.name):
        import_from(here, tmp_path / "out")
    path.unlink()
    if "texts" in suffix:
        with pytest.raises(LedgerError, match="18 texts are missing"):
            import_from(here, tmp_path / "out")
    assert not list(here.root.rglob("*.parquet"))
    with pytest.raises(LedgerError, match="name an exported folder"):
        import_from(here, tmp_path / "nothing")


# ---------------------------------------------------------------------------- reparse and show


def test_reparsing_tells_and_then_corrects_what_parsers_make_of_replies(ledger, saber):
    class Bad(Judge):
        def answer(self, calls):
            yield from ((n, Reply("ok", "neither")) for n in range(len(calls)))

    with ledger.session(Bad(), "tournament_rounds", "c02") as session:
        session.ask([judgment(n) for n in range(9, 12)], lambda _, text: text)  # a lenient parser
    compact(ledger)
    told = saber("reparse")["rows"]
    assert [(row["partition"], row["read"], row["changes"]) for row in told] == [
        ("c00", 5, {}),
        ("c01", 4, {}),
        ("c02", 3, {"ok → parse_error": 3}),
    ]
    assert ledger.frame()["status"].to_list() == ["ok"] * 12
    saber("reparse", "--write")
    frame = ledger.frame()
    assert frame["status"].to_list() == ["ok"] * 9 + ["parse_error"] * 3
    assert "<verdict>" in frame["error"][-1]
    assert problems(ledger) == []
    assert not any(result.changes for result in reparse(ledger))
    back = reparse(ledger, write=True, parse=lambda task, inputs, text: inputs["query"]["problem"])
    assert back[2].changes == {"parse_error → ok": 3}, "texts are restored if a parser looks"
    assert ledger.frame()["error"].to_list() == [""] * 12


@pytest.mark.parametrize("damage", [truncate, forge])
def test_reparsing_stops_at_a_changed_segment(ledger, damage):
    path = segments(ledger)[1]
    damage(path)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is damaged"):
        reparse(ledger, write=True)
    assert path.read_bytes() == before


def test_reparsing_a_joined_file_keeps_the_segments_of_its_rows(ledger):
    compact(ledger)
    before = ledger.frame()

    def refuse(task, inputs, text):
        raise ParseError("no")

    reparse(ledger, write=True, parse=refuse)
    after = ledger.frame()
    assert set(after["status"]) == {"parse_error"}
    assert after["segment"].equals(before["segment"])
    assert len(set(after["segment"])) == 3


def test_show_renders_the_messages_and_verifies_the_key(ledger, saber):
    key = ledger.frame()["key"][0]
    shown = saber("show", key[:8])
    assert [row["key"] for row in shown["rows"]] == [key]
    assert shown["verified"] is True
    assert shown["messages"] == list(Judge().messages(judgment(0)))
    plain = CliRunner().invoke(app, ["ledger", "show", key[:8]])
    assert "verified: the messages above give it" in plain.stdout
    assert "By " in plain.stdout


@pytest.mark.parametrize(
    ("key", "message"),
    [("abc", "at least 6"), ("zzzzzzz", "no key"), ("0" * 12, "has no reply whose key begins")],
)
def test_a_key_that_names_nothing_is_an_error(ledger, key, message):
    result = CliRunner().invoke(app, ["ledger", "show", key])
    assert message in str(result.exception)


def test_an_ambiguous_key_lists_what_it_may_be(ledger):
    rows = pl.read_parquet(segments(ledger)[0])
    keys = [f"{'a' * 10}{n:054}" for n in range(3)]
    write_segment(
        segments(ledger)[0].with_name("9.parquet"), rows.with_columns(pl.Series("key", keys))
    )
    result = CliRunner().invoke(app, ["ledger", "show", "a" * 8])
    assert all(key in str(result.exception) for key in keys)


def test_stats_sum_what_is_there(ledger, saber):
    judge(ledger, [9], Judge(cut=True))
    (row,) = saber("stats")["rows"]
    assert (row["replies"], row["distinct"], row["ok"], row["duplicates"]) == (10, 10, 10, 0)
    assert (row["reasked"], row["truncated_input"], row["prompt_tokens"]) == (0, 1, 1000)
    shown = CliRunner().invoke(app, ["ledger", "stats"]).stdout
    assert "tournament_rounds" in shown


def test_no_secret_of_the_environment_is_in_a_ledger_or_its_export(ledger, tmp_path, monkeypatch):
    secret = "sk-marked-0123456789"
    monkeypatch.setenv("SABER_TEST_API_KEY", secret)

    class Keyed(Judge):
        api_key = os.environ["SABER_TEST_API_KEY"]

    judge(ledger, range(9, 12), Keyed())
    export(ledger, tmp_path / "out")
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        data = path.read_bytes()
        if path.suffix == ".parquet":
            data = json.dumps(pl.read_parquet(path).to_dicts(), default=str).encode()
        assert secret.encode() not in data, path


def test_results_are_plain_data(ledger):
    for result in (compact(ledger), reparse(ledger)[0], verify(ledger, render_archived)):
        json.dumps(dataclasses.asdict(result))
