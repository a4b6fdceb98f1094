"""What users install: the wheel is whole, and works without the tools of developers."""

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.test_laws import PACKAGES, ROOT, files, sources

pytestmark = pytest.mark.slow


def run(*command: object) -> str:
    """What a command prints; where it fails, that is the message."""
    done = subprocess.run(
        list(map(str, command)),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


BESIDE = ["pyproject.toml", "LICENSE", "NOTICE", "README.md"]
"""What a wheel is made of besides packages."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that the tree stays clean."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in files():
        if name.split("/")[0] in {*PACKAGES, *BESIDE}:
            target = folder / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(*pip, "--wheel-dir", folder, folder / "source")
    return next(folder.glob("*.whl"))


def test_the_wheel_has_every_source_file_and_says_that_it_is_typed(wheel: Path) -> None:
    typed = [
        f"{name}/py.typed"
        for name in PACKAGES
        if (ROOT / name / "__init__.py").exists()
    ]
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {*sources(), *typed} - packed == set()
    assert not [name for name in packed if name.startswith("tests/")]


def test_the_wheel_works_alone_and_all_it_needs_comes_as_wheels(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel)
    installed = run(python, "-m", "pip", "list", "--format", "freeze")
    assert "pytest" not in installed
    help_text = run(tmp_path / "bin" / "ropeway", "--help")
    assert "serve" in help_text
    run(python, "-c", "import ropeway.client")
