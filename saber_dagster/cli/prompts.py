"""``saber prompts``: what the engines are asked, word for word."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.errors import SaberError
from saber_dagster.json_text import RepeatedKeys, decode

prompts_app = typer.Typer(help="Look at the prompts.", no_args_is_help=True, rich_markup_mode=None)
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A shipped prompt, or the path of a .md file.")
]


@prompts_app.callback()
def _group() -> None:
    """Look at the prompts."""


@prompts_app.command("list")
def list_prompts(as_json: JsonOption = False) -> None:
    """List the shipped prompts, and those that the home's settings name."""
    from saber_dagster.definitions import prompts

    home = current_home()
    own = {judge.prompt for judge in home.judges if judge.prompt}
    named = home.settings.annotator.options.get("prompts")
    own |= set(named.values()) if isinstance(named, dict) else set()
    shipped = prompts.shipped_prompts()
    rows: list[dict[str, Any]] = []
    for name in (*shipped, *sorted(own - set(shipped))):
        prompt = prompts.load_prompt(name)
        rows.append(
            {
                "name": prompt.ref.name,
                "task": prompt.task,
                "version": prompt.version,
                "sha256": prompt.ref.sha256,
                "forms": list(prompt.forms),
                "choices": list(prompt.choices),
                "source": "shipped" if name in shipped else name,
            }
        )
    if as_json:
        print_json(rows)
        return
    table = Table(box=None)
    for heading in ("name", "task", "version", "sha-256", "forms", "source"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        forms = " or ".join(row["choices"] or row["forms"])
        cells = (row["name"], row["task"], row["version"], row["sha256"][:12], forms, row["source"])
        table.add_row(*(escape(str(cell)) for cell in cells))
    console.print(table)


@prompts_app.command("show")
def show(name: NameArgument) -> None:
    """Print the file of a prompt, after checking it."""
    from saber_dagster.definitions import prompts

    typer.echo(prompts.load_prompt(name).text, nl=False)


@prompts_app.command("render")
def render(
    name: NameArgument,
    inputs: Annotated[
        Path | None,
        typer.Option("--input", help="JSON file with the inputs; default: an example of the task."),
    ] = None,
    form: Annotated[str, typer.Option(help="Form of the reply: tagged or json.")] = "tagged",
    attempt: Annotated[int, typer.Option(min=0, help="Render the n-th time of asking again.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Print the messages that a model is sent."""
    from saber_dagster.definitions import prompts

    prompt = prompts.load_prompt(name)
    if form not in prompt.forms:
        raise SaberError(f"--form {form}: prompt {name} has {' and '.join(prompt.forms)}")
    given = prompts.example_inputs(prompt.task) if inputs is None else _read(inputs)
    try:
        values = prompts.prompt_values(prompt.task, given)
    except SaberError as error:
        shape = json.dumps(_shape(prompts.example_inputs(prompt.task)), ensure_ascii=False)
        raise SaberError(f"{inputs}: {error}. It must be like {shape}") from None
    messages = prompt.render(values, "json" if form == "json" else "tagged", attempt)
    if as_json:
        print_json(messages)
        return
    for message in messages:
        console.rule(message["role"], align="left")
        typer.echo(message["content"])


@prompts_app.command("hash")
def hash_prompts() -> None:
    """Print the SHA-256 of each shipped prompt, in the format of ``sha256sum``."""
    from saber_dagster.definitions import prompts

    for name in prompts.shipped_prompts():
        typer.echo(f"{prompts.load_prompt(name).ref.sha256}  {name}.md")


def _shape(example: Any) -> Any:
    """An example without its texts, and with the first entry of each list."""
    if isinstance(example, dict):
        return {name: _shape(value) for name, value in example.items()}
    if isinstance(example, list):
        return [_shape(value) for value in example[:1]]
    return "…" if isinstance(example, str) else example


def _read(path: Path) -> dict[str, Any]:
    try:
        value = decode(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise SaberError(f"{path}: not readable as JSON in UTF-8: {error}") from None
    if isinstance(value, RepeatedKeys):
        raise SaberError(str(value.fault(str(path), 0, "")))
    if not isinstance(value, dict):
        raise SaberError(
            f'{path}: holds no object with the inputs of a task, such as {{"text": …}}'
        )
    return value
