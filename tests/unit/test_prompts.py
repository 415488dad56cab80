"""Prompt files: those that ship, and what is said about wrong ones."""

import hashlib
import re
from pathlib import Path

import pytest

import prompts
from prompts import example_inputs, load_prompt, parse_prompt, prompt_values, shipped_prompts
from saber_dagster.engines import (
    LATEX_FORMATTING,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    SOLUTION_SUMMARY,
    TASKS,
    TOPIC_SCORES,
)
from saber_dagster.errors import SaberError
from saber_dagster.replies import CHOICES, parse_reply

FOLDER = Path(prompts.__file__).parent
VERSIONS = Path(__file__).with_name("prompt_versions.tsv")

MINE = """---
name: mine
task: ordinal_judgment
version: 3
stop: ["</score>"]
---
# system
You grade.

# user
## Target
{{query_problem}} {{query_solution}}
## Sample
{{document_problem}} {{document_solution}}

# form tagged
<score>50</score>
"""
TEXT = """---
name: mine
task: latex_formatting
version: 1
---
# user
{{text}}
# form tagged
<latex>a</latex>
"""


def rendered(task, form="tagged", attempt=0, **changed):
    values = {**prompt_values(task, example_inputs(task)), **changed}
    return load_prompt(task).render(values, form, attempt)


# --------------------------------------------------------------------------- the files that ship


def test_every_task_has_a_prompt_and_every_file_is_one():
    assert shipped_prompts() == sorted(TASKS)
    assert [load_prompt(name).task for name in shipped_prompts()] == sorted(TASKS)


def test_the_list_of_hashes_is_that_of_the_files():
    found = "".join(
        f"{hashlib.sha256((FOLDER / f'{name}.md').read_bytes()).hexdigest()}  {name}.md\n"
        for name in shipped_prompts()
    )
    assert found == (FOLDER / "SHA256SUMS").read_text(), (
        "a prompt has changed: raise its version, then saber prompts hash > prompts/SHA256SUMS"
    )
    assert all(load_prompt(name).ref.sha256 in found for name in shipped_prompts())


def test_a_changed_file_has_a_new_version():
    rows = [line.split("\t") for line in VERSIONS.read_text().splitlines()]
    known = {(name, int(version)): sha for name, version, sha in rows}
    assert len(known) == len(rows), "a version is listed twice; versions are never used again"
    for prompt in map(load_prompt, shipped_prompts()):
        name, version, sha = prompt.ref.name, prompt.version, prompt.ref.sha256[:12]
        assert known.get((name, version)) == sha, (
            f"{name}.md has changed: raise its version and append the line"
            f" {name!r}, version, {sha!r} to {VERSIONS.name}"
        )
        assert version == max(v for n, v in known if n == name)


@pytest.mark.parametrize("task", TASKS)
def test_the_form_that_a_prompt_shows_parses(task):
    prompt, inputs = load_prompt(task), example_inputs(task)
    for form in prompt.forms:
        shown = rendered(task, form)[-1]["content"].rpartition(":\n")[2]
        if task in CHOICES:
            assert shown.endswith(f"nothing else: {' or '.join(CHOICES[task])}.")
        else:
            given = {**inputs, "text": shown}  # a segment must be in its document
            assert parse_reply(task, given, shown) is not None


def test_asking_again_appends_a_reminder():
    for task in TASKS:
        first, second = (rendered(task, attempt=n)[-1]["content"] for n in (1, 2))
        usual = rendered(task)[-1]["content"]
        assert first.startswith(f"{usual}\n\n"), task
        assert len({usual, first, second}) == 3, "each time of asking has its own key"
        assert "{{" not in first
    assert rendered(SOLUTION_SUMMARY, attempt=1)[-1]["content"].endswith("within 30 words.")


def test_json_is_asked_for_by_the_json_form_only():
    usual, json_form = rendered(TOPIC_SCORES), rendered(TOPIC_SCORES, "json")
    assert usual[0] == json_form[0]
    assert usual[1]["content"].endswith('<score n="2">1.0</score>')
    assert json_form[1]["content"].endswith('{"scores": [0.4, 1.0]}')
    assert "lists their 2 numbers" in json_form[1]["content"]
    with pytest.raises(SaberError, match="no section '# form json'"):
        rendered(SOLUTION_SUMMARY, "json")


def test_schemas_are_closed():
    assert load_prompt(PAIRWISE_JUDGMENT).schema is None, "it reasons at length, then decides"
    for task in TASKS:
        if schema := load_prompt(task).schema:
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])


def test_pair_is_shown_in_the_order_of_the_call():
    names = ("query", "first", "second")
    shown = {f"{n}_{part}": f"<{n} {part}>" for n in names for part in ("problem", "solution")}
    for task in (PAIRWISE_JUDGMENT, PAIRWISE_CHOICE):
        text = rendered(task, **shown)[1]["content"]
        places = [text.index(value) for value in shown.values()]
        assert places == sorted(places)


def test_candidates_are_numbered_lines_without_terms_below():
    higher = ("arithmetic", "higher\narithmetic")
    candidates = (
        {"label": "Number theory", "synonyms": higher, "terms": ("X",)},
        {"label": "Group\n 3. theory", "synonyms": (), "terms": ()},
    )
    values = prompt_values(
        TOPIC_SCORES, {"problem": "p", "solution": "s", "candidates": candidates}
    )
    text = load_prompt(TOPIC_SCORES).render(values)[1]["content"]
    lines = "1. Number theory (also: arithmetic, higher arithmetic)\n2. Group 3. theory\n"
    assert f"numbered:\n{lines}" in text
    assert "X" not in text


# ----------------------------------------------------------------------------- files of a user


def test_a_file_of_a_user_is_named_by_its_path(tmp_path):
    path = tmp_path / "mine.md"
    path.write_text(MINE, encoding="utf-8")
    prompt = load_prompt(str(path))
    assert (prompt.ref.name, prompt.task, prompt.version) == ("mine", "ordinal_judgment", 3)
    assert prompt.ref.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (prompt.stop, prompt.schema, prompt.choices) == (("</score>",), None, ())
    assert prompt.text == MINE
    assert (
        "## Target"
        in prompt.render(prompt_values(prompt.task, example_inputs(prompt.task)))[1]["content"]
    )


def test_line_ends_and_a_byte_order_mark_are_no_part_of_a_prompt(tmp_path):
    windows = tmp_path / "mine.md"
    windows.write_bytes(b"\xef\xbb\xbf" + MINE.replace("\n", "\r\n").encode())
    values = prompt_values("ordinal_judgment", example_inputs("ordinal_judgment"))
    assert load_prompt(str(windows)).render(values) == parse_prompt(MINE, "x").render(values)
    assert load_prompt(str(windows)).ref.sha256 == hashlib.sha256(windows.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\nname", "name", "begins with no front matter. Write name:"),
        ("name: mine\n", "", "name is missing in the front matter"),
        ("name: mine", "name: My Prompt", "must be of small letters"),
        ("name: mine", "name: 3", "must be of small letters"),
        ("version: 3", "version: 3.0", "version 3.0 must be a whole number"),
        ("version: 3", "version: true", "version True must be a whole number"),
        ("version: 3", "version: [", "front matter: not readable as YAML"),
        ("version: 3", "version: 3\nversion: 4", "given twice"),
        ("ordinal_judgment", "ordinal_judgement", "did you mean 'ordinal_judgment'?"),
        ("stop:", "stops:", "unknown key 'stops'; did you mean 'stop'?"),
        ("stop:", "temperature: 0\nstop:", "unknown key 'temperature'; known keys are name, task"),
        ('["</score>"]', "</score>", "stop must be a list of texts"),
        ('["</score>"]', "[1]", "stop must be a list of texts"),
        ('["</score>"]', '["a", "a"]', "are not distinct"),
        ("stop:", "reminder: 3\nstop:", "reminder must be a text"),
        ("stop:", "reminder: '{{text}}'\nstop:", "{{text}} is no placeholder"),
        ("stop:", 'choices: ["1", "2"]\nstop:', "not those of task ordinal_judgment. Remove them"),
        ("# system", "before\n# system", "text before the first section: 'before'"),
        ("# system", "# sytem", "'# sytem' is no section"),
        ("## Sample", "# Sample", "'# Sample' is no section.*Write ## for a heading inside"),
        ("# form tagged", "# user", "'# user' is given twice"),
        ("You grade.", " ", "section '# system' is empty"),
        ("# form tagged\n<score>50</score>\n", "", "'# form tagged' is missing. Copy it from"),
        ("# form tagged", "# form json", "'# form tagged' is missing"),
        ("# form tagged", "# form json\n{}\n# form tagged", "schema is missing"),
        (
            "stop:",
            "schema: {type: object, properties: {}}\nstop:",
            "section '# form json' is missing",
        ),
        ("{{query_problem}}", "", "{{query_problem}} does not occur"),
        ("{{query_problem}}", "{{query_poblem}}", "did you mean {{query_problem}}?"),
        ("{{query_problem}}", "{{ query_problem }}", "did you mean {{query_problem}}?"),
        ("{{query_problem}}", "{{QUERY_PROBLEM}}", "did you mean {{query_problem}}?"),
        ("You grade.", "You grade {{xyz}}.", "they are {{document_problem}}, {{document_sol"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_the_remedy(tmp_path, old, new, message):
    assert old in MINE
    path = tmp_path / "mine.md"
    path.write_text(MINE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SaberError, match=message) as caught:
        load_prompt(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{type: object, properties: {a: {type: string}}}", "no JSON form, because LaTeX breaks"),
        ("[]", "no JSON form"),
    ],
)
def test_a_text_has_no_json_form(schema, message):
    text = TEXT.replace("version: 1", f"version: 1\nschema: {schema}") + "# form json\n{}\n"
    with pytest.raises(SaberError, match=message):
        parse_prompt(text, "mine")


@pytest.mark.parametrize("schema", ["[]", "{type: array}", "text", "{type: object}"])
def test_a_schema_describes_an_object(schema):
    text = MINE.replace("stop:", f"schema: {schema}\nstop:") + "# form json\n{}\n"
    with pytest.raises(SaberError, match="schema must be a JSON schema of type: object"):
        parse_prompt(text, "mine")


@pytest.mark.parametrize("choices", ['["1", "1"]', '["A", "B"]', '["2", "1"]', "[1, 2]", "[]"])
def test_choices_are_those_of_the_task(choices):
    text = load_prompt(PAIRWISE_CHOICE).text.replace('["1", "2"]', choices)
    with pytest.raises(SaberError, match=r'not distinct|list of texts|Write choices: \["1","2"\]'):
        parse_prompt(text, "mine")


def test_the_name_is_that_of_the_file(tmp_path):
    path = tmp_path / "other.md"
    path.write_text(MINE, encoding="utf-8")
    with pytest.raises(SaberError, match=r"name is 'mine', but the file is called other\.md"):
        load_prompt(str(path))


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(SaberError, match="no prompt 'poem'; shipped are cleaning, "):
        load_prompt("poem")
    with pytest.raises(SaberError, match=r"gone\.md: No such file"):
        load_prompt(str(tmp_path / "gone.md"))
    with pytest.raises(SaberError, match="Is a directory"):
        load_prompt(f"{tmp_path}/")
    (tmp_path / "latin.md").write_bytes(MINE.encode() + b"\xe9")
    with pytest.raises(SaberError, match=f"byte {len(MINE.encode())} is not UTF-8"):
        load_prompt(str(tmp_path / "latin.md"))


# ------------------------------------------------------------------------------- values


def test_a_prompt_without_a_reminder_has_the_usual_one():
    values = prompt_values("ordinal_judgment", example_inputs("ordinal_judgment"))
    again = parse_prompt(MINE, "mine").render(values, attempt=3)[-1]["content"]
    assert again.endswith("to the letter, and end with it. (3)")


def test_a_missing_value_is_an_error():
    with pytest.raises(SaberError, match="no value for 'text'"):
        load_prompt(LATEX_FORMATTING).render({})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"problem": "p", "max_words": 3}, "solution_summary: 'solution' is missing"),
        ({"problem": "p", "solution": None, "max_words": 3}, "solution is None; it must be a text"),
        ({"problem": "p", "solution": 7, "max_words": 3}, "solution is 7; it must be a text"),
        ([], "inputs of task solution_summary"),
    ],
)
def test_inputs_that_are_none_of_the_task(inputs, message):
    with pytest.raises(SaberError, match=message):
        prompt_values(SOLUTION_SUMMARY, inputs)


def test_no_prompt_mentions_what_it_does_not_get():
    for name in shipped_prompts():
        assert not re.findall(r"\{\{[^}]*\}\}", str(rendered(name)))
