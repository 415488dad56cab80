"""CPU assets follow changed data and changed code, and nothing else."""

import dagster as dg
import pytest

from saber_dagster.automation import follow_inputs

pytestmark = pytest.mark.definitions


def definitions(data, code):
    @dg.asset
    def source():
        return dg.Output(None, data_version=dg.DataVersion(data))

    @dg.asset(deps=[source], automation_condition=follow_inputs(), code_version=code)
    def follower():
        return None

    return dg.Definitions([source, follower])


def requested(instance, defs, cursor):
    result = dg.evaluate_automation_conditions(defs, instance, cursor=cursor)
    return result.total_requested, result.cursor


def materialize(instance, defs, *names):
    job = defs.resolve_implicit_global_asset_job_def()
    for name in names:
        job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey(name)])


@pytest.fixture
def settled():
    """Both assets materialized and seen by the daemon."""
    with dg.DagsterInstance.ephemeral() as instance:
        defs = definitions("1", "1")
        materialize(instance, defs, "source", "follower")
        _, cursor = requested(instance, defs, None)
        n, cursor = requested(instance, defs, cursor)
        assert n == 0
        yield instance, cursor


def test_equal_data_starts_nothing(settled):
    instance, cursor = settled
    defs = definitions("1", "1")
    materialize(instance, defs, "source")
    assert requested(instance, defs, cursor)[0] == 0


def test_changed_data_starts_the_follower(settled):
    instance, cursor = settled
    defs = definitions("2", "1")
    materialize(instance, defs, "source")
    assert requested(instance, defs, cursor)[0] == 1


def test_changed_code_starts_the_follower(settled):
    instance, cursor = settled
    assert requested(instance, definitions("1", "2"), cursor)[0] == 1
