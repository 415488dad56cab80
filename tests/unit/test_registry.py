"""judges.yaml is changed as a person would change it."""

import pytest

from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.registry import judge_named, parse_options, with_judge, without_judge

WRITTEN = """\
# Who judges in this home.
judges:
  # the baseline, free
  - slug: embedded
    engine: embedded  # no GPU

  # the cheap one
  - slug: small
    engine: openai
    options:
      model: small   # 4 bit
      extra_body:
        stop:
          - a
          - b
      revision: "1"
  # the big one
  - {slug: big, engine: openai, options: {model: big, revision: "1"}}
  # that is all
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "judges.yaml").write_text(WRITTEN)
    return Home(tmp_path)


def test_a_new_entry_comes_last_and_the_rest_stays_as_it_was(home):
    edit = with_judge(home, {"slug": "new", "engine": "embedded", "ask": "generate"})
    assert [judge.slug for judge in edit.judges] == ["embedded", "small", "big", "new"]
    assert (home.root / "judges.yaml").read_text() == WRITTEN, "nothing is written yet"
    edit.write()
    text = (home.root / "judges.yaml").read_text()
    assert text.startswith(WRITTEN.rstrip().removesuffix("# that is all").rstrip())
    assert "# that is all" in text
    assert Home(home.root).judges == edit.judges


def test_the_first_file_keeps_the_baseline(tmp_path):
    edit = with_judge(Home(tmp_path), {"slug": "new", "engine": "embedded"})
    assert [judge.slug for judge in edit.judges] == ["embedded", "new"]
    (tmp_path / "judges.yaml").write_text("# none yet\n")
    edit = with_judge(Home(tmp_path), {"slug": "new", "engine": "embedded"})
    assert edit.text.startswith("# none yet\njudges:")
    assert [judge.slug for judge in edit.judges] == ["embedded", "new"]


@pytest.mark.parametrize(
    ("slug", "gone"),
    [
        ("embedded", "  - slug: embedded\n    engine: embedded  # no GPU\n"),
        ("small", WRITTEN[WRITTEN.index("  - slug: small") : WRITTEN.index("  # the big one")]),
        ("big", '  - {slug: big, engine: openai, options: {model: big, revision: "1"}}\n'),
    ],
)
def test_an_entry_goes_with_its_own_lines_and_no_other(home, slug, gone):
    edit = without_judge(home, slug)
    assert edit.text == WRITTEN.replace(gone, "")
    edit.write()
    assert slug not in {judge.slug for judge in Home(home.root).judges}


def test_entries_that_share_a_line_can_go_too(tmp_path):
    (tmp_path / "judges.yaml").write_text("judges: [{slug: a}, {slug: b}, {slug: c}]  # three\n")
    edit = without_judge(Home(tmp_path), "b")
    assert [judge.slug for judge in edit.judges] == ["a", "c"]
    assert "# three" in edit.text


def test_taken_out_and_put_back_is_the_same_judge(home):
    before = judge_named(home, "big")
    without_judge(home, "big").write()
    entry = before.model_dump(exclude_defaults=True)
    with_judge(Home(home.root), entry).write()
    assert judge_named(Home(home.root), "big") == before


def test_what_cannot_be_is_refused_with_the_remedy(home, tmp_path_factory):
    with pytest.raises(SaberError, match=r"has a judge 'big' already; edit its entry"):
        with_judge(home, {"slug": "big"})
    with pytest.raises(SaberError, match=r"no judge 'bib'; there are embedded, small, big"):
        without_judge(home, "bib")
    with pytest.raises(SaberError, match="must be of small letters"):
        with_judge(home, {"slug": "Big"})
    with pytest.raises(SaberError, match=r"did you mean .*ask"):
        with_judge(home, {"slug": "new", "asks": "generate"})
    only = Home(tmp_path_factory.mktemp("empty"))
    with pytest.raises(SaberError, match="the only judge"):
        without_judge(only, "embedded")


def test_options_are_yaml():
    pairs = ["temperature=0", "extra_body={top_k: 1}", "revision='2'", "note=a=b"]
    assert parse_options(pairs) == {
        "temperature": 0,
        "extra_body": {"top_k": 1},
        "revision": "2",
        "note": "a=b",
    }
    for pair in ("temperature", "=0"):
        with pytest.raises(SaberError, match="write KEY=VALUE"):
            parse_options([pair])
    with pytest.raises(SaberError, match="names a twice"):
        parse_options(["a=1", "a=2"])
    with pytest.raises(SaberError, match="--option a: not readable as YAML"):
        parse_options(["a={"])
