"""A home of a few dozen problems, built and looked at in this process."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import yaml
from typer.testing import CliRunner, Result

from saber_dagster import materialize
from saber_dagster.champ import champ_problems
from saber_dagster.cli import app
from saber_dagster.contracts import TABLES
from saber_dagster.definitions import load
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger
from saber_dagster.tables import TableStore

SHARDS = ("combinatorics|s00", "number_theory|s00")
SETTINGS = {
    "domains": ["combinatorics", "number_theory"],
    "partitions": {"corpus_shards": 1, "query_shards": 1},
    "thresholds": {"queries_required": 2},
    "candidates": {"per_group": 3},
    "queries": {"per_domain": 2},
    "tournament": {"rounds": 4},
    "evaluation": {"bootstrap_samples": 20},
    "pictures": False,
}


def write_problems(path: Path, start: int, stop: int) -> Path:
    """Problems of champ-dataset as a user's file; those of other categories lie far apart in it."""
    every = sorted(champ_problems(), key=lambda problem: problem.source_id)
    mixed = [problem for first in range(4) for problem in every[first::4]]
    rows = (
        {"id": p.source_id, "problem": p.problem, "solution": p.solution} for p in mixed[start:stop]
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TinyHome:
    """A home; ``ran`` holds (asset, partition) of the last build, also of one that failed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: set[tuple[str, str | None]] = set()

    @classmethod
    def make(cls, root: Path, corpus: Path, **settings: Any) -> "TinyHome":
        """A new home with one retriever."""
        root.mkdir()
        (root / "retrievers.yaml").write_text("retrievers: [{slug: bm25, retriever: bm25}]\n")
        home = cls(root)
        home.change(**{**SETTINGS, **settings})
        home.use(corpus)
        return home

    def copy(self, root: Path) -> "TinyHome":
        """The same home elsewhere; its corpus file stays where it is."""
        shutil.copytree(self.root, root)
        return TinyHome(root)

    def use(self, *corpus: Path) -> None:
        """Build from these files from now on."""
        self.change(corpus={"files": [{"path": str(path), "source": "tiny"} for path in corpus]})

    def change(self, **settings: Any) -> None:
        """Change ``saber.yaml`` as a person would; keys of sections that are not named stay."""
        path = self.root / "saber.yaml"
        values = yaml.safe_load(path.read_text()) if path.exists() else {}
        for name, value in settings.items():
            old = values.get(name)
            values[name] = {**old, **value} if isinstance(old, dict) else value
        path.write_text(yaml.safe_dump(values))

    def judge(self, slug: str, **options: Any) -> None:
        """Let the clumsy engine judge."""
        entry = {"slug": slug, "engine": "python:clumsy:ClumsyEngine", "options": options}
        (self.root / "judges.yaml").write_text(yaml.safe_dump({"judges": [entry]}))

    def build(self, *assets: str, **options: Any) -> set[tuple[str, str | None]]:
        """Bring the assets (default: all) up to date; returns what ran."""
        self.ran = set()

        def watch(event: Any) -> None:
            if event.kind == "run":
                self.ran |= {(asset, event.partition) for asset in event.assets}

        if assets:
            options["until"] = lambda node: node.name in assets
        home = Home(self.root)
        materialize.build(home, load(home), watch, **options)
        return self.ran

    def launch(self, asset: str, partition: str | None = None) -> str:
        """Materialize one asset through Dagster alone; returns why it failed, or nothing."""
        job = load(Home(self.root)).resolve_implicit_global_asset_job_def()
        key = dg.AssetKey(asset.split("/"))
        return _why(
            job.execute_in_process(
                instance=self.instance,
                asset_selection=[key],
                partition_key=partition,
                raise_on_error=False,
            )
        )

    def job(self, name: str) -> str:
        """Run a named job; returns why it failed, or nothing."""
        job = load(Home(self.root)).resolve_job_def(name)
        return _why(job.execute_in_process(instance=self.instance, raise_on_error=False))

    def saber(self, *args: str) -> Result:
        """Run a command of ``saber``."""
        return CliRunner().invoke(app, args, env={"SABER_HOME": str(self.root)})

    @property
    def instance(self) -> dg.DagsterInstance:
        """What Dagster knows of the home."""
        return dg.DagsterInstance.from_config(str(self.root / "dagster"))

    def forget(self, *assets: str) -> None:
        """Take what Dagster knows of the assets from it; their tables stay."""
        self.instance.wipe_assets([dg.AssetKey(asset.split("/")) for asset in assets])

    def status(self) -> dict[str, dict[str, Any]]:
        """``saber status`` by asset."""
        result = self.saber("status", "--json")
        assert result.exit_code == 0, result.output
        return {row["asset"]: row for row in json.loads(result.stdout)}

    def versions(self, *assets: str) -> dict[str, str]:
        """The data versions of some assets."""
        rows = self.status()
        return {asset: rows[asset]["data_version"] for asset in assets}

    def table(self, asset: str, partitions: Sequence[str | None] = (None,)) -> pl.DataFrame:
        """The rows of some partitions of an asset."""
        store, key = TableStore(self.root / "tables"), asset.split("/")
        frames = []
        for partition in partitions:
            provenance = store.provenance(key, partition)
            assert provenance is not None, f"{asset} {partition}"
            frames.append(store.read(provenance.table, key, partition))
        return pl.concat(frames)

    def tamper(
        self,
        asset: str,
        change: Callable[[pl.DataFrame], pl.DataFrame],
        partition: str | None = None,
    ) -> None:
        """Change a table behind everybody's back: it says that it is what it was."""
        store, key = TableStore(self.root / "tables"), asset.split("/")
        provenance = store.provenance(key, partition)
        assert provenance is not None
        store.write(
            TABLES[provenance.table], change(self.table(asset, [partition])), provenance, key
        )

    def replies(self) -> int:
        """How many calls have been paid."""
        return Ledger(self.root / "ledger").frame().height

    def files(self) -> dict[str, bytes]:
        """Settings, tables and releases."""
        folders = [self.root / "tables", self.root / "releases"]
        paths = [self.root / "saber.yaml", *(p for folder in folders for p in folder.rglob("*"))]
        return {str(path): path.read_bytes() for path in paths if path.is_file()}


def _why(result: dg.ExecuteInProcessResult) -> str:
    said = []
    for event in result.get_step_failure_events():
        error = event.step_failure_data.error
        while error is not None:
            said.append(str(error.message).strip())
            error = error.cause
    assert result.success == (not said)
    return "\n".join(said)
