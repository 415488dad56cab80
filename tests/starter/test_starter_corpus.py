"""What the data card promises of the starter corpus."""

import re
from collections import Counter
from importlib.resources import files
from itertools import combinations

import pytest
from record_reading import record, wording

from saber_dagster.corpus import build_corpus
from saber_dagster.corpus_rows import Problem
from saber_dagster.settings import Corpus
from saber_dagster.sources import read_sources, sources_identity
from saber_dagster.starter import (
    DOMAINS,
    StarterEntry,
    starter_entries,
    starter_problems,
    starter_techniques,
)
from saber_dagster.text import words

ENTRIES = {entry.id: entry for entry in starter_entries()}


def overlap(one: StarterEntry, two: StarterEntry) -> float:
    left, right = set(words(one.problem)), set(words(two.problem))
    return len(left & right) / len(left | right)


def test_size_and_domains():
    assert len(ENTRIES) == len(starter_entries()) >= 300
    by_domain = Counter(entry.domain for entry in ENTRIES.values())
    assert all(by_domain[domain] >= 60 for domain in DOMAINS)
    assert {entry.level for entry in ENTRIES.values()} == {"olympiad", "university"}


def test_forty_techniques_are_each_used_by_four_problems_that_look_different():
    users: dict[str, list[StarterEntry]] = {}
    for entry in ENTRIES.values():
        for technique in entry.techniques:
            users.setdefault(technique, []).append(entry)
    assert set(users) <= set(starter_techniques())
    different = {
        technique
        for technique, entries in users.items()
        if len(entries) >= 4
        and max(overlap(one, two) for one, two in combinations(entries, 2)) <= 0.5
    }
    assert len(different) >= 40


def test_problems_look_alike_with_different_techniques():
    pairs = {
        tuple(sorted((entry.id, other)))
        for entry in ENTRIES.values()
        for other in entry.looks_like
        if not set(entry.techniques) & set(ENTRIES[other].techniques)
    }
    assert len(pairs) >= 50
    alike = [overlap(ENTRIES[one], ENTRIES[two]) for one, two in sorted(pairs)]
    every = [overlap(one, two) for one, two in combinations(list(ENTRIES.values())[::5], 2)]
    assert sum(alike) / len(alike) > 2 * sum(every) / len(every)


def test_relevance_is_not_surface_similarity():
    """The nearest neighbour by the words of the statement seldom shares a technique."""
    everything = list(ENTRIES.values())
    shared = 0
    for entry in everything:
        nearest = max((e for e in everything if e is not entry), key=lambda e: overlap(entry, e))
        shared += bool(set(entry.techniques) & set(nearest.techniques))
    assert shared < 0.15 * len(everything)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_a_problem_is_well_formed(entry):
    assert 1 <= len(set(entry.techniques)) == len(entry.techniques) <= 3
    for other in entry.looks_like:
        assert entry.id in ENTRIES[other].looks_like
    for text in (entry.problem, entry.solution, entry.answer or ""):
        assert text.count("$") % 2 == 0
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)
        formulas = "".join(text.split("$")[1::2])
        assert formulas.count("{") == formulas.count("}")
        assert formulas.count(r"\begin") == formulas.count(r"\end")
    assert len(words(entry.solution)) >= 25
    assert entry.answer != ""


def test_every_solution_was_read_by_a_second_reader_in_its_present_wording():
    read = record()
    assert set(read) == set(ENTRIES)
    unread = [entry.id for entry in ENTRIES.values() if read[entry.id] != wording(entry)]
    assert unread == [], "read these again, then run tests/starter/record_reading.py"


def test_the_pipeline_reads_no_labels():
    rows = starter_problems()
    assert len(rows) == len(ENTRIES) == build_corpus(rows).frame.height
    for row in rows:
        entry = ENTRIES[row.source_id]
        told = (
            row.problem,
            row.solution,
            row.answer,
            row.source,
            row.licence,
            row.language,
            row.url,
        )
        assert told == (
            entry.problem,
            entry.solution,
            entry.answer,
            "starter",
            "CC BY 4.0",
            "en",
            None,
        )
    assert set(Problem.__slots__) - {"file", "row", "source_id"} == {
        "problem", "solution", "answer", "source", "licence", "language", "url",
    }  # fmt: skip


def test_rows_are_numbered_in_their_own_file():
    first = {row.file: row.row for row in reversed(starter_problems())}
    assert first == {f"starter/{domain}.yaml": 1 for domain in DOMAINS}


def test_the_identity_follows_the_text_and_not_the_labels(monkeypatch):
    from saber_dagster import starter

    entries = starter_entries()
    before = sources_identity(Corpus(builtin=("starter",)))

    def changed(**fields):
        first = StarterEntry(
            **{**{f: getattr(entries[0], f) for f in StarterEntry.__slots__}, **fields}
        )
        monkeypatch.setattr(starter, "starter_entries", lambda: (first, *entries[1:]))
        return sources_identity(Corpus(builtin=("starter",)))

    assert changed(techniques=("other",), level="other", domain="other", looks_like=()) == before
    assert changed(solution="Another one.") != before


def test_it_is_the_default_together_with_champ_and_each_can_be_left_out():
    sizes = {
        names: read_sources(Corpus(builtin=names)).frame.height
        for names in (("starter",), ("champ",), ("starter", "champ"))
    }
    assert sizes["starter", "champ"] == sum((sizes[("starter",)], sizes[("champ",)]))
    assert Corpus().builtin == ("starter", "champ")
    licences = dict(read_sources(Corpus()).frame.select("source", "licence").unique().iter_rows())
    assert licences == {"starter": "CC BY 4.0", "champ": "MIT"}


def test_the_data_card_counts_right():
    card = files("saber_dagster").joinpath("data/starter/README.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", card, re.MULTILINE)
    for domain, *counts in told:
        entries = [entry for entry in ENTRIES.values() if entry.domain == domain]
        answered = sum(entry.answer is not None for entry in entries)
        assert counts == [str(n) for n in (len(entries), answered, len(entries) - answered)]
    assert [row[0] for row in told] == list(DOMAINS)
