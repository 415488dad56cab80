"""The graph as users see it. A renamed key or another cut loses a user's history: think twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from saber_dagster.definitions import load
from saber_dagster.home import Home
from saber_dagster.materialize import graph_of

SNAPSHOT = Path(__file__).parent / "graph.json"

pytestmark = pytest.mark.definitions


@pytest.fixture(scope="module")
def definitions(tmp_path_factory):
    return load(Home(tmp_path_factory.mktemp("home")))


def test_keys_dependencies_and_partitions_are_those_of_the_snapshot(definitions):
    graph = {
        node.name: {
            "table": node.table,
            "group": node.group,
            "partitions": list(node.partitions),
            "parents": ["/".join(parent) for parent in node.parents],
        }
        for node in graph_of(definitions).values()
    }
    assert graph == json.loads(SNAPSHOT.read_text()), (
        "The graph changed. If that is meant, write it to tests/definitions/graph.json and tell users"
        " in CHANGELOG.md what becomes of their history."
    )


def test_every_asset_says_what_it_is(definitions):
    for key in definitions.resolve_asset_graph().get_all_asset_keys():
        asset = definitions.resolve_asset_graph().get(key)
        assert asset.description, key
        assert "parquet" in asset.kinds, key
        assert asset.group_name != "default", key
        assert asset.code_version, key
        schema = asset.metadata["dagster/column_schema"]
        assert schema.columns, key
        assert all(column.description for column in schema.columns), key


def test_what_costs_or_is_published_never_starts_by_itself(definitions):
    graph = definitions.resolve_asset_graph()
    paid = {
        key.to_user_string() for key in graph.get_all_asset_keys() if "llm" in graph.get(key).kinds
    }
    assert paid == {"topic_tags", "summaries", "judge/embedded/tournament_rounds"}
    for key in graph.get_all_asset_keys():
        asset = graph.get(key)
        assert bool(asset.pools) == (key.to_user_string() in paid)
        by_hand = paid | {"release", "leaderboard"}
        assert (asset.automation_condition is None) == (key.to_user_string() in by_hand)


def test_jobs_have_names(definitions):
    assert {job.name for job in definitions.resolve_all_job_defs()} >= {
        "build",
        "rejudge",
        "evaluate",
    }


def test_a_judge_and_a_retriever_add_their_lanes_and_change_nothing_else(tmp_path):
    before = graph_of(load(Home(tmp_path)))
    (tmp_path / "judges.yaml").write_text(
        "judges: [{slug: embedded}, {slug: second, engine: embedded}]\n"
    )
    (tmp_path / "retrievers.yaml").write_text(
        "retrievers: [{slug: bm25, retriever: bm25},"
        " {slug: bm25-b0, retriever: bm25, options: {b: 0.0}}]\n"
    )
    after = graph_of(load(Home(tmp_path)))
    added = {node.name for key, node in after.items() if key not in before}
    assert added == {
        "judge/second/tournament_rounds",
        "judge/second/rating_prior",
        "judge/second/judge_card",
        "judge/second/ratings",
        "judge/second/benchmark",
        "retriever/bm25-b0/run",
    }
    boards = {"query_metrics", "leaderboard"}
    changed = {
        node.name
        for key, node in after.items()
        if key in before and before[key].code_version != node.code_version
    }
    assert changed <= boards


def test_partitions_stay_below_the_limits(tmp_path):
    (tmp_path / "saber.yaml").write_text("preset: paper\n")
    graph = graph_of(load(Home(tmp_path)))
    for node in graph.values():
        assert len(node.partitions) < 2000
        for parent in node.parents:
            if graph[parent].partitions != node.partitions:
                assert len(graph[parent].partitions) < 100, "Dagster stops propagating staleness"


def test_importing_the_definitions_costs_at_most_four_seconds_above_dagster(tmp_path):
    code = (
        "import time; import dagster; start = time.process_time()\n"
        "from saber_dagster.definitions import load\n"
        "from saber_dagster.home import Home\n"
        "from pathlib import Path\n"
        f"load(Home(Path({str(tmp_path)!r})))\n"
        "import sys\n"
        "heavy = [m for m in ('torch', 'vllm', 'sentence_transformers') if m in sys.modules]\n"
        "print(time.process_time() - start, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, heavy = done.stdout.split(maxsplit=1)
    assert float(seconds) <= 4.0
    assert heavy.strip() == "[]"


def test_the_workspace_file_loads_from_a_clone(tmp_path):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "SABER_HOME": str(tmp_path), "DAGSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_saber_dagster_imports_the_outer_packages_in_definitions_only():
    import ast

    root = Path(__file__).parents[2] / "saber_dagster"
    outer = {"assets", "resources", "prompts"}
    dagster_allowed = {
        "definitions.py",
        "partitions.py",
        "automation.py",
        "materialize.py",
        "build_runs.py",
        "dry_run.py",
        "recorded_runs.py",
        "jobs.py",
        "instance.py",
        "schedules.py",
    }
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module.split(".")[0]]
            if path.name != "definitions.py":
                assert not outer & set(names), path
            if path.name not in dagster_allowed:
                assert "dagster" not in names, path
