"""Where to look up the calls behind a table: its audit metadata and tags."""

import shlex
from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.stage import Site
from saber_dagster.engines import Engine

_SHOWN_GAMES = 3


def audit_metadata(
    site: Site, context: dg.AssetExecutionContext, engine: Engine, task: str
) -> dict[str, dg.MetadataValue[Any]]:
    """What answered, with which prompt, and where the replies lie.

    Args:
        site: the home.
        context: of the step.
        engine: what was asked.
        task: what it was asked to do.
    """
    prompt = engine.prompt(task)
    ledger = site.home.ledger
    return {
        "model": dg.MetadataValue.text(engine.model),
        "revision": dg.MetadataValue.text(engine.revision),
        "prompt": dg.MetadataValue.text(prompt.name),
        "prompt_sha256": dg.MetadataValue.text(prompt.sha256),
        "prompt_file": dg.MetadataValue.path(str(ledger / "prompts" / f"{prompt.sha256}.md")),
        "ledger": dg.MetadataValue.path(str(ledger)),
        "run": dg.MetadataValue.dagster_run(context.run.run_id),
    }


def audit_tags(engine: Engine, task: str) -> dict[str, str]:
    """The same as tags, by which materializations can be found."""
    prompt = engine.prompt(task)
    return {
        "saber/model": engine.model,
        "saber/revision": engine.revision,
        "saber/prompt": prompt.name,
        "saber/prompt_sha256": prompt.sha256[:12],
    }


def game_metadata(
    judgments: pl.DataFrame, release: pl.DataFrame, judge: str
) -> dict[str, dg.MetadataValue[Any]]:
    """A few games with the keys of their calls, and the command that traces one to its replies."""
    if judgments.is_empty():
        return {}
    names: Mapping[str, str] = dict(release.select("doc_id", "source_id").iter_rows())
    lines = ["| query | a | b | round | outcome | status | call keys |", "|" + " --- |" * 7]
    games = judgments.head(_SHOWN_GAMES).to_dicts()
    for game in games:
        outcome = "" if game["outcome"] is None else f"{game['outcome']:.3g}"
        documents = (_code(names[game[column]]) for column in ("query_id", "doc_a", "doc_b"))
        keys = ", ".join(f"`{key[:16]}`" for key in game["call_keys"])
        cells = (*documents, str(game["round"]), outcome, game["status"], keys)
        lines.append(f"| {' | '.join(cells)} |")
    query, doc = games[0]["query_id"], games[0]["doc_a"]
    return {
        "games": dg.MetadataValue.md("\n".join(lines)),
        "trace": dg.MetadataValue.text(
            f"saber trace --query {shlex.quote(names[query])} --doc {shlex.quote(names[doc])}"
            f" --judge {judge}"
        ),
    }


def _code(text: str) -> str:
    """A user's id in Markdown; a character that would end the cell or the code is shown as ``?``."""
    return f"`{text.translate(str.maketrans('|`', '??'))}`"
