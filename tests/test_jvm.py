"""JVMs of tests share the classes that one of their kind has left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import builds, jvm
from tests.system.process import ForeignProcess

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PROGRAM = """
public class Waits {
    public static void main(String[] arguments) throws Exception {
        System.out.println("waits");
        if (arguments.length > 0) Thread.sleep(600_000);
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
    return [one.name for one in (tmp_path / "cache" / "classes").glob("*.jsa*")]


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


def test_one_at_a_time_is_to_leave_an_archive(program: list[str]) -> None:
    def leaves(command: list[str]) -> bool:
        return any(one.startswith(jvm.LEAVES) for one in command)

    first, _ = run(program)
    assert leaves(first)
    for archive in (Path(builds.cache()) / "classes").glob("*.jsa"):
        archive.unlink()
    again = jvm.command(program, shares=True)
    assert leaves(again)
    assert not leaves(jvm.command(program, shares=True))
    with subprocess.Popen(again, stdin=subprocess.DEVNULL) as process:
        jvm.wait(process)
    assert any(".jsa" in one for one in jvm.command(program, shares=True))


def test_one_that_another_program_runs_leaves_none(program: list[str]) -> None:
    command = jvm.command(["env", *program], shares=True)
    assert command[:2] == ["env", "java"]
    assert not [one for one in command if ".jsa" in one]


def test_a_server_leaves_its_archive_when_it_is_ready_and_runs_on_with_it(
    program: list[str], tmp_path: Path
) -> None:
    server = ForeignProcess("waits", [*program, "for ever"], tmp_path)
    try:
        server.wait_until(lambda: "waits" in server.tail())
        (archive,) = archives(tmp_path)
        assert archive.endswith(".jsa")
        given = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert f"-XX:SharedArchiveFile={tmp_path}/cache/classes/{archive}" in given
    finally:
        server.kill()


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
