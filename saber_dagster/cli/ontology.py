"""``saber ontology``: look at topics before problems are tagged with them."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from saber_dagster.cli.common import (
    JsonOption,
    MapOption,
    console,
    current_home,
    parse_mapping,
    print_json,
)
from saber_dagster.errors import Fault, InputError, SaberError

ontology_app = typer.Typer(help="Check an ontology.", no_args_is_help=True, rich_markup_mode=None)
_SHOWN = 10


@ontology_app.callback()
def _group() -> None:
    """Check an ontology."""


@ontology_app.command("check")
def check(
    file: Annotated[
        Path | None, typer.Argument(help="Topics; default: the home's, as a rule the shipped ones.")
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option(help="JSONL of id, label, synonyms for an edge list.")
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Problems to look for the topics' names in; may be repeated."),
    ] = None,
    mapping: MapOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count topics and list what to mend: orphans, near-duplicate labels, unbalanced depth, and more.

    Faults that stop a build (such as a cycle) end with exit code 1; findings do not. Nothing is written.
    """
    from saber_dagster import ontology_check
    from saber_dagster.corpus import read_problems
    from saber_dagster.ontology import OntologyTree, build_tree
    from saber_dagster.ontology_files import read_ontology, shipped_ontology

    settings = current_home().settings
    own = settings.ontology
    if file is None and own.file:
        file, nodes = Path(own.file), Path(own.nodes) if own.nodes else nodes
    read = [read_problems(path, parse_mapping(mapping)) for path in corpus or ()]
    faults = [fault for part in read for fault in part.faults]
    try:
        graph = read_ontology(file or shipped_ontology(), nodes=nodes)
        build = build_tree(graph, own.root_domains, settings.domains, own.max_depth)
    except SaberError as error:
        raise _together(error, faults) from None
    if faults:
        raise InputError(faults)
    tree = OntologyTree.from_frame(build.frame)
    shape = ontology_check.shape(graph, tree)
    findings = ontology_check.check_ontology(graph, tree)
    texts = [f"{row.problem}\n{row.solution}" for part in read for row in part.rows]
    found = ontology_check.coverage(tree, texts) if corpus else None
    if as_json:
        print_json(
            {
                **asdict(shape),
                "repairs": dict(build.repairs),
                "findings": [asdict(finding) for finding in findings],
                "coverage": {**asdict(found), "share": found.share} if found else None,
            }
        )
        return
    console.print(
        f"{shape.nodes:,} topics, {shape.several_parents} of them with several parents;"
        f" {shape.tree_nodes:,} nodes as a tree"
    )
    by_domain = ", ".join(f"{domain} {count}" for domain, count in shape.by_domain.items())
    console.print(f"tree nodes by domain: {by_domain}", soft_wrap=True)
    console.print(f"by depth, from 0: {', '.join(map(str, shape.by_depth))}")
    for name, count in build.repairs.items():
        console.print(f"[yellow]repaired[/] {name.replace('_', ' ')}: {count}")
    kinds = Counter(finding.kind for finding in findings)
    for kind, count in kinds.items():
        console.print(f"[yellow]{kind.replace('_', ' ')}[/]: {count}")
        for finding in [f for f in findings if f.kind == kind][:_SHOWN]:
            line = f"  {finding.problem}. {finding.remedy}"
            console.print(escape(line), soft_wrap=True, highlight=False)
        if count > _SHOWN:
            console.print(f"  … and {count - _SHOWN} more (--json lists all)")
    if not findings:
        console.print("nothing to mend")
    if found:
        console.print(
            f"{found.named:,} of {found.texts:,} problems ({found.share:.1%}) name a topic below the"
            f" top level; {len(found.unnamed_topics):,} topics are named in none"
        )


def _together(error: SaberError, faults: list[Fault]) -> SaberError:
    """What is wrong with the ontology and with the corpus as one error."""
    if not faults:
        return error
    if isinstance(error, InputError):
        return InputError(error.faults + faults)
    return SaberError(f"{error}\n{InputError(faults)}")
