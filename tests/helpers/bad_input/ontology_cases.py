"""Files of topics."""

import json
import os
from itertools import pairwise
from typing import Any

from bad_input.bench import Bench, Case, Content, Said, jsonl

EDGES = "parent,child\nAlgebra,Sums\n"


def topic(title: Any, *links: Any, **more: Any) -> dict[str, Any]:
    return {"title": title, **more, **({"links": list(links)} if links else {})}


def read(
    name: str, content: Content | list, at: str = "", settings: str = "", nodes: str = ""
) -> Case:
    """``saber ontology check`` of a file, in a home with these settings."""

    def case(bench: Bench) -> Said:
        text = json.dumps(content) if isinstance(content, list) else content
        path = bench.write(name, text)
        if settings:
            bench.write("home/saber.yaml", settings)
        options = ["--nodes", bench.write("nodes.jsonl", nodes)] if nodes else []
        return bench.saber("ontology", "check", path, *options, at=(f"{at or name + ':'} ",))

    return case


def absent(bench: Bench) -> Said:
    gone = bench.folder / "gone.json"
    return bench.saber("ontology", "check", gone, at=("gone.json:",))


def special(bench: Bench) -> Said:
    os.mkfifo(bench.folder / "topics.tsv")
    return bench.saber("ontology", "check", bench.folder / "topics.tsv", at=("topics.tsv: ",))


def not_utf_8(bench: Bench) -> Said:
    path = bench.folder / os.fsdecode(b"caf\xe9.csv")
    path.write_text(EDGES)
    return bench.saber("ontology", "check", path, at=("caf\ufffd.csv: ",))


def and_corpus(bench: Bench) -> Said:
    topics = bench.write("topics.csv", EDGES + "A,B\nB,A\n")
    corpus = bench.write("a.jsonl", jsonl({"solution": ""}))
    at = ("topics.csv:", "a.jsonl:1: solution:")
    said = bench.saber("ontology", "check", "topics.xml", "--corpus", corpus)
    assert "unknown ontology format" in said.text
    assert at[1] in said.text
    return bench.saber("ontology", "check", topics, "--corpus", corpus, at=at)


def layers(count: int, width: int) -> str:
    """Layers of topics, each topic above all of the next layer."""
    names = [["Algebra"], *([f"{layer} {n}" for n in range(width)] for layer in range(count))]
    pairs = (
        f"{above},{below}\n"
        for layer, following in pairwise(names)
        for above in layer
        for below in following
    )
    return "parent,child\n" + "".join(pairs)


ONTOLOGIES: dict[str, Case] = {
    "ontology-missing": absent,
    "ontology-directory": read("topics", lambda path: path.mkdir()),
    "ontology-special": special,
    "ontology-name-not-utf-8": not_utf_8,
    "ontology-and-corpus": and_corpus,
    "ontology-unknown-format": read("topics.xml", "<topics/>"),
    "ontology-empty": read("topics.json", ""),
    "ontology-no-topics": read("topics.json", []),
    "ontology-utf-16": read("topics.csv", EDGES.encode("utf-16")),
    "ontology-latin-1": read(
        "topics.csv", (EDGES + "Algebra,café\n").encode("latin-1"), "topics.csv:3:"
    ),
    "ontology-broken-json": read("topics.json", '[\n{"title": "Algebra",}]', "topics.json:2:"),
    "ontology-key-twice": read("topics.json", '[{"title": "Algebra", "title": "Geometry"}]'),
    "ontology-children": read("topics.json", [topic("Algebra", children=[topic("Sums")])]),
    "ontology-misspelt-field": read("topics.json", [topic("Algebra", synonym=["x"])]),
    "ontology-no-title": read("topics.json", [{"name": "Algebra"}]),
    "ontology-title-number": read("topics.json", [topic("Algebra", topic(7))]),
    "ontology-links-no-list": read("topics.json", [{"title": "Algebra", "links": topic("Sums")}]),
    "ontology-two-titles": read(
        "topics.json",
        [topic("Algebra", topic("Sums", id="s"), topic("Series", id="s"))],
        "topics.json: [0].links[1].id:",
    ),
    "ontology-unknown-reference": read(
        "topics.json", [topic("Algebra", topic("Sums"), {"ref": "Sum"})]
    ),
    "ontology-reference-beside": read(
        "topics.json",
        [topic("Algebra", topic("Sums"), {"ref": "Sums", "title": "Sums"})],
        "topics.json: [0].links[1].ref:",
    ),
    "ontology-cycle": read("topics.csv", EDGES + "Sums,A\nA,B\nB,A\n", "topics.csv:4:"),
    "ontology-two-cycles": read(
        "topics.csv", EDGES + "A,B\nB,A\nC,D\nD,C\n", "topics form a cycle: D → C → D."
    ),
    "ontology-control": read("topics.csv", EDGES + "Algebra,a\x07b\n", "topics.csv:3: child:"),
    "ontology-frac": read(
        "topics.json",
        [topic("Algebra", topic("\frac{a}{b}"), topic("\theta functions"))],
        "topics.json: [0].links[0].title:",
    ),
    "ontology-invisible": read(
        "topics.csv", EDGES + "Algebra,Sums\u200b\n", "topics.csv:3: child:"
    ),
    "ontology-no-header": read("topics.csv", "Algebra,Sums\n", "topics.csv:1:"),
    "ontology-delimiter": read("topics.tsv", EDGES, "topics.tsv:1:"),
    "ontology-long-row": read("topics.csv", EDGES + "Algebra,a,b\n", "topics.csv:3:"),
    "ontology-empty-cell": read(
        "topics.jsonl", '{"parent": "Algebra", "child": ""}\n{"child": "a"}\n', "topics.jsonl:2:"
    ),
    "ontology-open-quote": read("topics.csv", EDGES + 'Algebra,"a\n', "topics.csv:3:"),
    "ontology-unknown-node": read(
        "topics.csv",
        "parent,child\nalgebr,sums\n",
        "topics.csv:2: parent:",
        nodes='{"id": "algebra", "label": "Algebra"}\n{"id": "sums", "label": "Sums"}\n',
    ),
    "ontology-node-twice": read(
        "topics.csv",
        "parent,child\nalgebra,sums\n",
        "nodes.jsonl:2: id:",
        nodes='{"id": "algebra", "label": "A"}\n{"id": "algebra", "label": "B"}\n',
    ),
    "ontology-no-domain": read("topics.json", [topic("Cooking", topic("Soup")), topic("Sport")]),
    "ontology-unknown-domain": read(
        "topics.csv", EDGES, settings="ontology: {root_domains: {Algebra: algbra}}\n"
    ),
    "ontology-unknown-root": read(
        "topics.csv",
        EDGES + "Algebra,a\nGeometry,b\n",
        settings="ontology: {root_domains: {Algbra: algebra}}\n",
    ),
    "ontology-too-large": read("topics.csv", layers(4, 30)),
    "ontology-too-deep": read(
        "topics.csv",
        EDGES + "Sums,a\na,b\nb,c\n",
        "5 topics,",
        settings="ontology: {max_depth: 2}\n",
    ),
    "ontology-repairs": read(
        "topics.csv",
        "\ufeff" + EDGES + " Algebra,Series\nAlgebra,Sums\nAlgebra,cafe\u0301\n",
        "4 topics,",
    ),
}
