"""The ontology as a tree."""

from pathlib import Path

import dagster as dg

from assets.rules import DOMAINS_HAVE_TOPICS, TREE, WHOLE_ONTOLOGY
from assets.stage import Made, Site, stage
from saber_dagster.hashing import sha256_hex
from saber_dagster.ontology import build_tree
from saber_dagster.ontology_files import read_ontology, shipped_ontology
from saber_dagster.rules import topics as rules


def ontology_asset(site: Site) -> dg.AssetsDefinition:
    """The asset of this stage."""
    own = site.settings.ontology
    path = Path(own.file) if own.file else shipped_ontology()
    nodes = Path(own.nodes) if own.nodes else None
    files = [sha256_hex(p.read_bytes()) if p.is_file() else "absent" for p in (path, nodes) if p]

    @stage(
        site,
        "ontology_tree",
        table="ontology_tree",
        version="1",
        group="ontology",
        reads=["ontology", "domains"],
        identity=files,
        kinds=["file"],
        checks=[TREE, DOMAINS_HAVE_TOPICS, WHOLE_ONTOLOGY],
    )
    def ontology_tree(context: dg.AssetExecutionContext) -> Made:
        graph = read_ontology(path, format=own.format, nodes=nodes)
        build = build_tree(graph, own.root_domains, site.settings.domains, own.max_depth)
        for repair, count in build.repairs.items():
            context.log.warning(f"{path.name}: {repair}: {count}")
        return Made(
            build.frame,
            {
                "source_nodes": build.n_source_nodes,
                "source_edges": build.n_source_edges,
                "tree_nodes": build.frame.height,
                "repairs": dg.MetadataValue.json(dict(build.repairs)),
                "nodes_by_depth": dg.MetadataValue.json(
                    {str(d): n for d, n in build.frame.group_by("depth").len().sort("depth").rows()}
                ),
            },
            [
                TREE.verdict(rules.tree_is_consistent(build.frame)),
                DOMAINS_HAVE_TOPICS.verdict(
                    rules.domains_have(build.frame["domain"], site.settings.domains, "topic")
                ),
                WHOLE_ONTOLOGY.verdict(rules.ontology_is_whole(build.repairs)),
            ],
        )

    return ontology_tree
