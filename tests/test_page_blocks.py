"""Every block of code on every page: it parses, and its commands are the command's.

What is more than that is run: tutorials by `test_tutorials.py` and those beside it,
tasks by `test_how_to.py`, what commands print on their page by `test_cli_page.py`,
Python on the client's pages by `test_documentation.py`, the README in containers.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import shlex
import tomllib
from functools import cache
from typing import TYPE_CHECKING

import click
import msgspec
import pytest
import yaml

from ropeway.gateway.cli.cluster_options import printed
from ropeway.gateway.cli.main import main
from ropeway.gateway.config import ConfigError
from ropeway.gateway.config_file import read
from tests.pages import ROOT, Block, blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGES = sorted(
    str(page.relative_to(ROOT))
    for folder in ("", "docs", "docs/*", "deploy/*", "java/*", "benchmarks")
    for page in ROOT.glob(f"{folder}/*.md" if folder else "README.md")
)
PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "python": ast.parse,
    # All of them are settings of nodes.
    "toml": lambda text: read(tomllib.loads(text)),
    "yaml": lambda text: list(yaml.safe_load_all(text)),
}
_PROMPT = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?ropeway (?=[a-z-])")
_HEADER = re.compile(r"[a-z_]+(?:  +[a-z_]+)+")
_SHELL = "<>|&"


def shown(page: str) -> Iterator[tuple[Block, str, list[str]]]:
    """The commands of a page, each with the lines below it."""
    for block in blocks(ROOT / page):
        text = block.text.replace("\\\n", " ")
        found: tuple[str, list[str]] | None = None
        for line in text.splitlines():
            if _PROMPT.match(line):
                if found:
                    yield block, *found
                found = _PROMPT.sub("", line), []
            elif found:
                found[1].append(line)
        if found:
            yield block, *found


@cache
def named(words: tuple[str, ...]) -> tuple[click.Command, int]:
    """The command that words begin with, and how many of them name it."""
    command: click.Command = main
    used = 0
    while isinstance(command, click.Group) and used < len(words):
        inner = command.get_command(click.Context(command), words[used])
        assert inner is not None, words
        command, used = inner, used + 1
    return command, used


def split(line: str) -> list[str]:
    """The words of a line, without what the shell does with it."""
    words = shlex.shlex(line, posix=True, punctuation_chars=_SHELL)
    words.whitespace_split = True
    return list(itertools.takewhile(lambda word: word[0] not in _SHELL, words))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_of_its_language(page: str) -> None:
    for block in blocks(ROOT / page):
        if parse := PARSERS.get(block.language):
            try:
                parse(block.text)
            except (ConfigError, ValueError, SyntaxError, yaml.YAMLError) as error:
                pytest.fail(f"{page}:{block.line}: {error}")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_parses(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Files of examples are not there; all else of an option holds.
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, *_: value)
    monkeypatch.setattr(click.File, "convert", lambda _self, value, *_: value)
    for block, line, _ in shown(page):
        words = split(line)
        command, used = named(tuple(words))
        try:
            command.make_context("ropeway", words[used:])
        except click.exceptions.Exit:
            continue
        except click.ClickException as error:
            pytest.fail(f"{page}:{block.line}: {line}: {error.message}")


def test_what_is_no_command_line_is_found() -> None:
    assert split("consume orders --tag 'a || b' | head -1") == [
        *("consume", "orders", "--tag", "a || b"),
    ]
    command, used = named(("topic", "list"))
    with pytest.raises(click.NoSuchOption):
        command.make_context("ropeway", ["--nosuch"])
    assert used == 2
    assert sum(1 for page in PAGES for _ in shown(page)) > 150


NAMED_IN_TABLES = {"drain": {"what"}}
"""Columns of names that are keys of an object in JSON."""


@pytest.mark.parametrize("page", PAGES)
def test_tables_have_the_columns_that_commands_print(page: str) -> None:
    for block, line, output in shown(page):
        command, _ = named(tuple(split(line)))
        shape = printed(command)
        if shape is None:
            continue
        members = NAMED_IN_TABLES.get(command.name or "", set()) | {
            name
            for kind in shape.types
            for one in msgspec.json.schema_components([kind])[1].values()
            for name in one.get("properties", {})
        }
        for before, header in itertools.pairwise(["", *output]):
            if not before and _HEADER.fullmatch(header.strip()):
                first, *others = header.split()
                # A member and its value, where an object is printed line by line.
                is_fact = first in members and len(others) == 1
                missing = set() if is_fact else {first, *others} - members
                assert not missing, f"{page}:{block.line}: {line}: {missing}"
