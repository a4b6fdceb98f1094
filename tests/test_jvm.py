"""JVMs of tests share the classes that one of their kind has left."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests import builds, jvm

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PROGRAM = """
public class Waits {
    public static void main(String[] arguments) throws Exception {
        System.in.read();
    }
}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("ROPEWAY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "Waits.java").write_text(PROGRAM)
    return ["java", "-Xmx64m", "-cp", str(builds.java_classes(tmp_path, "")), "Waits"]


def run(program: list[str], *, kill: bool = False) -> tuple[list[str], str]:
    """Its command line, and what it says of where its class comes from."""
    command = jvm.command(program, shares=True)
    command.insert(1, "-Xlog:class+load")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        line = ""
        while " Waits " not in line:
            line = process.stdout.readline()
            assert line, "it has ended"
        if kill:
            process.kill()
        process.stdin.close()
        jvm.wait(process)
    return command, line


def archives(tmp_path: Path) -> list[str]:
    return [one.name for one in (tmp_path / "cache" / "classes").iterdir()]


def test_the_second_maps_what_the_first_has_left(
    program: list[str], tmp_path: Path
) -> None:
    first, source = run(program)
    assert "shared objects file" not in source
    (archive,) = archives(tmp_path)
    assert any(one.startswith(jvm.LEAVES) for one in first)
    second, source = run(program)
    assert f"-XX:SharedArchiveFile={tmp_path}/cache/classes/{archive}" in second
    assert "shared objects file (top)" in source
    assert archives(tmp_path) == [archive]


def test_one_that_is_killed_leaves_nothing(program: list[str], tmp_path: Path) -> None:
    run(program, kill=True)
    assert archives(tmp_path) == []


def test_a_part_of_a_standalone_pulsar_maps_what_that_has_left_and_leaves_nothing(
    program: list[str], tmp_path: Path
) -> None:
    def options_of(main: str) -> list[str]:
        return jvm.command([*program[:-1], main, "--config", main], shares=True)

    assert not [one for one in options_of(jvm.PARTS[0]) if ".jsa" in one]
    (leaves,) = [one for one in options_of(jvm.STANDALONE) if ".jsa" in one]
    left = tmp_path / "cache" / "classes" / leaves.rpartition("/")[2].partition(".")[0]
    left.with_suffix(".jsa").touch()
    for main in (jvm.STANDALONE, *jvm.PARTS):
        assert f"-XX:SharedArchiveFile={left}.jsa" in options_of(main)


def test_other_classes_are_another_kind(program: list[str], tmp_path: Path) -> None:
    run(program)
    (tmp_path / "Waits.java").write_text(PROGRAM.replace("read();", "read(); int x;"))
    program[program.index("-cp") + 1] = str(builds.java_classes(tmp_path, ""))
    _, source = run(program)
    assert "shared objects file" not in source
    assert len(archives(tmp_path)) == 2
