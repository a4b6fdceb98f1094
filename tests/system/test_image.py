"""Dockerfile and .dockerignore, as BuildKit reads them: what the image is made of."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.packaging import copy_tree, installed
from tests.system.deployment import ROOT, RefusedError, node_of, understood
from tests.system.process import free_ports
from tests.system.ropeway import Ropeway
from tests.test_laws import PACKAGES, files, sources

pytestmark = pytest.mark.go

FILE = ROOT / "Dockerfile"
CHECK_SECONDS = 300


@pytest.fixture(scope="module")
def stages() -> Any:
    """The stages of the build."""
    return understood("dockerfile", FILE)


@pytest.fixture(scope="module")
def image(stages) -> dict[str, dict[str, Any]]:
    """What the image itself is set to, by instruction."""
    return {one["Name"]: one["Fields"] for one in stages[-1]["Instructions"]}


@pytest.fixture(scope="module")
def context() -> list[str]:
    """The files that a build gets."""
    return understood("context", ROOT / ".dockerignore", files())


@pytest.fixture(scope="module")
def project() -> Any:
    """Our own pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def shell_lines(stages) -> str:
    """All that a build runs."""
    return "\n".join(
        " ".join(one["Fields"]["CmdLine"])
        for stage in stages
        for one in stage["Instructions"]
        if one["Name"] == "RUN"
    )


def extension_modules(project) -> set[str]:
    """The compiled modules that a wheel should have."""
    return {one["name"] for one in project["tool"]["setuptools"]["ext-modules"]}


def test_all_stages_stand_on_one_small_base_of_an_exact_version(stages) -> None:
    first, *others = stages
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", first["Base"])
    assert {stage["Base"] for stage in others} == {first["Name"]}


def test_nothing_comes_from_outside_but_packages(stages) -> None:
    names = {one["Name"] for stage in stages for one in stage["Instructions"]}
    assert "ADD" not in names
    assert not re.search(r"curl|wget|://", shell_lines(stages))


def test_the_compiler_and_the_sources_stay_in_their_stage(stages) -> None:
    *_, builder, final = stages
    assert "gcc" in shell_lines([builder])
    assert "gcc" not in shell_lines([final])
    assert "COPY" not in {one["Name"] for one in final["Instructions"]}
    mounts = [
        (mount["Type"], mount["From"], mount["ReadOnly"])
        for one in final["Instructions"]
        for mount in one.get("Mounts", [])
    ]
    assert mounts == [("bind", builder["Name"], True)]


def test_no_cache_of_packages_is_kept(stages) -> None:
    settings = {
        pair["Key"]: pair["Value"]
        for one in stages[0]["Instructions"]
        if one["Name"] == "ENV"
        for pair in one["Fields"]["Env"]
    }
    assert settings["PIP_NO_CACHE_DIR"] == "1"
    assert "apt-get" not in shell_lines(stages[-1:])


def test_it_runs_as_a_user_who_is_not_root_and_has_a_fixed_number(image) -> None:
    user, group = map(int, image["USER"]["User"].split(":"))
    assert user == group
    assert user > 1000


def test_signals_reach_the_process_as_no_shell_stands_before_it(image) -> None:
    assert image["ENTRYPOINT"]["CmdLine"] == ["ropeway"]
    assert not image["ENTRYPOINT"]["PrependShell"]
    assert not image["CMD"]["PrependShell"]


def test_without_arguments_it_keeps_its_data_in_the_volume(image) -> None:
    config = node_of(image["CMD"]["CmdLine"])
    assert [str(config.data)] == image["VOLUME"]["Volumes"]
    (listener,) = config.listeners
    assert [str(listener.port)] == image["EXPOSE"]["Ports"]
    assert listener.advertised_host == "localhost"


def test_its_health_check_tells_a_node_that_answers_from_none(
    image, tmp_path: Path
) -> None:
    kind, program, *arguments = image["HEALTHCHECK"]["Health"]["Test"]
    assert (kind, program) == ("CMD", "ropeway")
    assert arguments[-1] == "127.0.0.1:{}".format(*image["EXPOSE"]["Ports"])

    def exit_code(name_server: str) -> int:
        return subprocess.run(
            [Path(sys.executable).with_name(program), *arguments[:-1], name_server],
            check=False,
            capture_output=True,
            timeout=CHECK_SECONDS,
        ).returncode

    server = Ropeway(tmp_path)
    server.start()
    try:
        assert exit_code(server.name_server) == 0
    finally:
        server.stop()
    # Docker takes any but 0 for unhealthy.
    assert exit_code(f"127.0.0.1:{free_ports(1)[0]}") == 3


def test_the_extras_that_it_installs_are_there(stages, project) -> None:
    (named,) = re.findall(r"ropeway\[([\w,]+)\]", shell_lines(stages))
    assert named == "acl,grpc,pulsar,tier,zookeeper"
    assert set(named.split(",")) <= project["project"]["optional-dependencies"].keys()


def test_it_installs_nothing_but_what_was_pinned_with_its_hash(stages) -> None:
    *_, builder, final = stages
    pinned = "--no-deps --require-hashes --requirement requirements/image.txt"
    assert pinned in shell_lines([builder])
    assert shell_lines([builder]).count("pip wheel") == 2
    assert "--no-index" in shell_lines([final])


def test_it_is_not_built_without_a_compiled_module(stages, project) -> None:
    (imports,) = re.findall(r'python -c "import ([^"]+)"', shell_lines(stages))
    assert set(imports.split(", ")) == extension_modules(project)


def test_a_build_gets_what_a_wheel_is_made_of_and_nothing_else(context) -> None:
    files_beside = {"pyproject.toml", "LICENSE", "NOTICE", "README.md"}
    of_a_wheel = {*PACKAGES, "native", *files_beside}
    assert set(context) == {
        "requirements/image.txt",
        *(name for name in files() if name.split("/")[0] in of_a_wheel),
    }


def test_a_build_gets_nothing_that_was_made_on_this_machine() -> None:
    made = [
        ".git/config",
        ".venv/bin/python",
        "build/lib/gateway/app.py",
        "gateway/__pycache__/app.cpython-311.pyc",
        "gateway/wire/_native.abi3.so",
        "ropeway.egg-info/PKG-INFO",
        "ropeway-data/routes.db",
    ]
    assert understood("context", ROOT / ".dockerignore", made) == []


@pytest.mark.slow
def test_the_wheel_of_what_a_build_gets_is_whole_and_compiled(
    context, project, tmp_path: Path
) -> None:
    copy_tree(context, tmp_path / "build")
    done = subprocess.run(
        [
            *[sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"],
            *["--wheel-dir", tmp_path / "wheels", "."],
        ],
        cwd=tmp_path / "build",
        env={**os.environ, "CFLAGS": "-O0"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").iterdir()
    packed = set(zipfile.ZipFile(wheel).namelist())
    compiled = {
        name.replace(".", os.sep) + ".abi3.so" for name in extension_modules(project)
    }
    assert {*map(installed, sources()), *compiled} - packed == set()


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("--retries=3", "--tries=3", "unknown flag: tries"),
        ("ENTRYPOINT", "ENTRYPIONT", "ENTRYPIONT"),
        ("type=bind", "type=bound", "unsupported mount type"),
        ("COPY . .", "COPY .", "COPY requires at least two arguments"),
    ],
)
def test_a_mistake_in_it_is_found(
    tmp_path: Path, right: str, wrong: str, complaint: str
) -> None:
    text = FILE.read_text()
    assert right in text
    broken = tmp_path / "Dockerfile"
    broken.write_text(text.replace(right, wrong))
    with pytest.raises(RefusedError, match=complaint):
        understood("dockerfile", broken)
