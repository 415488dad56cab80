"""The part that engines with prompts share: which prompt, which form, and cuts of long texts."""

import pytest

from prompts import example_inputs, load_prompt
from resources.engines.prompted import PromptedEngine, render_archived
from saber_dagster.engines import (
    CLEANING,
    ORDINAL_JUDGMENT,
    PAIRWISE_JUDGMENT,
    SOLUTION_SELECTION,
    SOLUTION_SUMMARY,
    TASKS,
    TOPIC_SCORES,
    Call,
)
from saber_dagster.errors import SaberError
from saber_dagster.long_inputs import CUT
from saber_dagster.tokens import estimate_tokens

LONG = "We see that $x + 1 = 2$, and so on. " * 200


def call(task, attempt=0, **changed):
    return Call(task, {**example_inputs(task), **changed}, "item 7", attempt=attempt)


def tokens(messages):
    return sum(estimate_tokens(message["content"]) for message in messages)


def limited(limit, **attributes):
    engine = PromptedEngine()
    engine.input_limit = limit
    for name, value in attributes.items():
        setattr(engine, name, value)
    return engine


def test_a_bare_engine_renders_the_shipped_prompts():
    for task in TASKS:
        engine = PromptedEngine()
        assert engine.prompt(task) == load_prompt(task).ref
        rendered = engine.render(call(task))
        assert (rendered.messages, rendered.truncated) == (engine.messages(call(task)), False)
    with pytest.raises(SaberError, match="no prompt 'poem'"):
        PromptedEngine().messages(Call("poem", {}, "item"))


def test_a_subclass_needs_no_init_and_names_prompts_of_its_own(tmp_path):
    path = tmp_path / "short.md"
    text = load_prompt(SOLUTION_SUMMARY).text.replace("name: solution_summary", "name: short")
    path.write_text(text, encoding="utf-8")

    class Mine(PromptedEngine):
        prompts = {SOLUTION_SUMMARY: str(path), PAIRWISE_JUDGMENT: str(path)}  # noqa: RUF012

    assert Mine().prompt(SOLUTION_SUMMARY).name == "short"
    assert Mine().prompt(TOPIC_SCORES).name == TOPIC_SCORES
    with pytest.raises(SaberError, match="is one of task solution_summary, but it is wanted for"):
        Mine().prompt(PAIRWISE_JUDGMENT)


def test_a_prompt_of_no_task_is_an_error():
    with pytest.raises(
        SaberError, match="prompts: there is no task 'judgment'; tasks are topic_sc"
    ):
        limited(None, prompts={"judgment": "x"}).prompt(TOPIC_SCORES)


@pytest.mark.parametrize("prompts", [["x.md"], "x.md", {TOPIC_SCORES: 3}, {TOPIC_SCORES: None}])
def test_prompts_are_names_by_task(prompts):
    with pytest.raises(SaberError, match=r"give a name or path by task, as in \{topic_scores: my_"):
        limited(None, prompts=prompts).prompt(TOPIC_SCORES)


def test_a_prompt_is_read_once(tmp_path):
    path = tmp_path / "cleaner.md"
    text = load_prompt(CLEANING).text.replace("name: cleaning", "name: cleaner")
    path.write_text(text, encoding="utf-8")
    engine = limited(None, prompts={CLEANING: str(path)})
    before = engine.prompt(CLEANING)
    path.write_text(text.replace("Clean", "Wash"), encoding="utf-8")
    assert engine.prompt(CLEANING) == before, "what was asked is what the ledger says"
    assert limited(None, prompts=engine.prompts).prompt(CLEANING) != before


def test_the_json_form_is_used_where_there_is_one():
    engine = limited(None, form="json")
    assert engine.messages(call(TOPIC_SCORES))[-1]["content"].endswith('{"scores": [0.4, 1.0]}')
    assert engine.messages(call(SOLUTION_SUMMARY))[-1]["content"].endswith("</confidence>")


def test_asking_again_is_another_message():
    engine = PromptedEngine()
    asked = [str(engine.messages(call(PAIRWISE_JUDGMENT, attempt=n))) for n in range(4)]
    assert len(set(asked)) == 4


def test_what_was_archived_renders_again():
    for form in ("tagged", "json"):
        engine, question = limited(None, form=form), call(ORDINAL_JUDGMENT, attempt=1)
        text = engine.template(ORDINAL_JUDGMENT).text
        assert render_archived(text, question, form) == engine.messages(question)


# ------------------------------------------------------------------------------ long inputs


def long_pair(**texts):
    document = {"problem": "Find $x$.", "solution": "Solve for $x$."}
    second = {**document, **texts}
    return call(PAIRWISE_JUDGMENT, query=document, first=document, second=second)


def test_a_cut_is_made_only_when_needed():
    question = long_pair(solution=LONG)
    whole = PromptedEngine().messages(question)
    exact = tokens(whole)
    assert limited(exact).render(question) == PromptedEngine().render(question)
    rendered = limited(exact - 1).render(question)
    assert rendered.truncated
    assert rendered.messages != whole


def test_only_the_long_text_is_cut_and_the_result_fits():
    question = long_pair(solution=LONG)
    rendered = limited(900).render(question)
    content = rendered.messages[-1]["content"]
    assert 900 - 60 < tokens(rendered.messages) <= 900
    assert content.count(CUT) == 1
    kept = content.partition("Sample 2, solution:\n")[2].partition(CUT)[0]
    assert kept == LONG[: len(kept)]
    assert kept.endswith("and so on."), "at the end of a sentence"
    assert content.count("Solve for $x$.") == 2
    assert rendered == limited(900).render(question), "the same again"


def test_a_counter_whose_parts_do_not_add_up_still_fits():
    def count(text):
        return len(text.split()) + 3 * text.count("\n\n")

    rendered = limited(300, count_tokens=count).render(long_pair(solution="a b\n\n" * 500))
    assert sum(count(message["content"]) for message in rendered.messages) <= 300
    assert rendered.truncated


def test_solutions_are_cut_one_by_one():
    question = call(SOLUTION_SELECTION, solutions=("Short.", LONG, LONG))
    content = limited(800).render(question).messages[-1]["content"]
    assert content.count(CUT) == 2
    assert "Solution 1:\nShort.\n\nSolution 2:\nWe see" in content
    assert tokens(limited(800).render(question).messages) <= 800


def test_headings_are_never_cut():
    headings = tuple(
        {"label": f"Heading {n} about $x$. " * 3, "synonyms": (), "terms": ()} for n in range(30)
    )
    question = call(TOPIC_SCORES, candidates=headings, solution=LONG)
    content = limited(1700).render(question).messages[-1]["content"]
    assert all(
        f"{n}. {' '.join(h['label'].split())}\n" in content for n, h in enumerate(headings, 1)
    )
    assert CUT in content


def test_a_text_that_comes_back_is_never_cut():
    rendered = limited(100).render(call(CLEANING, text=LONG))
    assert not rendered.truncated
    assert LONG in rendered.messages[-1]["content"]


def test_a_limit_that_nothing_fits_into():
    with pytest.raises(
        SaberError, match=r"item 7: 6 texts of [\d,]+ tokens do not fit into the \d+ "
    ):
        limited(480).render(long_pair(solution=LONG))
    with pytest.raises(SaberError, match="do not fit into the 0 that the limit"):
        limited(10).render(long_pair(solution=LONG))
