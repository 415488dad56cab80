"""``saber judges check``: one easy question, and everything about its answers."""

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.markup import escape

from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger
from saber_dagster.ledger.budget import dollars, knows_price
from saber_dagster.ledger.counts import amount, duration
from saber_dagster.registry import judge_named
from saber_dagster.releases import release_of
from saber_dagster.settings import Judge

if TYPE_CHECKING:
    from saber_dagster.engines import Engine
    from saber_dagster.judge_check import Check, ReleaseForecast

_SHOWN_CHARS = 1200


def check(
    slug: Annotated[str, typer.Argument(help="The judge's slug in judges.yaml.")],
    again: Annotated[
        bool, typer.Option("--again", help="Pay for new replies; else the ledger's are shown.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a judge one easy question in both orders; exit code 1 if it does not answer rightly."""
    from saber_dagster.definitions import judge_engine
    from saber_dagster.judge_check import check_judge

    home = current_home()
    judge = judge_named(home, slug)
    own = home.settings.ledger
    with redirect_stdout(sys.stderr):
        engine = judge_engine(judge)
        ledger = Ledger(home.ledger, home.journals)
        made = check_judge(judge, engine, ledger, mode=own.mode, reasks=own.reasks, again=again)
        expected = _forecast(home, judge, engine, made)
    if as_json:
        print_json({**asdict(made), "forecast": asdict(expected) if expected else None})
    else:
        _show(judge, engine, made)
        _show_forecast(home, expected)
    if made.problem:
        raise SaberError(made.problem)


def _forecast(
    home: Home, judge: Judge, engine: "Engine", made: "Check"
) -> "ReleaseForecast | None":
    """What the current release would take; None if it is not made, or nothing came back."""
    from saber_dagster.dry_run import most_calls
    from saber_dagster.judge_check import forecast

    release = release_of(home.releases, home.settings)
    if not release.complete or not made.answers:
        return None
    queries = int(release.manifest()["tables"]["query_set"]["rows"])
    calls = most_calls(home.settings, judge, queries)
    used = release.read("candidate_sets").select(pl.col("doc_id").unique())
    texts = release.read("release_texts").join(used, on="doc_id", how="semi")
    return forecast(judge, engine, made, calls, texts)


def _show(judge: Judge, engine: "Engine", made: "Check") -> None:
    for number, answer in enumerate(made.answers):
        console.rule(escape(answer.item))
        for message in answer.messages if number == 0 else ():
            _say(f"[{message['role']}]\n{message['content']}")
        if number == 0:
            console.rule("reply")
        if answer.reasoning:
            _say(f"[reasoning]\n{_cut(answer.reasoning)}")
        _say(_cut(answer.text) or f"(no text; {answer.error})")
        known = answer.price or knows_price(engine)
        money = f"${answer.price:.6f}" if known else "price ?"
        value = "none" if answer.value is None else f"{answer.value:.3g}"
        _say(
            f"{answer.status}; parsed: {value}; {answer.prompt_tokens:,} + {answer.completion_tokens:,}"
            f" tokens, {money}, {answer.seconds:.2f} s; key {answer.key[:12]}"
        )
    console.rule()
    _say(
        f"{judge.slug}: {engine.model} @ {engine.revision}, asked by {judge.ask}; {made.made} call(s)"
        f" made, {len(made.answers) - made.made} from the ledger"
    )
    if made.preferences:
        orders = ("when it is shown first", "second") if len(made.preferences) == 2 else ("",)
        shown = (f"{p:.3f} {o}".strip() for p, o in zip(made.preferences, orders, strict=True))
        _say(f"preference for the document that fits: {', '.join(shown)}")
    if made.note:
        console.print(f"[yellow]note:[/] {escape(made.note)}", highlight=False, soft_wrap=True)
    if not made.problem:
        console.print("[green]right[/]", highlight=False)


def _show_forecast(home: Home, expected: "ReleaseForecast | None") -> None:
    name = home.settings.release
    if expected is None:
        _say(f"no forecast: release {name} is not made yet (`saber build` makes it)")
        return
    money = "unknown, as the engine has no option prices"
    if expected.price is not None:
        money = dollars(expected.price)
    _say(
        f"release {name}: at most {expected.calls:,} calls, about"
        f" {amount(expected.prompt_tokens)} + {amount(expected.completion_tokens)} tokens; price {money};"
        f" {duration(expected.seconds)} at {expected.at_a_time} call(s) at a time. `saber build"
        " --dry-run` also knows what the ledger has"
    )


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _cut(text: str) -> str:
    return (
        text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}… ({len(text):,} characters)"
    )
