"""Readers of ontology files: edge lists and nested JSON, checked and turned into one graph."""

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from saber_dagster.errors import Fault, InputError, SaberError
from saber_dagster.input_files import no_file, shown_name
from saber_dagster.json_text import decode
from saber_dagster.ontology import OntologyGraph, OntologyNode, find_cycle
from saber_dagster.ontology_source import SourceFile

Format = Literal["tsv", "csv", "jsonl", "json"]
_MOST_CYCLES = 20


class _Draft:
    """Nodes and edges while files are read; edges keep row and place that they came from."""

    def __init__(self) -> None:
        self.nodes: dict[str, OntologyNode] = {}
        self.edges: dict[tuple[str, str], tuple[int, str]] = {}
        self.references: list[tuple[str, str]] = []

    def add_edge(
        self, file: SourceFile, parent: str, child: str, row: int, place: str = ""
    ) -> None:
        if not parent or not child:
            return  # already a fault
        if (parent, child) in self.edges:
            file.repairs["repeated_edges"] += 1
        else:
            self.edges[parent, child] = row, place

    def refuse_cycles(self, file: SourceFile) -> None:
        """Note each cycle, with the place of the link that closes it."""
        edges = dict(self.edges)
        for _ in range(_MOST_CYCLES):
            if not (cycle := find_cycle(edges)):
                return
            row, place = edges.pop((cycle[-2], cycle[-1]))
            problem = f"topics form a cycle: {' → '.join(cycle)}"
            remedy = "Remove one of these links; they go from general to specific"
            file.fault(row, place, problem, remedy)

    def read_nodes(self, file: SourceFile) -> None:
        rows: dict[str, int] = {}
        for row, item in file.json_lines():
            node = file.text(item.get("id"), row, "id")
            found = _node(file, item, row, "", "label")
            if node in rows:
                problem = f"repeats the id {node!r} of line {rows[node]}"
                file.fault(row, "id", problem, "Give every topic its own id")
            elif node:
                rows[node] = row
                self.nodes[node] = found

    def read_edges(self, file: SourceFile, kind: str, nodes: Path | None) -> None:
        if nodes is not None:
            self.read_nodes(SourceFile(nodes, file.faults, file.repairs))
        known = set(self.nodes)
        items = file.json_lines() if kind == "jsonl" else file.table("\t" if kind == "tsv" else ",")
        for row, item in items:
            ends = [file.text(item.get(field), row, field) for field in ("parent", "child")]
            self.add_edge(file, ends[0], ends[1], row)
            for field, node in zip(("parent", "child"), ends, strict=True):
                if node and nodes is None:
                    self.nodes[node] = OntologyNode(node)
                elif node and nodes and known and node not in known:
                    problem = f"{node!r} is not in {nodes.name}"
                    file.fault(row, field, problem, _remedy(node, known, "Add it there"))

    def read_nested(self, file: SourceFile, title_field: str, links_field: str) -> None:
        text = file.read()
        try:
            top = decode(text) if text.strip() else []
        except (ValueError, RecursionError) as error:
            row = getattr(error, "lineno", 0)
            return file.fault(row, "", f"is not JSON ({error})", "Mend it, or use an edge list")
        at, links = "", top
        if isinstance(top, dict):
            at, links = ("roots", top["roots"]) if "roots" in top else ("", [top])
        # (list of topics, where it stands in the file, id of the parent)
        todo: list[tuple[Any, str, str | None]] = [(links, at, None)]
        while todo:
            links, at, parent = todo.pop()
            if not isinstance(links, list):
                file.fault(0, at, "is not a list", "Write a list of topics, each an object")
                continue
            for i, item in enumerate(links):
                place = at if item is top else f"{at}[{i}]"
                node = self._nested_node(file, item, place, title_field, links_field)
                if node is None:
                    continue
                if parent is not None:
                    self.add_edge(file, parent, node, 0, place)
                if (below := item.get(links_field)) is not None:
                    todo.append((below, _join(place, links_field), node))
        for node, place in self.references:
            if node not in self.nodes:
                remedy = _remedy(node, set(self.nodes), "Refer to the id of a topic in this file")
                file.fault(0, place, f"refers to {node!r}, which is no topic", remedy)
        return None

    def _nested_node(
        self, file: SourceFile, item: Any, place: str, title_field: str, links_field: str
    ) -> str | None:
        """Add one topic and return its id (empty if faulty), or None if it is no object."""
        if not isinstance(item, dict):
            file.fault(0, place, "is not an object", f'Write {{"{title_field}": "…"}}')
            return None
        file.check_keys(item, 0, place)
        if "ref" in item:
            at = _join(place, "ref")
            if len(item) > 1:
                file.fault(0, at, "stands beside other fields", 'Write {"ref": "id"} alone')
            if node := file.text(item["ref"], 0, at):
                self.references.append((node, at))
            return node
        found = _node(file, item, 0, place, title_field, links_field)
        given = item.get("id")
        node = found.label if given is None else file.text(given, 0, _join(place, "id"))
        if not node or not found.label:
            return ""
        old = self.nodes.get(node, found)
        if old.label != found.label:
            problem = f"{node!r} has the titles {old.label!r} and {found.label!r}"
            file.fault(0, _join(place, "id"), problem, "Give every topic its own id")
        synonyms = sorted({*old.synonyms, *found.synonyms})
        note = min(filter(None, (old.note, found.note)), default="")
        self.nodes[node] = OntologyNode(old.label, tuple(synonyms), note)
        return node


def _check_names(
    file: SourceFile, item: Mapping[str, Any], row: int, place: str, read: Sequence[str], links: str
) -> None:
    """Note fields that nobody reads and that somebody surely meant to be read."""
    absent = [name for name in ("id", "synonyms", "note") if name not in item]
    for name, value in item.items():
        if name in read:
            continue
        if links and isinstance(value, list) and any(isinstance(part, dict) for part in value):
            file.fault(row, _join(place, name), "holds topics, but is not read", f"Name it {links}")
        elif near := get_close_matches(name, absent, 1):
            file.fault(row, _join(place, name), "is not read", f"Did you mean {near[0]}?")


def _node(
    file: SourceFile, item: Mapping[str, Any], row: int, place: str, label: str, links: str = ""
) -> OntologyNode:
    read = ("id", label, "synonyms", "note", links)
    _check_names(file, item, row, place, read, links)
    synonyms = file.texts(item.get("synonyms"), row, _join(place, "synonyms"))
    note = item.get("note") or None
    others = [name for name in item if name not in read]
    near = get_close_matches(label, others, 1)
    remedy = f"Rename {near[0]}" if near else f"Give the topic a {label}"
    return OntologyNode(
        label=file.text(item.get(label), row, _join(place, label), remedy),
        synonyms=tuple(sorted(set(filter(None, synonyms)))),
        note="" if note is None else file.text(note, row, _join(place, "note")),
    )


def _join(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field


def _remedy(name: str, known: set[str], otherwise: str) -> str:
    near = get_close_matches(name, sorted(known), n=3)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def read_ontology(
    path: Path,
    *,
    format: Format | None = None,
    nodes: Path | None = None,
    title_field: str = "title",
    links_field: str = "links",
) -> OntologyGraph:
    """Read an ontology and check it.

    Formats, by extension unless ``format`` says otherwise:

    * ``tsv``, ``csv``: a header with ``parent`` and ``child``; further columns are ignored.
    * ``jsonl``: one object with ``parent`` and ``child`` per line.
    * ``json``: nested objects with a title, a list of links (objects again, or ``{"ref": id}``),
      and optionally ``id``, ``synonyms``, ``note``; one object, a list, or ``{"roots": [...]}``.
      The id of a topic without one is its title; a topic that occurs again is the same topic, with
      the links of all its occurrences.

    In edge lists ids are labels, unless ``nodes`` names a JSONL file with ``id``, ``label`` and
    optionally ``synonyms`` and ``note``; its topics that are in no edge are left out and counted.

    Raises:
        SaberError: if the format is unknown, or ``nodes`` is given with nested JSON.
        InputError: with every fault of the files, a cycle among them; nothing is changed.
    """
    if refused := no_file(path):
        raise InputError([Fault(shown_name(path), 0, "", *refused)])
    kind = format or path.suffix.lower().removeprefix(".")
    if kind not in get_args(Format):
        known = ", ".join(get_args(Format))
        raise SaberError(
            f"{path}: unknown ontology format {kind!r}. Use the extension of one of {known}, or name"
            " the format in ontology.format of saber.yaml"
        )
    if kind == "json" and nodes is not None:
        raise SaberError(
            f"{path}: nested JSON names its topics itself; leave out {shown_name(nodes)}"
        )
    file, draft = SourceFile(path, [], Counter()), _Draft()
    if kind == "json":
        draft.read_nested(file, title_field, links_field)
    else:
        draft.read_edges(file, kind, nodes)
    found = draft.nodes
    if nodes is not None:
        used = {node for edge in draft.edges for node in edge}
        if lonely := len(found.keys() - used):
            file.repairs["nodes_without_edges"] = lonely
            found = {node: found[node] for node in found.keys() & used}
    if not found and not file.faults:
        file.fault(0, "", "holds no topics", "Give at least one topic")
    draft.refuse_cycles(file)
    if file.faults:
        raise InputError(file.faults)
    return OntologyGraph(
        nodes={node: found[node] for node in sorted(found)},
        edges=tuple(sorted(draft.edges)),
        repairs=dict(sorted(file.repairs.items())),
        source=path,
    )


def shipped_ontology() -> Path:
    """The ontology that comes with the package, in the nested JSON format."""
    return Path(__file__).parent / "data" / "ontology.json"
