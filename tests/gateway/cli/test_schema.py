"""What commands print as JSON is what the schema says; the guide has all of it."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.gateway.cli.rows.meanings import MEANINGS
from ropeway.gateway.cli.schema import document, page
from tests.gateway.cli.printed import SHAPES, valid
from tests.gateway.cli.secured import ROOT
from tests.gateway.cli.test_secured import REFUSED, WALK, prepared

__all__ = ["prepared"]

DOCS = Path(__file__).parents[3] / "docs"

EMPTY = {
    *("transaction list", "message dlq list", "message dlq replay", "diff"),
    "streams top",
}
"""What has nothing to print there, or is shown elsewhere with something."""


def test_the_guide_is_what_the_command_prints():
    shown = CliRunner().invoke(main, ["schema", "--format", "markdown"])
    assert shown.stdout == page(SHAPES)
    assert (DOCS / "cli-output.md").read_text() == shown.stdout, (
        "run: ropeway schema --format markdown > docs/cli-output.md"
    )


def test_each_member_has_a_meaning_and_none_is_left_over():
    objects = document(SHAPES)["$defs"].values()
    assert {name for one in objects for name in one.get("properties", {})} == set(
        MEANINGS
    )
    assert all(text.endswith(".") for text in MEANINGS.values())
    assert all(one["description"] for one in objects)


DIFFERENT = {
    *("queues", "nodes", "partitions", "groups", "moved", "settings", "before"),
    *("after", "state", "status", "user", "took_ms", "clients"),
    *("topics", "members", "lag", "out_per_s", "brokers", "batch", "batch_ms"),
}
"""Members that are numbers here and the things themselves there, or may be null."""


def test_a_name_has_one_type_in_all_objects():
    types = defaultdict(set)
    for one in document(SHAPES)["$defs"].values():
        for name, member in one["properties"].items():
            bare = {key: member[key] for key in member if key not in _DECORATION}
            types[name].add(json.dumps(bare, sort_keys=True))
    assert {name for name, found in types.items() if len(found) > 1} == DIFFERENT


_DECORATION = {"description", "default"}


def test_names_are_in_snake_case():
    assert all(name == name.lower() and "-" not in name for name in MEANINGS)


def test_the_schema_of_one_command_stands_alone():
    shown = CliRunner().invoke(main, ["schema", "topic", "list"])
    found = json.loads(shown.stdout)
    assert found["anyOf"] == [{"type": "array", "items": {"$ref": "#/$defs/TopicRow"}}]
    assert list(found["$defs"]) == ["TopicRow"]
    assert found["$schema"].startswith("https://json-schema.org/")
    refused = CliRunner().invoke(main, ["schema", "topic", "create"])
    assert refused.exit_code == 2
    assert "'topic create' prints no JSON; allowed: acl check, " in refused.stderr
    assert (
        CliRunner().invoke(main, ["schema", "x", "--format", "markdown"]).exit_code == 2
    )


def test_the_schema_has_all_commands():
    found = json.loads(CliRunner().invoke(main, ["schema"]).stdout)
    assert found["commands"].keys() == SHAPES.keys()
    assert found["commands"]["consume"]["is_lines"]


@pytest.mark.parametrize(
    "command", [one for one in WALK if one in SHAPES and one not in REFUSED]
)
def test_what_a_command_prints_is_what_its_schema_says(prepared, command):
    done = prepared.run(ROOT, "keys", command, "--json")
    assert done.exit_code == 0, done.output
    valid(command.split(), done.stdout)
    assert command in EMPTY or json.loads(done.stdout.splitlines()[0])


def test_a_member_too_many_is_seen():
    with pytest.raises(AssertionError):
        valid(["topic", "list"], '[{"topic":"orders","queue":1}]')
    with pytest.raises(AssertionError):
        valid(["topic", "list"], '[{"topic":1}]')
    with pytest.raises(AssertionError):
        valid(["topic", "list"], "[]\n[]")
