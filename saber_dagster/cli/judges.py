"""``saber judges``: who judges, what state each lane is in, and whether a judge is fit."""

import sys
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.markup import escape
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, errors, money, print_json
from saber_dagster.cli.judge_check import check
from saber_dagster.errors import SaberError
from saber_dagster.freshness import CONDITIONS, report
from saber_dagster.home import Home
from saber_dagster.judging import TASK_OF_ASK
from saber_dagster.ledger import Ledger
from saber_dagster.ledger.budget import knows_price
from saber_dagster.registry import parse_options, with_judge, without_judge
from saber_dagster.settings import Ask
from saber_dagster.tables import TableStore

if TYPE_CHECKING:
    from saber_dagster.code_location import Reload

judges_app = typer.Typer(
    help="The judges of the home: list, add, remove and check them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_STAGE = "tournament_rounds"

SlugArgument = Annotated[str, typer.Argument(help="The judge's slug in judges.yaml.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        help="Dagster's web server; default: SABER_WEBSERVER_URL, else that of `saber ui`."
    ),
]


@judges_app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the judges: model, prompt, state of the lane, replies and money of the present version."""
    home = current_home()
    rows = judge_rows(home)
    if as_json:
        print_json(rows)
        return
    table = Table(title=f"{home.root / 'judges.yaml'}", title_justify="left")
    for name in ("slug", "engine", "model", "revision", "ask", "prompt"):
        table.add_column(name, no_wrap=name == "slug", overflow="fold")
    for name in (*CONDITIONS, "replies", "price $"):
        table.add_column(name, justify="right")
    for row in rows:
        names = (row[name] for name in ("slug", "engine", "model", "revision", "ask"))
        prompt = f"{row['prompt']}@{row['prompt_sha256'][:12]}"
        counts = (str(row["partitions"][condition] or "") for condition in CONDITIONS)
        usd = row["price_usd"]
        paid = (f"{row['replies']:,}", "?" if usd is None else money(usd))
        table.add_row(*map(escape, names), escape(prompt), *counts, *paid)
    console.print(table)


@judges_app.command("add")
def add(
    slug: SlugArgument,
    engine: Annotated[str, typer.Option(help="openai, vllm, embedded, python:module:Class, …")],
    model: Annotated[str | None, typer.Option(help="Option model of the engine.")] = None,
    revision: Annotated[str | None, typer.Option(help="Option revision of the engine.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Option base_url of the engine.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.")
    ] = None,
    ask: Annotated[
        str, typer.Option(help=f"How it is asked: {', '.join(get_args(Ask))}.")
    ] = "generate",
    prompt: Annotated[str | None, typer.Option(help="Name of a prompt, or path of a file.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="KEY=YAML: a further option of the engine.")
    ] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a judge to judges.yaml, and show its lane where a server runs. No call is made."""
    from saber_dagster.definitions import lane_of

    home = current_home()
    named = {"model": model, "revision": revision, "base_url": base_url, "api_key_env": api_key_env}
    options = {key: value for key, value in named.items() if value is not None}
    further = parse_options(option or [])
    if twice := sorted(options.keys() & further.keys()):
        raise SaberError(f"--option {twice[0]} is given by its own option, too; keep one")
    entry = {
        "slug": slug,
        "engine": engine,
        **({"ask": ask} if ask != "generate" else {}),
        **({"prompt": prompt} if prompt is not None else {}),
        **({"options": {**options, **further}} if options or further else {}),
    }
    edit = with_judge(home, entry)
    with redirect_stdout(sys.stderr):
        lane_of(edit.judges[-1])
    edit.write()
    reload = _reload(Home(home.root), url)
    if as_json:
        print_json({"file": str(edit.path), "judge": entry, "reload": asdict(reload)})
        return
    _say(f"{slug} is in {edit.path}")
    _tell(reload)
    _say(
        f"next: `saber judges check {slug}` asks it one easy question, `saber build` makes its lane"
    )


@judges_app.command("remove")
def remove(slug: SlugArgument, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Take a judge out of judges.yaml. Its lane is hidden; tables and replies stay."""
    home = current_home()
    edit = without_judge(home, slug)
    edit.write()
    reload = _reload(Home(home.root), url)
    tables = home.tables / "judge" / slug
    if as_json:
        kept = {"tables": str(tables), "ledger": str(home.ledger / _STAGE)}
        print_json({"file": str(edit.path), "removed": slug, **kept, "reload": asdict(reload)})
        return
    _say(f"{slug} is out of {edit.path}; nothing else was deleted")
    _say(f"tables    {tables}\nreplies   {home.ledger / _STAGE}")
    _say("added again with the same entry, its lane is as fresh as it was and costs nothing")
    _tell(reload)


@judges_app.command("reload")
def reload(url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Show the judges as judges.yaml has them now, in the server that runs; for edits by hand."""
    done = _reload(current_home(), url)
    if as_json:
        print_json(asdict(done))
    else:
        _tell(done)
    if not done.done:
        raise typer.Exit(1)


judges_app.command("check")(check)


def judge_rows(home: Home) -> list[dict[str, Any]]:
    """What ``saber judges list`` prints.

    Raises:
        SaberError: if an engine cannot be made.
    """
    from saber_dagster.definitions import judge_engine, load
    from saber_dagster.materialize import absent_assets, graph_of

    with redirect_stdout(sys.stderr):
        graph = graph_of(load(home))
        engines = {judge.slug: judge_engine(judge) for judge in home.judges}
    states = report(TableStore(home.tables), graph, absent_assets(home))
    ledger = Ledger(home.ledger, home.journals)
    paid = ledger.frame(_STAGE, ["model", "revision", "prompt_sha256", "price"])
    rows = []
    for judge in home.judges:
        engine = engines[judge.slug]
        prompt = engine.prompt(TASK_OF_ASK[judge.ask])
        own = paid.filter(model=engine.model, revision=engine.revision, prompt_sha256=prompt.sha256)
        usd = float(own["price"].sum())
        lane = (s.condition for s in states if s.node.key[:2] == ("judge", judge.slug))
        counts = Counter(lane)
        rows.append(
            {
                "slug": judge.slug,
                "engine": judge.engine,
                "model": engine.model,
                "revision": engine.revision,
                "ask": judge.ask,
                "prompt": prompt.name,
                "prompt_sha256": prompt.sha256,
                "partitions": {condition: counts[condition] for condition in CONDITIONS},
                "replies": own.height,
                "price_usd": usd if usd or own.is_empty() or knows_price(engine) else None,
            }
        )
    return rows


def _reload(home: Home, url: str | None) -> "Reload":
    """Have the server load the definitions anew; what goes wrong there does not undo the edit."""
    from saber_dagster.code_location import Reload, reload_judges
    from saber_dagster.definitions import load
    from saber_dagster.materialize import graph_of

    try:
        with redirect_stdout(sys.stderr):
            graph = graph_of(load(home))
    except SaberError as error:
        return Reload(False, f"the definitions do not load: {error}")
    games = {key[1]: node.code_version for key, node in graph.items() if key[2:] == (_STAGE,)}
    return reload_judges(home, games, url)


def _tell(reload: "Reload") -> None:
    if reload.done:
        _say(reload.message)
    else:
        errors.print(f"[yellow]note:[/] {escape(reload.message)}", highlight=False, soft_wrap=True)


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
