"""Every command has help that ends in an example, and a place in the documentation."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ropeway.gateway import __version__
from ropeway.gateway.cli.cluster_settings import SETTINGS
from ropeway.gateway.cli.main import COMMANDS, main

GUIDE = Path(__file__).parents[3] / "docs" / "cli.md"


def commands(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, groups of commands among them, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands())
PATHS = [" ".join(path) for path in ALL]


@pytest.mark.parametrize("path", ["", *PATHS])
def test_help_ends_in_an_example_of_the_command(path):
    shown = CliRunner().invoke(main, [*path.split(), "--help"])
    assert shown.exit_code == 0
    _, example = shown.stdout.rsplit("Example:\n", 1)
    lines = example.rstrip().splitlines()
    assert lines
    assert all(line.strip().startswith(f"$ ropeway {path}".strip()) for line in lines)


COMMON = {
    *("--output", "--json", "--no-tls", "--yes", "--dry-run"),
    *(flag.split("/")[0] for setting in SETTINGS for flag in setting.flags),
}
"""What the guide explains once, for all commands."""


def test_the_guide_has_what_commands_have_in_common():
    beginning = GUIDE.read_text().split("\n## ", 1)[0]
    assert all(f"`{name}" in beginning for name in COMMON - {"--no-tls"})
    assert all(
        f"`{one.environment}`" in beginning for one in SETTINGS if one.environment
    )


@pytest.mark.parametrize("path", PATHS)
def test_the_guide_has_every_command_with_all_its_options(path):
    command = ALL[tuple(path.split())]
    text = GUIDE.read_text()
    assert any(f"\n{level} ropeway {path}\n" in text for level in ("##", "###", "####"))
    section = text.split(f"# ropeway {path}\n", 1)[1].split("\n#", 1)[0]
    for parameter in command.params:
        for name in set(parameter.opts) - COMMON:
            shown = f"`{name}" if name.startswith("-") else f"{name.upper()}"
            assert shown in section, f"{path}: {name}"


@pytest.mark.parametrize("path", PATHS)
def test_every_example_is_a_command_line_that_parses(path):
    epilog = ALL[tuple(path.split())].epilog
    assert epilog is not None
    for line in epilog.splitlines():
        if "$ ropeway" not in line:
            continue
        words = _words(line.split("$ ropeway ", 1)[1])
        found: click.Command = main
        while isinstance(found, click.Group):
            command = found.get_command(click.Context(found), words.pop(0))
            assert command is not None
            found = command
        found.make_context("ropeway", words, resilient_parsing=False)


def _words(line: str) -> list[str]:
    import shlex

    alone = re.split(r" < | >> | > \S+$", line, maxsplit=1)[0]
    return shlex.split(alone.replace("./data", "."))


LOADED = {
    "packages": "click msgspec typing_extensions",
    "ropeway": "client common gateway routing storage",
    "ropeway.client": "admin admin_groups admin_requests admin_topics admin_trims base "
    "compacted config connection connections credentials decompression diagnosis "
    "errors ids instance lags message pull_request queue_bounds received routes "
    "send_request subscription table tasks tls topic_configs",
    "ropeway.common": "native reasons versions",
    "ropeway.gateway": "cli config errors fast_imports node pulsar_config "
    "request_limits topics_config wire",
    "ropeway.gateway.cli": "clients cluster_options cluster_settings completion "
    "consent context_file entry examples failures main names output rows stdin tables "
    "target times topic topic_views trims",
    "ropeway.gateway.node": "names",
    "ropeway.routing": "api",
    "ropeway.storage": "api",
}
"""What `ropeway topic list` loads, but for Python's own modules and the wire format."""

SERVING = {"demo", "log", "serve", "tier"}
"""Commands that work on files of a node, or are one."""


def _loaded(*lines: str) -> dict[str, set[str]]:
    """What a program of these lines has loaded at its end, by package."""
    code = "; ".join(["import sys", *lines, "print(' '.join(sys.modules))"])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    found: dict[str, set[str]] = {}
    for name in done.stdout.splitlines()[-1].split():
        package, _, module = name.rpartition(".")
        if package.startswith("ropeway"):
            found.setdefault(package, set()).add(module)
        elif not package and name not in sys.stdlib_module_names:
            found.setdefault("packages", set()).add(name)
    # They find packages that are installed for development.
    found["packages"] -= {"__main__", "_distutils_hack", "ropeway"}
    found["packages"] -= {one for one in found["packages"] if "editable" in one}
    return found


def test_a_client_command_loads_these_modules_and_no_others(ropeway_gateway):
    loaded = _loaded(
        "from ropeway.gateway.cli import entry",
        f"sys.argv = 'ropeway topic list -n {ropeway_gateway.name_server}'.split()",
        "sys.exit = lambda code: print()",
        "entry.main()",
    )
    for package in [name for name in loaded if name.startswith("ropeway.gateway.wire")]:
        del loaded[package]
    rows = loaded.pop("ropeway.gateway.cli.rows")
    assert rows == {"messages", "topics"}
    assert loaded == {name: set(text.split()) for name, text in LOADED.items()}


def test_all_client_commands_together_load_no_part_of_a_node():
    names = sorted(COMMANDS.keys() - SERVING)
    loaded = _loaded(
        "from ropeway.gateway.cli.main import main",
        f"[main.get_command(None, name) for name in {names}]",
    )
    beside = ("ropeway.client", "ropeway.gateway.cli", "ropeway.gateway.wire")
    found = {
        package: modules
        for package, modules in loaded.items()
        if not package.startswith(beside)
    }
    assert found.pop("ropeway.gateway.http") == {"metrics"}
    assert found.pop("ropeway.gateway.http.metrics") == {"catalog", "text"}
    found["ropeway.gateway"] -= {"http", "extras"}
    found["ropeway.common"] -= {"throttle"}
    assert found == {
        name: set(text.split())
        for name, text in LOADED.items()
        if not name.startswith(beside)
    }


def test_the_help_of_all_commands_is_theirs():
    for name, help_text in COMMANDS.items():
        assert ALL[name,].get_short_help_str(200) == help_text


def test_the_help_and_the_version_load_neither_client_nor_gateway():
    code = (
        "import sys; from ropeway.gateway.cli.main import main\n"
        "try: main([sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith("
        "('ropeway.', 'gateway.', 'storage', 'msgspec', 'asyncio', 'structlog'))])"
    )
    for flag in ("--help", "--version"):
        done = subprocess.run(
            [sys.executable, "-c", code, flag],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == (
            "['ropeway.gateway', 'ropeway.gateway.cli', "
            "'ropeway.gateway.cli.cluster_settings', "
            "'ropeway.gateway.cli.cluster_options', "
            "'ropeway.gateway.cli.examples', 'ropeway.gateway.fast_imports', "
            "'ropeway.gateway.cli.main']"
        )


def test_the_version_is_printed():
    shown = CliRunner().invoke(main, ["--version"])
    assert shown.stdout == f"ropeway, version {__version__}\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [("tpoic list", "topic"), ("topics list", "topic"), ("sreve", "serve")],
)
def test_a_command_that_is_misspelt_is_told_the_nearest_name(words: str, meant: str):
    shown = CliRunner().invoke(main, words.split())
    assert shown.exit_code == 2
    assert f"'{meant}'" in shown.output.split("Did you mean")[1]
