import json
from collections import Counter
from difflib import SequenceMatcher
from itertools import combinations

import pytest

from saber_dagster.ontology import OntologyTree, build_tree
from saber_dagster.ontology_files import read_ontology, shipped_ontology
from saber_dagster.text import words

DOMAINS = ["algebra", "geometry", "number_theory", "combinatorics", "calculus_analysis"]


@pytest.fixture(scope="module")
def graph():
    return read_ontology(shipped_ontology())


@pytest.fixture(scope="module")
def tree(graph):
    return OntologyTree.from_frame(build_tree(graph, {}, DOMAINS, max_depth=5).frame)


def test_size_and_shape(graph, tree):
    assert 150 <= len(graph.nodes) <= 190
    assert graph.repairs == {}
    parents = Counter(child for _, child in graph.edges)
    assert sum(count > 1 for count in parents.values()) >= 12
    assert 2 <= tree.depth.max() <= 4


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
