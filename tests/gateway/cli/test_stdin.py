"""The standard input of commands: pipes, files on a disk, and what comes in pieces."""

import asyncio
import io
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.cli import stdin

TEXT = b"one\r\n\ntwo\nthree"


async def read(at_once: int) -> list[list[bytes]]:
    return [found async for found in stdin.parts(at_once)]


def given_as(monkeypatch: pytest.MonkeyPatch, source: object) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=source))


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [
        (1, [[b"one"], [b"two"], [b"three"]]),
        (2, [[b"one", b"two"], [b"three"]]),
        (9, [[b"one", b"two", b"three"]]),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_lines_come_in_lists_without_ends_and_empty_ones(
    monkeypatch, tmp_path: Path, kind: str, at_once: int, expected: list[list[bytes]]
):
    (tmp_path / "lines").write_bytes(TEXT)
    with (tmp_path / "lines").open("rb") as file:
        given_as(monkeypatch, file if kind == "file" else io.BytesIO(TEXT))
        assert asyncio.run(read(at_once)) == expected


@given(st.lists(st.binary(max_size=5)))
def test_lines_are_the_same_wherever_a_pipe_cuts_them(pieces: list[bytes]):
    ours, theirs = os.pipe()

    def write() -> None:
        with os.fdopen(theirs, "wb", buffering=0) as pipe:
            for piece in pieces:
                pipe.write(piece)

    thread = threading.Thread(target=write)
    thread.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(ours, "rb") as source:
        given_as(patch, source)
        found = asyncio.run(read(1))
    thread.join()
    lines = (line.rstrip(b"\r") for line in b"".join(pieces).split(b"\n"))
    assert found == [[line] for line in lines if line]


def test_what_is_behind_a_secrets_line_is_left_for_who_reads_on(monkeypatch):
    ours, theirs = os.pipe()
    os.write(theirs, b"secret\nmessage\n")
    os.close(theirs)
    with os.fdopen(ours, "rb") as source:
        given_as(monkeypatch, source)
        assert stdin.read_line() == b"secret\n"
        assert asyncio.run(read(1)) == [[b"message"]]


@given(st.lists(st.binary(max_size=5)), st.sampled_from([b"\n", b"\0", b"ab"]))
def test_parts_and_all_of_it_are_kept_as_they_are(pieces: list[bytes], end: bytes):
    text = b"".join(pieces)
    *expected, rest = text.split(end)

    async def parts() -> list[bytes]:
        return [part async for found in stdin.parts(2, end) for part in found]

    with pytest.MonkeyPatch.context() as patch:
        given_as(patch, io.BytesIO(text))
        assert asyncio.run(parts()) == expected + [rest] * bool(rest)
        given_as(patch, io.BytesIO(text))
        assert asyncio.run(stdin.everything()) == text
