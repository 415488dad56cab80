import json
from collections import Counter
from difflib import SequenceMatcher
from itertools import combinations

import pytest

from saber_dagster.ontology import OntologyTree, build_tree
from saber_dagster.ontology_check import check_ontology, coverage, shape
from saber_dagster.ontology_files import read_ontology, shipped_ontology
from saber_dagster.phrases import stem
from saber_dagster.starter import starter_entries, starter_techniques
from saber_dagster.text import words

DOMAINS = ["algebra", "geometry", "number_theory", "combinatorics", "calculus_analysis"]


@pytest.fixture(scope="module")
def graph():
    return read_ontology(shipped_ontology())


@pytest.fixture(scope="module")
def tree(graph):
    return OntologyTree.from_frame(build_tree(graph, {}, DOMAINS, max_depth=5).frame)


def test_size_and_shape(graph, tree):
    assert len(graph.nodes) >= 800
    assert graph.repairs == {}
    assert shape(graph, tree).several_parents >= 60
    assert tree.depth.max() <= 5
    assert len(tree.node_ids) < 1.5 * len(graph.nodes)


def test_the_checker_finds_nothing(graph, tree):
    assert check_ontology(graph, tree) == []


def test_scope_notes_name_topics_that_exist(graph):
    notes = [topic.note for topic in graph.nodes.values() if topic.note]
    assert len(notes) >= 100
    assert all(note[0].isupper() and note[-1] in ".)" for note in notes)


def test_every_word_of_a_technique_is_a_word_of_a_topic(graph):
    names = (name for t in graph.nodes.values() for name in (t.label, *t.synonyms))
    known = {stem(word) for name in names for word in words(name)}
    wanted = {stem(word) for name in starter_techniques().values() for word in words(name)}
    assert wanted <= known


def test_the_starter_problems_name_topics(tree):
    texts = [f"{entry.problem}\n{entry.solution}" for entry in starter_entries()]
    assert coverage(tree, texts).share >= 0.98


def test_the_five_domains(graph, tree):
    assert len(graph.roots) == 5
    assert [tree.domain[root] for root in tree.roots] == [
        "algebra",
        "calculus_analysis",
        "combinatorics",
        "geometry",
        "number_theory",
    ]
    assert all(count >= 20 for count in Counter(tree.domain).values())


def test_ids_are_slugs(graph):
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert [node for node in graph.nodes if not set(node) <= allowed] == []


def test_every_topic_has_two_to_eight_cues(graph):
    wrong = {
        topic.label: len(topic.synonyms)
        for topic in graph.nodes.values()
        if not 2 <= len(topic.synonyms) <= 8
    }
    assert wrong == {}


def test_every_inner_topic_has_two_to_fourteen_children(graph):
    widths = {node: len(below) for node, below in graph.children().items() if below}
    assert {node: n for node, n in widths.items() if not 2 <= n <= 14} == {}


@pytest.mark.parametrize(
    ("cue", "label"),
    [
        ("hypergeometric law", "Hypergeometric distribution"),
        ("Carmichael function", "Carmichael function and universal exponents"),
        ("vertex cover", "König's theorem"),
        ("Newton's line", "Newton line of a quadrilateral"),
    ],
)
def test_a_cue_stands_at_the_topic_it_names(graph, cue, label):
    assert [t.label for t in graph.nodes.values() if cue in t.synonyms] == [label]


def test_cues_are_distinct_in_a_topic(graph):
    for topic in graph.nodes.values():
        lowered = [name.lower() for name in topic.synonyms]
        assert len(set(lowered)) == len(lowered), topic.label


def test_no_two_siblings_share_a_label(graph):
    for node, children in graph.children().items():
        labels = Counter(graph.nodes[child].label.lower() for child in children)
        assert max(labels.values(), default=1) == 1, node


def test_no_two_topics_have_nearly_the_same_label(graph):
    stems = {
        topic.label: " ".join(sorted(word.rstrip("s") for word in words(topic.label)))
        for topic in graph.nodes.values()
    }
    assert len(stems) == len(graph.nodes)
    near = [
        pair
        for pair in combinations(stems, 2)
        if SequenceMatcher(None, stems[pair[0]], stems[pair[1]]).quick_ratio() > 0.85
        and SequenceMatcher(None, stems[pair[0]], stems[pair[1]]).ratio() > 0.85
    ]
    assert near == []


def test_a_topic_is_written_once_and_referred_to_elsewhere(graph):
    defined: Counter[str] = Counter()
    todo = list(json.loads(shipped_ontology().read_text(encoding="utf-8"))["roots"])
    while todo:
        item = todo.pop()
        if "ref" not in item:
            defined[item["id"]] += 1
            todo += item.get("links", [])
    assert set(defined) == set(graph.nodes)
    assert max(defined.values()) == 1
