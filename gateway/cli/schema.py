"""`ropeway schema`: what commands print as JSON, as a JSON Schema or for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from ropeway.gateway.cli.cluster_options import Printed, printed
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.rows.meanings import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/"


@click.command(
    epilog=example("ropeway schema topic list", "ropeway schema --format markdown")
)
@click.argument("command", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="A JSON Schema, or all of it as a page for people.",
)
def schema(command: tuple[str, ...], form: str) -> None:
    """Print the JSON Schema of what a command prints with --output json.

    Without COMMAND, print a document with those of all commands.
    """
    found = shapes()
    name = " ".join(command)
    if form == "markdown":
        if name:
            raise MisusedError("--format markdown is for all commands at once")
        click.echo(page(found), nl=False)
        return
    if name and name not in found:
        raise MisusedError(f"{name!r} prints no JSON; allowed: {', '.join(found)}")
    whole = document({name: found[name]} if name else found)
    if name:
        whole = {"$schema": _DRAFT, **whole["commands"][name], "$defs": whole["$defs"]}
        del whole["is_lines"]
    click.echo(msgspec.json.format(msgspec.json.encode(whole)).decode())


def shapes() -> dict[str, Printed]:
    """What each command prints, by its words."""
    from ropeway.gateway.cli.main import main  # noqa: PLC0415 - it imports this

    return dict(sorted(_shapes(main, click.Context(main))))


def _shapes(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, Printed]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for rest, shape in _shapes(command, context):
                yield f"{name} {rest}", shape
        elif (shape_of_one := printed(command)) is not None:
            yield name, shape_of_one


def document(found: Mapping[str, Printed]) -> dict[str, Any]:
    """The schemas of commands, and of the objects that they share."""
    types = {kind for shape in found.values() for kind in shape.types}
    schemas, objects = msgspec.json.schema_components(
        types, ref_template=_REFERENCE + "{name}"
    )
    schema_of = dict(zip(types, schemas, strict=True))
    for one in objects.values():
        for name, member in one.get("properties", {}).items():
            member["description"] = MEANINGS[name]
    return {
        "$schema": _DRAFT,
        "commands": {
            name: {
                "is_lines": shape.is_lines,
                "anyOf": [schema_of[kind] for kind in shape.types],
            }
            for name, shape in found.items()
        },
        "$defs": dict(sorted(objects.items())),
    }


_HEAD = """\
# JSON output

With `--output json`, or `--json` for short, a command prints one document on the \
standard output, or a document on each line. `ropeway schema` prints this page as a \
[JSON Schema](https://json-schema.org), `ropeway schema COMMAND` that of one command. \
Members may be added; those that are here keep their names and types. A member with a \
`?` is not always there. Times are of the machine's time zone, in ISO 8601. A command \
that fails may print nothing; its exit code and the standard error say so.

This page is made by `ropeway schema --format markdown`, from the structs that \
commands print.
"""


def page(found: Mapping[str, Printed]) -> str:
    """All of it in Markdown."""
    whole = document(found)
    lines = [_HEAD, "## Commands", "", "| command | prints |", "|---|---|"]
    for name, schema in whole["commands"].items():
        each = ", on a line each" if schema["is_lines"] else ""
        lines.append(f"| `ropeway {name}` | {_words(schema)}{each} |")
    lines += ["", "## Objects", ""]
    for name, one in whole["$defs"].items():
        lines += [f"### {name}", "", one.get("description", ""), ""]
        lines += ["| member | type | meaning |", "|---|---|---|"]
        for member, its in one["properties"].items():
            mark = "" if member in one["required"] else "?"
            meaning = its["description"].replace("|", "\\|")
            lines.append(f"| `{member}`{mark} | {_words(its)} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


_TYPES = {"boolean": "true or false", "null": "null"}


def _words(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REFERENCE)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_words, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f'"{one}"' for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_words(schema['items'])}"
    if kind == "object":
        return f"object of {_words(schema.get('additionalProperties', {}))}"
    return _TYPES.get(kind, str(kind))
