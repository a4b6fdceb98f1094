"""How images are made beside a run, and what is said where they cannot be."""

import json
from pathlib import Path

import pytest

from tests.system import container_images
from tests.system.container_images import DEBIAN, TRIAL
from tests.system.containers import Containers


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was to be made, on a machine whose podman has nothing and starts nothing."""
    podman = tmp_path / "bin" / "podman"
    podman.parent.mkdir()
    podman.write_text("#!/bin/sh\nexit 1\n")
    podman.chmod(0o755)
    monkeypatch.setenv("PATH", str(podman.parent), prepend=":")
    monkeypatch.setenv("ROPEWAY_CACHE", str(tmp_path / "cache"))
    made: list[str] = []

    def fail(podman: Containers, work: Path) -> None:
        made.append("tried")
        podman.run("sh", "-c", f"touch {work}/left; echo no rights here >&2; exit 1")

    makers = {"other": lambda *_: made.append("other"), TRIAL: fail}
    never = {"behind": lambda *_: made.append("behind")}
    monkeypatch.setattr(container_images, "MAKERS", {**makers, **never})
    return made


def test_a_machine_without_rights_is_tried_once_and_said_to_be_one(
    asked: list[str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes.json"
    for _ in range(2):
        container_images.make_all(notes)
    assert asked == ["other", "tried"]
    without = json.loads(notes.read_text())
    assert without.keys() == {TRIAL, "behind"}
    assert without[TRIAL].endswith("no rights here")
    assert "not made" in without["behind"]
    kept = {one.name for one in (tmp_path / "cache" / "containers").iterdir()}
    assert kept == {"lock"}


def test_what_a_killed_run_left_half_made_goes(
    asked: list[str], tmp_path: Path
) -> None:
    left = tmp_path / "cache" / "containers" / "work-killed" / "system"
    left.mkdir(parents=True)
    container_images.make_all(tmp_path / "notes.json")
    assert not left.parent.exists()
    assert asked[0] == "other"


def test_debian_comes_first_and_is_tried_before_what_is_made_of_it() -> None:
    assert list(container_images.MAKERS)[:2] == [DEBIAN, TRIAL]
