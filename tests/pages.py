"""What pages show as code: the one reader of their blocks, for tests that run them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"^(?P<fence>```+)(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n"
    r"(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_ID = re.compile(r"\b[0-9A-F]{32}\b")


class Block(NamedTuple):
    """A block of code."""

    language: str
    """Empty where the page does not say."""
    title: str
    """The file that it is, where the page says so."""
    text: str
    line: int
    """Where it begins on its page, from 1."""


class Step(NamedTuple):
    """A command with what it is to print."""

    command: str
    """Without the prompt."""
    output: list[str]


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """A page's blocks, or those in a language, in their order."""
    text = page.read_text()
    return [
        Block(
            found["language"],
            found["title"] or "",
            found["text"],
            text[: found.start()].count("\n") + 1,
        )
        for found in _BLOCK.finditer(text)
        if language is None or found["language"] == language
    ]


def files(page: Path) -> dict[str, str]:
    """The files that a page shows, by their names."""
    return {one.title: one.text for one in blocks(page) if one.title}


def steps(*shown: Block) -> list[Step]:
    """The commands of some blocks, `$` before each, with the lines below it."""
    found: list[Step] = []
    for block in shown:
        for line in block.text.splitlines():
            if line.startswith("$ "):
                found.append(Step(line.removeprefix("$ "), []))
            elif found:
                found[-1].output.append(line)
    return found


def follow(page: Path, run: Callable[[str], str]) -> None:
    """Run the commands of a page's `console` blocks, one after the other.

    Each prints the lines below it, perhaps among others, and spaces apart. `MSG_ID` is
    the first message id that a command before it printed.

    Args:
        page: The page.
        run: Runs a command line; what it prints. It fails where the command does.
    """
    known = "MSG_ID"
    for command, output in steps(*blocks(page, "console")):
        said = run(command.replace("MSG_ID", known))
        printed = [" ".join(line.split()) for line in said.splitlines()]
        for line in output:
            assert " ".join(line.split()) in printed, (command, said)
        if ids := _ID.findall(said):
            known = ids[0]
