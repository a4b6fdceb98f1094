"""What pages show as code: the one reader of their blocks, for tests that run them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"^(?P<fence>```+)(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n"
    r"(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_ID = re.compile(r"\b[0-9A-F]{32}\b")
_VARYING = {
    _ID: "MSG_ID",
    re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00)?"): "TIME",
    re.compile(r"\b(?:127\.0\.0\.1|mq-?\d\.example\.com):\d+"): "ADDRESS",
    re.compile(r"\b\d+(?:\.\d+)? (?=a second|MiB)"): "# ",
    re.compile(r"\b\d+\.\d+\b"): "#",
    re.compile(r"\b\d+ (?=checks)"): "# ",
}
"""Ids, times, addresses, what was measured, and how much there was to check."""


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


def alike(line: str) -> str:
    """A line without what differs from run to run, and with single spaces."""
    for pattern, name in _VARYING.items():
        line = pattern.sub(name, line)
    return " ".join(line.split())


def follow(
    page: Path, run: Callable[[str], str], skipped: Collection[str] = ()
) -> None:
    """Run the commands of a page's `console` blocks, one after the other.

    Each prints the lines below it, perhaps among others, and but for spaces and what
    differs from run to run. `MSG_ID` is the first message id that a command before it
    printed.

    Args:
        page: The page.
        run: Runs a command line; what it prints. It fails where the command does.
        skipped: Headings whose blocks are left out.
    """
    known = "MSG_ID"
    shown = [
        block
        for block in blocks(page, "console")
        if heading(page, block) not in skipped
    ]
    for command, output in steps(*shown):
        said = run(command.replace("MSG_ID", known))
        printed = [alike(line) for line in said.splitlines()]
        for line in output:
            assert alike(line) in printed, (command, line, said)
        if ids := _ID.findall(said):
            known = ids[0]


def heading(page: Path, block: Block) -> str:
    """The heading of the section that a block is in."""
    above = page.read_text().splitlines()[: block.line]
    found = [line.lstrip("# ") for line in above if re.match(r"#+ ", line)]
    return found[-1]
