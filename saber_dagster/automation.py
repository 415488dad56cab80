"""When Dagster materializes an asset by itself.

Assets that cost only CPU follow their inputs and their own code: plain ``eager()`` would fire on a
rematerialization that changed no data, and would ignore a new code version. Assets that call an engine
never start by themselves; people, schedules and backfills start them.
"""

from typing import Any

import dagster as dg


def follow_inputs() -> dg.AutomationCondition[Any]:
    """For CPU assets: materialize when the data of an input or the asset's own code changed."""
    changed: dg.AutomationCondition[Any] = dg.AutomationCondition.code_version_changed()
    data_aware = dg.AutomationCondition.eager().replace(
        "newly_updated", dg.AutomationCondition.data_version_changed()
    )
    code = (
        changed.since_last_handled()
        & ~dg.AutomationCondition.in_progress()
        & ~dg.AutomationCondition.any_deps_missing()
    )
    return data_aware | code
