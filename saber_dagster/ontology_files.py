"""Readers of ontology files: edge lists and nested JSON, checked and turned into one graph."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from saber_dagster.errors import Fault, InputError, SaberError
from saber_dagster.ontology import OntologyGraph, OntologyNode, find_cycle

Format = Literal["tsv", "csv", "jsonl", "json"]
_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class _File:
    """One input file, and where its faults and repairs are noted."""

    def __init__(self, path: Path, faults: list[Fault], repairs: Counter[str]) -> None:
        self.path, self.faults, self.repairs = path, faults, repairs

    def fault(self, row: int, field: str, problem: str, remedy: str) -> None:
        self.faults.append(Fault(str(self.path), row, field, problem, remedy))

    def read(self) -> str:
        """The file's text without byte order mark; empty, with a fault, if there is none."""
        try:
            text = self.path.read_bytes().decode("utf-8")
        except OSError as error:
            self.fault(0, "", f"cannot be read ({error.strerror})", "Check path and permissions")
            return ""
        except UnicodeDecodeError as error:
            row = error.object[: error.start].count(b"\n") + 1
            self.fault(row, "", "is not UTF-8", "Save the file as UTF-8")
            return ""
        if text.startswith(_BOM):
            self.repairs["byte_order_mark"] += 1
            text = text[1:]
        if not text.strip():
            self.fault(0, "", "is empty", "Give at least one topic")
        return text

    def text(self, value: Any, row: int, field: str) -> str:
        """A value as trimmed text; empty, with a fault, if it is none."""
        text = " ".join(value.split()) if isinstance(value, str) else ""
        if not text:
            kind = "missing" if value is None else f"{type(value).__name__}, not text"
            problem = f"is {'empty' if isinstance(value, str) else kind}"
            self.fault(row, field, problem, "Give a text that is not empty")
        elif bad := _NOT_TEXT.search(text):
            problem = f"contains U+{ord(bad.group()):04X}, which is not text"
            self.fault(row, field, problem, "Remove control characters and lone surrogates")
            return ""
        elif text != value:
            self.repairs["whitespace"] += 1
        return text

    def texts(self, value: Any, row: int, field: str) -> list[str]:
        """An optional list of texts."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(row, field, "is not a list", 'Write a list of texts: ["…", "…"]')
            return []
        return [self.text(item, row, f"{field}[{i}]") for i, item in enumerate(value)]

    def json_lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and object of every line that is one."""
        for row, line in enumerate(self.read().split("\n"), start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                self.fault(row, "", f"is not JSON ({error})", "Write one JSON object per line")
                continue
            if isinstance(value, dict):
                yield row, value
            else:
                self.fault(row, "", "is not a JSON object", "Write one JSON object per line")

    def table(self, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and cells by lower-cased column name of every row under the header."""
        reader = csv.reader(
            io.StringIO(self.read(), newline=""),
            delimiter=delimiter,
            # A quotation mark in a TSV file is text; in a CSV file it quotes.
            quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL,
            strict=True,
        )
        header: list[str] = []
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if not header:
                    header = [cell.strip().lower() for cell in cells]
                    if missing := {"parent", "child"} - set(header):
                        problem = f"lacks the column(s) {', '.join(sorted(missing))}: {cells}"
                        remedy = f"Start the file with parent{delimiter}child"
                        self.fault(reader.line_num, "", problem, remedy.replace("\t", "<tab>"))
                        return
                elif len(cells) > len(header):
                    problem = f"has {len(cells)} cells, the header has {len(header)}"
                    self.fault(reader.line_num, "", problem, "Quote cells that hold the delimiter")
                else:
                    yield reader.line_num, dict(zip(header, cells, strict=False))
        except csv.Error as error:
            self.fault(reader.line_num, "", f"cannot be parsed ({error})", "Mend the quotes")


class _Draft:
    """Nodes and edges while files are read; edges keep the row they came from."""

    def __init__(self) -> None:
        self.nodes: dict[str, OntologyNode] = {}
        self.edges: dict[tuple[str, str], int] = {}
        self.references: list[tuple[str, str]] = []

    def add_edge(self, file: _File, parent: str, child: str, row: int) -> None:
        if not parent or not child:
            return  # already a fault
        if (parent, child) in self.edges:
            file.repairs["repeated_edges"] += 1
        else:
            self.edges[parent, child] = row

    def read_nodes(self, file: _File) -> None:
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

    def read_edges(self, file: _File, kind: str, nodes: Path | None) -> None:
        if nodes is not None:
            self.read_nodes(_File(nodes, file.faults, file.repairs))
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

    def read_nested(self, file: _File, title_field: str, links_field: str) -> None:
        text = file.read()
        try:
            top = json.loads(text) if text.strip() else []
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
                node = self._nested_node(file, item, place, title_field)
                if node is None:
                    continue
                if parent is not None:
                    self.add_edge(file, parent, node, 0)
                if (below := item.get(links_field)) is not None:
                    todo.append((below, _join(place, links_field), node))
        for node, place in self.references:
            if node not in self.nodes:
                remedy = _remedy(node, set(self.nodes), "Refer to the id of a topic in this file")
                file.fault(0, place, f"refers to {node!r}, which is no topic", remedy)
        return None

    def _nested_node(self, file: _File, item: Any, place: str, title_field: str) -> str | None:
        """Add one topic and return its id (empty if faulty), or None if it is no object."""
        if not isinstance(item, dict):
            file.fault(0, place, "is not an object", f'Write {{"{title_field}": "…"}}')
            return None
        if "ref" in item:
            at = _join(place, "ref")
            if len(item) > 1:
                file.fault(0, at, "stands beside other fields", 'Write {"ref": "id"} alone')
            if node := file.text(item["ref"], 0, at):
                self.references.append((node, at))
            return node
        found = _node(file, item, 0, place, title_field)
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


def _node(file: _File, item: Mapping[str, Any], row: int, place: str, label: str) -> OntologyNode:
    synonyms = file.texts(item.get("synonyms"), row, _join(place, "synonyms"))
    note = item.get("note") or None
    return OntologyNode(
        label=file.text(item.get(label), row, _join(place, label)),
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
    kind = format or path.suffix.lower().removeprefix(".")
    if kind not in get_args(Format):
        known = ", ".join(get_args(Format))
        raise SaberError(f"{path}: unknown ontology format {kind!r}; give format= one of {known}")
    if kind == "json" and nodes is not None:
        raise SaberError(f"{path}: nested JSON names its topics itself; leave out {nodes}")
    file, draft = _File(path, [], Counter()), _Draft()
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
    if cycle := find_cycle(draft.edges):
        problem = f"topics form a cycle: {' → '.join(cycle)}"
        row = draft.edges[cycle[-2], cycle[-1]]
        file.fault(row, "", problem, "Remove one of these links; they go from general to specific")
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
