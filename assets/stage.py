"""What every asset has in common: inputs, contract, versions, provenance, metadata, checks."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import polars as pl
from dagster_shared.utils.warnings import BetaWarning, PreviewWarning

from assets.shown import described, sample
from resources.parquet_io import LoadedTable, StoredTable
from saber_dagster import releases
from saber_dagster.automation import follow_inputs
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.freshness import Key, Node, states
from saber_dagster.hashing import digest
from saber_dagster.home import Home
from saber_dagster.partitions import corpus_shards, query_partitions
from saber_dagster.settings import Settings
from saber_dagster.tables import WHOLE, Provenance, TableParts, TableStore, input_name


@dataclass(frozen=True)
class Site:
    """Where assets are built for: a home, its settings and partitions."""

    home: Home
    graph: dict[Key, Node] = field(default_factory=dict)
    """The assets built so far, for freshness."""

    @property
    def settings(self) -> Settings:
        """The home's settings."""
        return self.home.settings

    @property
    def store(self) -> TableStore:
        """The home's tables."""
        return TableStore(self.home.tables)

    @property
    def by_corpus_shard(self) -> dg.StaticPartitionsDefinition:
        """Partitions of assets before domains exist."""
        return corpus_shards(self.settings)

    @property
    def by_query(self) -> dg.MultiPartitionsDefinition:
        """Partitions of assets that follow the query."""
        return query_partitions(self.settings)


@dataclass(frozen=True)
class Check:
    """The verdict of one asset check."""

    name: str
    passed: bool
    description: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """What an asset's function returns."""

    frame: pl.DataFrame
    metadata: Mapping[str, Any] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the materialization."""
    data_version: str = ""
    """Of a table whose rows name another's by number; the rows of any other table say theirs."""


@dataclass(frozen=True)
class CheckRule:
    """An asset check that a stage makes; a blocking one stops whatever builds on the table."""

    name: str
    description: str
    blocking: bool = True


def stage(
    site: Site,
    key: str | Sequence[str],
    *,
    table: str,
    version: str,
    group: str,
    inputs: Mapping[str, dg.AssetsDefinition] | None = None,
    partitions: dg.PartitionsDefinition[Any] | None = None,
    reads: Sequence[str] = (),
    identity: Any = None,
    kinds: Sequence[str] = (),
    resources: Sequence[str] = (),
    pool: str | None = None,
    published: bool = False,
    checks: Sequence[CheckRule] = (),
    description: str = "",
    tags: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
    with_versions: bool = False,
) -> Callable[[Callable[..., Made]], dg.AssetsDefinition]:
    """Turn a function of frames into an asset.

    Args:
        site: the home that the asset is built for.
        key: asset key.
        table: the contract of what the function returns.
        version: bumped by hand when the stage's logic changes.
        group: group in the UI.
        inputs: argument name → upstream asset; each arrives as one frame, or, if its rows name those of
            another input by number, as :class:`~saber_dagster.tables.TableParts`.
        partitions: None for a whole table.
        reads: settings that the function reads, as sections or ``section.key``.
        identity: further JSON that decides the result, such as an engine's model and prompt.
        kinds: icons in the UI, besides parquet.
        resources: keys of the resources that the function takes from its context.
        pool: concurrency pool; an asset with one calls an engine and never starts by itself.
        published: others rely on the table's name and figures: it is made only while all tables
            upstream, up to a pinned release, are fresh, and never starts by itself.
        checks: what the returned checks may be.
        description: what the table says; default: its contract's description.
        tags: asset tags.
        facts: metadata of the definition, such as the revision of an engine.
        with_versions: the function takes ``versions``, the data version of each input partition, too.

    Returns:
        A decorator for ``function(context, **frames) -> Made``.
    """
    upstream = {name: asset.key for name, asset in (inputs or {}).items()}
    contract = TABLES[table]
    settings_digest = site.settings.digest_of(*reads) if reads else "-"
    code_version = f"{version}:{contract.schema_sha}:{settings_digest}:{digest(identity)}"
    path = [key] if isinstance(key, str) else list(key)
    parents = tuple(sorted(tuple(asset_key.path) for asset_key in upstream.values()))
    site.graph[tuple(path)] = Node(
        key=tuple(path),
        table=table,
        group=group,
        code_version=code_version,
        partitions=tuple(partitions.get_partition_keys()) if partitions else (None,),
        parents=parents,
        level=1 + max((site.graph[parent].level for parent in parents), default=-1),
    )

    def decorate(function: Callable[..., Made]) -> dg.AssetsDefinition:
        check_specs = [_check_spec(rule, path, partitions) for rule in checks]

        @dg.asset(
            key=path,
            ins={name: _input(asset, partitions) for name, asset in (inputs or {}).items()},
            partitions_def=partitions,
            code_version=code_version,
            description=description or contract.description,
            group_name=group,
            kinds={"parquet", *kinds},
            required_resource_keys=set(resources),
            pool=pool,
            automation_condition=None if pool or published else follow_inputs(),
            metadata={**described(table), **(facts or {})},
            tags=_tags(tags or {}),
            check_specs=check_specs,
        )
        def compute(context: dg.AssetExecutionContext, **loaded: LoadedTable) -> Any:
            partition = context.partition_key if context.has_partition_key else None
            if published:
                _refuse_if_behind(site, tuple(path))
            versions = {k: v for table in loaded.values() for k, v in table.versions.items()}
            _refuse_other_numbers(loaded, versions)
            more = {"versions": versions} if with_versions else {}
            made = function(context, **{k: table.rows for k, table in loaded.items()}, **more)
            frame = contract.check(made.frame, input_name(path, partition))
            data_version = made.data_version or contract.version(frame)
            blocking = {rule.name for rule in checks if rule.blocking}
            provenance = Provenance(
                table=table,
                asset="/".join(path),
                partition=partition or WHOLE,
                code_version=code_version,
                data_version=data_version,
                rows=frame.height,
                inputs=versions,
                run_id=context.run.run_id,
                failed_checks=tuple(
                    f"{check.name}: {check.description}"
                    for check in made.checks
                    if not check.passed and check.name in blocking
                ),
            )
            metadata = {
                **made.metadata,
                "sample": dg.MetadataValue.md(sample(frame)),
                "path": dg.MetadataValue.path(str(site.store.path(path, partition))),
                "dagster/row_count": frame.height,
            }
            yield _output(StoredTable(frame, provenance), metadata, data_version, _tags(made.tags))
            for check in made.checks:
                yield dg.AssetCheckResult(
                    check_name=check.name,
                    passed=check.passed,
                    severity=(
                        dg.AssetCheckSeverity.ERROR
                        if check.name in blocking
                        else dg.AssetCheckSeverity.WARN
                    ),
                    description=check.description,
                    metadata=dict(check.metadata),
                )

        return compute

    return decorate


def _input(
    asset: dg.AssetsDefinition, partitions: dg.PartitionsDefinition[Any] | None
) -> dg.AssetIn:
    """An upstream asset: the same partition of it, and all of one that is cut another way."""
    otherwise = partitions and asset.partitions_def and asset.partitions_def != partitions
    return dg.AssetIn(
        key=asset.key, partition_mapping=dg.AllPartitionMapping() if otherwise else None
    )


def _tags(texts: Mapping[str, str]) -> dict[str, str]:
    """Tags with values as Dagster takes them: 63 letters, digits and ``_.-``."""
    return {
        name: re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:63].strip("-_.")
        for name, text in texts.items()
    }


def _check_spec(
    rule: CheckRule, asset: list[str], partitions: dg.PartitionsDefinition[Any] | None
) -> dg.AssetCheckSpec:
    """A check of each partition: a failure blocks that partition alone."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", PreviewWarning
        )  # used with care: tested on the pinned version
        return dg.AssetCheckSpec(
            rule.name,
            asset=asset,
            description=rule.description,
            blocking=rule.blocking,
            partitions_def=partitions,
        )


def _output(
    table: StoredTable, metadata: dict[str, Any], data_version: str, tags: dict[str, str]
) -> dg.Output[StoredTable]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)  # data_version, likewise
        version = dg.DataVersion(data_version)
        return dg.Output(table, metadata=metadata, data_version=version, tags=tags)


def _refuse_other_numbers(loaded: Mapping[str, LoadedTable], versions: Mapping[str, str]) -> None:
    """Rows that name another table's rows by number are read with that version of it only."""
    for table in loaded.values():
        if isinstance(table.rows, TableParts):
            numbers = TABLES[table.rows.table].numbers
            table.rows.refuse_other_numbers(versions[input_name([numbers], None)])


def _refuse_if_behind(site: Site, key: Key) -> None:
    """What others rely on is made from fresh tables only, whoever starts it.

    Raises:
        SaberError: naming an upstream partition that is not fresh.
    """
    release = releases.release_of(site.home.releases, site.settings)
    pinned = releases.PINNED_ASSETS if release.complete else set()
    above: set[Key] = set()
    waiting = [] if key in pinned else list(site.graph[key].parents)
    while waiting:
        parent = waiting.pop()
        if parent not in above and parent not in pinned:
            above.add(parent)
            waiting += site.graph[parent].parents
    nodes = [node for name, node in site.graph.items() if name in above]
    for state in states(site.store, site.graph, nodes):
        if state.condition != "fresh":
            raise SaberError(
                f"{'/'.join(key)} is made from fresh tables only, and"
                f" {input_name(state.node.key, state.partition)} is {state.condition}: {state.reason}."
                " Materialize it first, or run `saber build`"
            )
