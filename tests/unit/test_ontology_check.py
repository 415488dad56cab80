import json

import pytest
from typer.testing import CliRunner

from saber_dagster.cli.ontology import ontology_app
from saber_dagster.ontology import OntologyTree, build_tree
from saber_dagster.ontology_check import check_ontology, coverage, shape
from saber_dagster.ontology_files import read_ontology

DOMAINS = ["algebra", "geometry"]


def topic(title, *links, synonyms=("a name of " + "it",), **more):
    node = {"id": title.lower().replace(" ", "-"), "title": title, **more}
    if synonyms:
        node["synonyms"] = [f"{title} theory", *synonyms[1:]]
    return {**node, "links": list(links)} if links else node


def load(tmp_path, *roots):
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"roots": list(roots)}))
    graph = read_ontology(path)
    return graph, OntologyTree.from_frame(build_tree(graph, {}, DOMAINS, max_depth=9).frame)


def sound():
    return [
        topic("Algebra", topic("Polynomials"), topic("Inequalities")),
        topic("Geometry", topic("Circles"), topic("Triangles")),
    ]


def kinds(graph, tree):
    return [finding.kind for finding in check_ontology(graph, tree)]


def test_a_sound_ontology_has_no_findings(tmp_path):
    assert kinds(*load(tmp_path, *sound())) == []


@pytest.mark.parametrize(
    ("spoil", "kind", "nodes"),
    [
        (lambda roots: [*roots, topic("Heraldry")], "orphan", ("heraldry",)),
        (
            lambda roots: [*roots, topic("Heraldry", topic("Shields"), topic("Lions"))],
            "no_domain",
            ("heraldry",),
        ),
        (
            lambda roots: [roots[0], topic("Geometry", topic("Circles"), topic("Circle"))],
            "near_duplicate",
            ("circle", "circles"),
        ),
        (
            lambda roots: [
                topic("Algebra", topic("Groups and rings"), topic("Rings and groups")),
                roots[1],
            ],
            "near_duplicate",
            ("groups-and-rings", "rings-and-groups"),
        ),
        (
            lambda roots: [
                roots[0],
                topic("Geometry", *(topic(t, synonyms=("", "round")) for t in "ABC")),
            ],
            "shared_synonym",
            ("a", "b", "c"),
        ),
        (
            lambda roots: [
                topic("Algebra", topic("Polynomials", synonyms=("", "circles")), topic("Sums")),
                roots[1],
            ],
            "label_as_synonym",
            ("circles", "polynomials"),
        ),
        (
            lambda roots: [topic("Algebra", topic("Polynomials")), roots[1]],
            "single_child",
            ("algebra",),
        ),
        (
            lambda roots: [
                topic("Algebra", *(topic(f"Topic {chr(65 + n) * 9}") for n in range(26))),
                roots[1],
            ],
            "too_wide",
            ("algebra",),
        ),
        (
            lambda roots: [roots[0], topic("Geometry", topic("Circles", synonyms=()), topic("T"))],
            "no_synonyms",
            ("circles",),
        ),
    ],
)
def test_what_is_wrong_is_found(tmp_path, spoil, kind, nodes):
    graph, tree = load(tmp_path, *spoil(sound()))
    assert [f.nodes for f in check_ontology(graph, tree) if f.kind == kind] == [nodes]


def test_a_domain_much_deeper_than_the_rest_is_unbalanced(tmp_path):
    deep = topic(
        "Lines",
        topic("Rays", topic("Beams"), topic("Edges")),
        topic("Arcs", topic("Bows"), topic("Ends")),
    )
    roots = [
        topic("Algebra", *(topic(t * 5) for t in "PQRSUVW")),
        topic("Geometry", deep, topic("Cubes", topic("Dice"), topic("Box"))),
    ]
    graph, tree = load(tmp_path, *roots)
    assert [f.nodes for f in check_ontology(graph, tree) if f.kind == "unbalanced_depth"] == [
        ("geometry",)
    ]


def test_a_domain_much_shallower_than_the_rest_is_unbalanced(tmp_path):
    def deep(letters):
        first, second, *leaves = (letter * 5 for letter in letters)
        return topic(first, topic(second, *map(topic, leaves[:2])), topic(leaves[2]))

    roots = [
        topic("Algebra", deep("ABCDE"), deep("FGHIJ"), deep("KLMNO")),
        topic("Geometry", topic("Circles"), topic("Triangles")),
    ]
    graph, tree = load(tmp_path, *roots)
    (found,) = [f for f in check_ontology(graph, tree) if f.kind == "unbalanced_depth"]
    assert found.nodes == ("geometry",)
    assert "at depth 1 or less; over all top-level topics it is 3" in found.problem


def test_coverage_counts_texts_that_name_a_topic_below_the_top(tmp_path):
    _, tree = load(tmp_path, *sound())
    found = coverage(tree, ["Two circles meet.", "This is algebra.", "triangle theory", ""])
    assert (found.texts, found.named, found.share) == (4, 2, 0.5)
    assert found.unnamed_topics == ("Inequalities", "Polynomials")


def test_shape_counts_nodes_once_and_tree_nodes_per_path(tmp_path):
    shared = topic("Powers")
    graph, tree = load(
        tmp_path,
        topic("Algebra", shared, topic("Sums")),
        topic("Geometry", {"ref": "powers"}, topic("Circles")),
    )
    found = shape(graph, tree)
    assert (found.nodes, found.several_parents, found.tree_nodes) == (5, 1, 6)
    assert found.by_depth == [2, 4]
    assert found.by_domain == {"algebra": 3, "geometry": 3}


def test_the_command_prints_findings_and_coverage(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_HOME", str(tmp_path / "home"))
    load(tmp_path, topic("Algebra", topic("Polynomials")), sound()[1])
    corpus = tmp_path / "corpus.jsonl"
    row = {"id": "1", "problem": "A circle is drawn.", "solution": "Use polynomials."}
    corpus.write_text(json.dumps(row) + "\n")
    arguments = ["check", str(tmp_path / "topics.json"), "--corpus", str(corpus)]
    printed = CliRunner().invoke(ontology_app, arguments)
    assert printed.exit_code == 0, printed.output
    assert "has one child only" in printed.output
    assert "1 of 1 problems (100.0%)" in printed.output
    told = json.loads(CliRunner().invoke(ontology_app, [*arguments, "--json"]).output)
    assert [finding["kind"] for finding in told["findings"]] == ["single_child"]
    assert told["coverage"]["share"] == 1.0
    assert not (tmp_path / "home").exists()
