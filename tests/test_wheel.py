"""What users install: the wheel is whole, and works without the tools of developers."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging import copy_tree, installed
from tests.test_laws import PACKAGES, ROOT, files, sources

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path | None = None) -> str:
    """What a command prints; where it fails, that is the message."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
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
    wanted = (name for name in files() if name.split("/")[0] in {*PACKAGES, *BESIDE})
    copy_tree(wanted, folder / "source")
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
    assert {installed(name) for name in (*sources(), *typed)} - packed == set()
    tops = {name.split("/")[0] for name in packed}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"ropeway"}


def test_the_wheel_works_alone_and_all_it_needs_comes_as_wheels(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    # This Python's pip: another one, and all that is never imported, cost half of it.
    pip = [sys.executable, "-m", "pip", "--python", python]
    install = ["install", "--quiet", "--no-compile", "--only-binary", ":all:"]
    run(*pip, *install, wheel)
    listed = run(*pip, "list", "--format", "freeze")
    assert "pytest" not in listed
    help_text = run(tmp_path / "env" / "bin" / "ropeway", "--help")
    assert "serve" in help_text
    run(python, "-c", "import ropeway.client")
    # The folders of the project that it is installed for are the project's own.
    project = tmp_path / "project"
    for name in ("acl", "gateway", "routing", "storage", "tests"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("raise AssertionError(__name__)")
    shown = run(python, "-m", "ropeway.gateway.cli.main", "demo", cwd=project)
    assert "received: 'hello from Ropeway'" in shown
    asked = (
        "import ropeway.testing as t\nwith t.running_gateway() as g: print(g.address)"
    )
    assert "127.0.0.1:" in run(python, "-c", asked, cwd=project)
