import json
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.errors import InputError, SaberError
from saber_dagster.ontology import OntologyGraph, OntologyNode, OntologyTree, build_tree, find_cycle
from saber_dagster.ontology_files import read_ontology

DOMAINS = ["algebra", "geometry", "number_theory", "combinatorics", "calculus_analysis"]
NESTED = {
    "title": "Mathematics",
    "links": [
        {
            "title": "Discrete Mathematics",
            "links": [{"title": "Combinatorics", "links": [{"title": "Pascal's Triangle"}]}],
        },
        {
            "title": "Number Theory",
            "links": [
                {"title": "Special Numbers", "links": [{"title": "Pascal's Triangle"}]},
                {"title": "Primes", "synonyms": ["prime", " prime  number "], "note": "p"},
            ],
        },
    ],
}


def graph(*edges: str, labels: dict[str, str] | None = None) -> OntologyGraph:
    pairs = sorted((edge.split(">")[0], edge.split(">")[1]) for edge in edges)
    nodes = sorted({node for pair in pairs for node in pair})
    names = labels or {}
    return OntologyGraph(
        {node: OntologyNode(names.get(node, node)) for node in nodes},
        tuple(pairs),
        {},
        Path("o.tsv"),
    )


@pytest.fixture
def write(tmp_path):
    def write(name: str, content) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_bytes(content.encode())
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write


def faults(path: Path, **options):
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(InputError) as caught:
        read_ontology(path, **options)
    if before is not None:
        assert path.read_bytes() == before
    assert all(fault.remedy for fault in caught.value.faults)
    return caught.value.faults


class TestEdgeLists:
    def test_tsv(self, write):
        found = read_ontology(write("o.tsv", "Parent\tchild\tsource\nA\tB\tw\nA\tC\tw\nB\tC\n"))
        assert found.edges == (("A", "B"), ("A", "C"), ("B", "C"))
        assert found.nodes["B"] == OntologyNode("B")
        assert found.roots == ["A"]
        assert found.repairs == {}

    def test_bom_crlf_blank_lines_whitespace_and_repeats_are_mended_and_counted(self, write):
        found = read_ontology(
            write("o.csv", '\ufeffparent,child\r\nA, B\r\n\r\nA,B\r\nA,"C  D"\r\n'.encode())
        )
        assert found.edges == (("A", "B"), ("A", "C D"))
        assert found.repairs == {"byte_order_mark": 1, "whitespace": 2, "repeated_edges": 1}

    def test_quotes_quote_in_csv_and_are_text_in_tsv(self, write):
        csv = read_ontology(write("o.csv", 'parent,child\n"A, or B",C\n'))
        tsv = read_ontology(write("o.tsv", 'parent\tchild\n"A\tB"\n'))
        assert csv.edges == (("A, or B", "C"),)
        assert tsv.edges == (('"A', 'B"'),)

    def test_jsonl_and_format_override(self, write):
        text = '{"parent": "A", "child": "B"}\n{"parent": "B", "child": "שלום"}\n'
        expected = (("A", "B"), ("B", "שלום"))
        assert read_ontology(write("o.jsonl", text)).edges == expected
        assert read_ontology(write("o.txt", text), format="jsonl").edges == expected

    def test_nodes_file_gives_labels(self, write):
        nodes = write(
            "n.jsonl",
            '{"id": "a", "label": "Algebra", "synonyms": ["x", "x", "b"], "note": ""}\n'
            '{"id": "b", "label": "Rings"}\n{"id": "z", "label": "Unused"}\n',
        )
        found = read_ontology(write("o.tsv", "parent\tchild\na\tb\n"), nodes=nodes)
        assert found.nodes == {
            "a": OntologyNode("Algebra", ("b", "x")),
            "b": OntologyNode("Rings"),
        }
        assert found.repairs == {"nodes_without_edges": 1}

    def test_every_fault_is_found_with_its_line(self, write):
        path = write("o.tsv", "parent\tchild\nA\tB\n\tC\nA\t \nA\tB\tC\nA\n")
        assert [(f.row, f.field, f.problem) for f in faults(path)] == [
            (3, "parent", "is empty"),
            (4, "child", "is empty"),
            (5, "", "has 3 cells, the header has 2"),
            (6, "child", "is missing"),
        ]

    def test_jsonl_faults(self, write):
        path = write(
            "o.jsonl", '{"parent": "A", "child": 3}\n{"parent": "A"\n[1]\n{"child": "B"}\n'
        )
        assert [(f.row, f.field) for f in faults(path)] == [
            (1, "child"),
            (2, ""),
            (3, ""),
            (4, "parent"),
        ]

    def test_unknown_ids_and_faulty_nodes(self, write):
        nodes = write(
            "n.jsonl",
            '{"id": "algebra", "label": "Algebra"}\n{"id": "algebra", "label": "Again"}\n'
            '{"id": "rings", "label": " "}\n{"id": "x", "label": "X", "synonyms": "y"}\n',
        )
        found = faults(write("o.tsv", "parent\tchild\nalgebr\trings\n"), nodes=nodes)
        assert [(Path(f.file).name, f.row, f.field) for f in found] == [
            ("n.jsonl", 2, "id"),
            ("n.jsonl", 3, "label"),
            ("n.jsonl", 4, "synonyms"),
            ("o.tsv", 2, "parent"),
        ]
        assert "'algebra'" in found[3].remedy

    def test_an_unreadable_nodes_file_is_one_fault(self, write, tmp_path):
        path = write("o.tsv", "parent\tchild\na\tb\nb\tc\n")
        (fault,) = faults(path, nodes=tmp_path / "none.jsonl")
        assert fault.file.endswith("none.jsonl")

    def test_missing_columns(self, write):
        (fault,) = faults(write("o.csv", "from,child\nA,B\n"))
        assert "parent" in fault.problem
        assert fault.row == 1

    @pytest.mark.parametrize(
        ("name", "content", "row", "problem"),
        [
            ("o.tsv", b"", 0, "is empty"),
            ("o.json", b" \n", 0, "is empty"),
            ("o.tsv", b"parent\tchild\n", 0, "holds no topics"),
            ("o.json", b"[]", 0, "holds no topics"),
            ("o.tsv", b"parent\tchild\nA\t\xff\n", 2, "has the byte 0xff, which is not UTF-8"),
            ("o.tsv", b"parent\tchild\nA\tB\x00C\n", 2, "has the control character U+0000 at 2"),
            ("o.jsonl", b'{"parent": "A", "child": "\\ud800"}', 1, "has the lone surrogate U+D800"),
            ("o.csv", b'parent,child\nA,"B\n', 2, "is not valid CSV (a quote is never closed)"),
            ("o.csv", "parent,child\nA,B\n".encode("utf-16"), 0, "is UTF-16 or UTF-32"),
            ("o.json", b'{"title": "A",\n "links": [}', 2, "is not JSON"),
            ("o.json", b"[" * 100_000, 0, "is not JSON"),
            ("o.json", b'"A"', 0, "is not a list"),
        ],
    )
    def test_unreadable_files(self, write, name, content, row, problem):
        (fault,) = faults(write(name, content))
        assert fault.row == row
        assert fault.problem.startswith(problem)

    def test_missing_file(self, tmp_path):
        (fault,) = faults(tmp_path / "none.tsv")
        assert "cannot be read" in fault.problem
        (fault,) = faults(tmp_path / "a\0.tsv")
        assert "cannot be read (embedded null" in fault.problem

    def test_unknown_format(self, write):
        with pytest.raises(SaberError, match=r"'xlsx'.*tsv, csv, jsonl, json"):
            read_ontology(write("o.xlsx", b""))
        with pytest.raises(SaberError, match="leave out"):
            read_ontology(write("o.json", b"[]"), nodes=Path("n.jsonl"))

    def test_cycle_is_printed_with_other_faults(self, write):
        path = write("o.tsv", "parent\tchild\nr\ta\nc\ta\na\tb\nb\tc\n\tx\n")
        cycle, empty = sorted(faults(path), key=lambda fault: fault.field)
        loop = cycle.problem.removeprefix("topics form a cycle: ").split(" → ")
        assert len(loop) == 4
        assert set(pairwise(loop)) == {("a", "b"), ("b", "c"), ("c", "a")}
        assert cycle.row == {("a", "b"): 4, ("b", "c"): 5, ("c", "a"): 3}[loop[2], loop[3]]
        assert empty.row == 6

    def test_every_cycle_is_printed(self, write):
        found = faults(write("o.csv", "parent,child\na,b\nb,a\nb,c\nc,d\nd,c\n"))
        loops = [set(fault.problem.partition(": ")[2].split(" → ")) for fault in found]
        assert sorted(map(sorted, loops)) == [["a", "b"], ["c", "d"]]
        assert all(fault.row for fault in found)

    def test_rows_after_a_broken_one_are_read(self, write):
        path = write("o.csv", 'parent,child\nA,"B\nA,\nA,C\nA,x"y"\n"D"z,E\n,F\n')
        assert [(fault.row, fault.field) for fault in faults(path)] == [
            (2, ""),
            (3, "child"),
            (6, ""),
            (7, "parent"),
        ]

    def test_a_key_twice(self, write):
        path = write("o.jsonl", '{"parent": "A", "child": "B", "child": "C"}\n{"parent": "A"}\n')
        assert [(fault.row, fault.field) for fault in faults(path)] == [(1, ""), (2, "child")]

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("a\x0crac", "has the control character U+000C at 2"),
            ("\x0crac", "has the control character U+000C at 1"),
            ("a\x85", "has the control character U+0085 at 2"),
            ("\theta", "has a tab or line break in place of the start of a LaTeX command"),
            ("a\u200b", "has the invisible character U+200B at 2"),
        ],
    )
    def test_characters_that_no_name_has(self, write, name, problem):
        path = write("o.jsonl", json.dumps({"parent": "A", "child": name}))
        (fault,) = faults(path)
        assert (fault.row, fault.field, fault.problem) == (1, "child", problem)

    def test_both_unicode_forms_are_one_topic(self, write):
        found = read_ontology(write("o.csv", "parent,child\nA,e\u0301\n\u00e9,B\n"))
        assert found.edges == (("A", "\u00e9"), ("\u00e9", "B"))
        assert found.repairs == {"composed_characters": 1}

    def test_loop_at_one_node(self, write):
        (fault,) = faults(write("o.tsv", "parent\tchild\na\ta\n"))
        assert "a → a" in fault.problem


class TestNested:
    def test_a_repeated_title_is_one_node(self, write):
        found = read_ontology(write("o.json", NESTED))
        assert len(found.nodes) == 7
        assert ("Combinatorics", "Pascal's Triangle") in found.edges
        assert ("Special Numbers", "Pascal's Triangle") in found.edges
        assert found.nodes["Primes"] == OntologyNode("Primes", ("prime", "prime number"), "p")
        assert found.repairs == {"whitespace": 1}

    def test_occurrences_of_a_topic_are_united(self, write):
        twice = [
            {"title": "A", "synonyms": ["y", "x"], "links": [{"title": "B"}]},
            {"title": "A", "synonyms": ["z", "x"], "links": [{"title": "C"}], "note": "n"},
        ]
        for order in (twice, twice[::-1]):
            found = read_ontology(write("o.json", order))
            assert found.nodes["A"] == OntologyNode("A", ("x", "y", "z"), "n")
            assert found.edges == (("A", "B"), ("A", "C"))

    @pytest.mark.parametrize("wrap", [lambda t: t, lambda t: [t], lambda t: {"roots": [t]}])
    def test_top_may_be_object_list_or_roots(self, write, wrap):
        assert read_ontology(write("o.json", wrap(NESTED))).roots == ["Mathematics"]

    def test_references_may_point_forward(self, write):
        found = read_ontology(
            write(
                "o.json",
                [
                    {"id": "a", "title": "A", "links": [{"ref": "c"}, {"ref": "c"}]},
                    {"id": "b", "title": "B", "links": [{"id": "c", "title": "C", "links": None}]},
                ],
            )
        )
        assert found.edges == (("a", "c"), ("b", "c"))
        assert found.repairs == {"repeated_edges": 1}

    def test_field_names_can_be_given(self, write):
        tree = {"name": "A", "children": [{"name": "B"}]}
        found = read_ontology(write("o.json", tree), title_field="name", links_field="children")
        assert found.edges == (("A", "B"),)

    def test_every_fault_is_found_with_its_place(self, write):
        path = write(
            "o.json",
            [
                {"title": "A", "links": [{"titel": "B", "links": [{"title": 7}]}, "C"]},
                {"title": "D", "links": {"title": "E"}, "synonyms": [1]},
                {"id": "x", "title": "X"},
                {"id": "x", "title": "Y", "links": [{"ref": "z"}, {"ref": "x", "title": "X"}]},
            ],
        )
        assert sorted(fault.field for fault in faults(path) if "cycle" not in fault.problem) == [
            "[0].links[0].links[0].title",
            "[0].links[0].title",
            "[0].links[1]",
            "[1].links",
            "[1].synonyms[0]",
            "[3].id",
            "[3].links[0].ref",
            "[3].links[1].ref",
        ]

    def test_fields_that_were_surely_meant_to_be_read(self, write):
        path = write(
            "o.json",
            [
                {"title": "A", "children": [{"title": "B"}], "url": "x", "tags": ["y"]},
                {"title": "C", "synonym": ["c"], "notes": "n", "links": [{"name": "D"}]},
            ],
        )
        assert [(fault.field, fault.problem) for fault in faults(path)] == [
            ("[0].children", "holds topics, but is not read"),
            ("[1].links[0].title", "is missing"),
            ("[1].notes", "is not read"),
            ("[1].synonym", "is not read"),
        ]

    def test_a_key_twice(self, write):
        path = write("o.json", '[{"title": "A", "links": [{"title": "B", "title": "C"}]}]')
        (fault,) = faults(path)
        assert (fault.field, fault.problem) == (
            "[0].links[0]",
            "has the key 'title' more than once",
        )

    def test_cycle(self, write):
        (fault,) = faults(
            write("o.json", {"title": "A", "links": [{"title": "B", "links": [{"title": "A"}]}]})
        )
        assert fault.problem.endswith(("A → B → A", "B → A → B"))
        assert fault.field in ("links[0]", "links[0].links[0]")


class TestBuildTree:
    def test_a_node_is_repeated_per_root_path(self, write):
        built = build_tree(
            read_ontology(write("o.json", NESTED)),
            {"discrete mathematics": "combinatorics"},
            DOMAINS,
            max_depth=5,
        )
        rows = {row["node_id"]: row for row in built.frame.iter_rows(named=True)}
        assert list(rows) == [
            "Discrete Mathematics",
            "Discrete Mathematics/Combinatorics",
            "Discrete Mathematics/Combinatorics/Pascal's Triangle",
            "Number Theory",
            "Number Theory/Primes",
            "Number Theory/Special Numbers",
            "Number Theory/Special Numbers/Pascal's Triangle",
        ]
        assert rows["Number Theory/Primes"] == {
            "node_id": "Number Theory/Primes",
            "path": "Number Theory > Primes",
            "label": "Primes",
            "synonyms": ["prime", "prime number"],
            "parent_id": "Number Theory",
            "depth": 1,
            "domain": None,
            "source_node": "Primes",
        }
        assert rows["Discrete Mathematics/Combinatorics"]["domain"] == "combinatorics"
        assert rows["Number Theory"]["parent_id"] is None
        assert built.repairs == {"root_dropped": 1, "top_level_without_domain": 1, "whitespace": 1}
        assert (built.n_source_nodes, built.n_source_edges) == (7, 7)
        TABLES["ontology_tree"].check(built.frame)

    def test_ids_are_escaped_so_that_they_stay_apart(self):
        built = build_tree(graph("r>a", "r>a/b", "a>b", "r>a%2Fb"), {}, [], max_depth=3)
        assert built.frame["node_id"].to_list() == ["a", "a%252Fb", "a%2Fb", "a/b"]

    def test_labels_spell_domains(self):
        names = {"x": "Calculus and Analysis", "y": "Number theory", "z": "Logic"}
        built = build_tree(graph("r>x", "r>y", "r>z", labels=names), {}, DOMAINS, max_depth=3)
        assert built.frame["domain"].to_list() == ["calculus_analysis", "number_theory", None]

    def test_several_topics_map_to_one_domain_by_id_or_label(self):
        built = build_tree(
            graph("r>x", "r>y", "y>w", labels={"x": "Combinatorics"}),
            {"COMBINATORICS": "combinatorics", " Y": "combinatorics"},
            DOMAINS,
            max_depth=3,
        )
        assert built.frame["domain"].to_list() == ["combinatorics"] * 3

    @pytest.mark.parametrize("mapping", [{"r": "algebra"}, {}])
    def test_a_single_root_with_a_domain_stays(self, mapping):
        built = build_tree(graph("r>a", labels={"r": "Algebra"}), mapping, DOMAINS, max_depth=3)
        assert built.frame["node_id"].to_list() == ["r", "r/a"]
        assert built.frame["domain"].to_list() == ["algebra"] * 2
        assert built.repairs == {}

    def test_mapping_faults_name_the_nearest(self):
        with pytest.raises(SaberError) as caught:
            build_tree(
                graph("r>Algebra", "r>Geometry"),
                {"Algebr": "algebra", "Geometry": "geomtry", "geometry ": "algebra"},
                DOMAINS,
                max_depth=3,
            )
        message = str(caught.value)
        assert "'Algebr' is no top-level topic; the nearest are ['Algebra']" in message
        assert "'geomtry' (of 'Geometry') is no domain; the nearest are ['geometry'" in message
        assert "'Geometry' maps to both 'geomtry' and 'algebra'" in message

    def test_no_domain_at_all_is_an_error(self):
        with pytest.raises(SaberError, match=r"map some of \['a', 'b'\]"):
            build_tree(graph("r>a", "r>b"), {}, DOMAINS, max_depth=3)

    @pytest.mark.parametrize(("max_depth", "cut", "lost"), [(0, 4, 2), (1, 2, 1), (2, 0, 0)])
    def test_depth_is_cut_and_counted(self, max_depth, cut, lost):
        # the whole tree: a, a/c, a/c/d, b, b/c, b/c/d
        source = graph("a>c", "b>c", "c>d")
        built = build_tree(source, {}, [], max_depth=max_depth)
        assert built.frame["depth"].max() == max_depth
        assert built.frame.height == 6 - cut
        assert built.repairs.get("beyond_max_depth", 0) == cut
        assert built.repairs.get("source_nodes_lost", 0) == lost

    def test_too_many_nodes_are_counted_before_they_are_made(self):
        # 40 diamonds in a row: sum of 3 * 2**i over i < 40, 2**40 ends, and z
        steps = [e for i in range(40) for e in (f"n{i}>l{i}", f"n{i}>r{i}")]
        steps += [f"{side}{i}>n{i + 1}" for i in range(40) for side in "lr"]
        with pytest.raises(SaberError, match=f"become {2**42 - 2} tree nodes"):
            build_tree(graph("root>n0", "root>z", *steps), {}, [], max_depth=100)

    def test_exactly_max_nodes_is_allowed(self):
        assert build_tree(graph("a>b", "c>b"), {}, [], 5, max_nodes=4).frame.height == 4
        with pytest.raises(SaberError, match="become 4 tree nodes, more than 3"):
            build_tree(graph("a>b", "c>b"), {}, [], 5, max_nodes=3)

    def test_cycle(self):
        with pytest.raises(SaberError, match="cycle"):
            build_tree(graph("r>a", "a>b", "b>a"), {}, [], max_depth=3)


def test_find_cycle_walks_edges_and_ignores_order():
    edges = [("r", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "x")]
    cycle = find_cycle(edges)
    assert cycle[0] == cycle[-1]
    assert all(pair in edges for pair in pairwise(cycle))
    assert find_cycle(edges[::-1]) == cycle
    assert find_cycle(edges[:3]) == []


class TestOntologyTree:
    @pytest.fixture
    def tree(self):
        source = OntologyGraph(
            {
                "a": OntologyNode("A", ("alpha",)),
                "b": OntologyNode("B", ("beta", "shared")),
                "c": OntologyNode("C", ("shared",)),
                "z": OntologyNode("Z"),
            },
            (("a", "b"), ("a", "c"), ("b", "c"), ("z", "c")),
            {},
            Path("o.json"),
        )
        built = build_tree(source, {"A": "algebra"}, ["algebra"], max_depth=5)
        return OntologyTree.from_frame(built.frame.reverse())

    def test_arrays(self, tree):
        assert tree.node_ids == ["a", "a/b", "a/b/c", "a/c", "z", "z/c"]
        assert tree.index["a/c"] == 3
        assert tree.parent.dtype == tree.depth.dtype == np.int32
        assert tree.parent.tolist() == [-1, 0, 1, 0, -1, 4]
        assert tree.depth.tolist() == [0, 1, 2, 1, 0, 1]
        assert tree.children == [(1, 3), (2,), (), (), (5,), ()]
        assert tree.roots == (0, 4)
        assert tree.domain == ["algebra"] * 4 + [None] * 2
        assert tree.label[1] == "B"
        assert tree.synonyms[1] == ("beta", "shared")

    def test_ancestry(self, tree):
        assert tree.ancestors(2) == (2, 1, 0)
        assert tree.ancestors(0) == (0,)

    def test_lca(self, tree):
        assert tree.lca(2, 3) == 0
        assert tree.lca(2, 1) == 1
        assert tree.lca(3, 3) == 3
        assert tree.lca(2, 5) == -1
        assert tree.lca(0, 4) == -1

    def test_terms_below(self, tree):
        assert tree.terms_below(0) == ("B", "C", "beta", "shared")
        assert tree.terms_below(2) == ()
        assert tree.terms_below(0) is tree.terms_below(0)


def test_union_ontology():
    data = Path(os.environ.get("SABER_TEST_DATA", "../shared/data")) / "ontology_union"
    if not data.is_dir():
        pytest.skip(f"no test data at {data} (SABER_TEST_DATA)")
    start = time.perf_counter()
    found = read_ontology(data / "edges.tsv", nodes=data / "nodes.jsonl")
    built = build_tree(found, {"Discrete mathematics": "combinatorics"}, DOMAINS, max_depth=9)
    tree = OntologyTree.from_frame(built.frame)
    assert time.perf_counter() - start < 2.0
    assert (built.n_source_nodes, built.n_source_edges) == (5832, 6237)
    assert found.roots == ["root"]
    assert built.repairs["root_dropped"] == 1
    assert "discrete mathematics" in {tree.label[i] for i in tree.roots}
