"""`ropeway context`."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.main import main
from tests.gateway.cli.printed import valid


def ropeway(*args: str, stdin: str = "", code: int = 0) -> Result:
    done = CliRunner().invoke(main, args, input=stdin)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_the_first_one_is_used_and_another_one_when_that_is_said():
    assert "use it from now on" in ropeway("context", "add", "a", "-n", "mq-a").stdout
    assert (
        "ropeway context use b" in ropeway("-n", "mq-b", "context", "add", "b").stdout
    )
    assert ropeway("context", "list").stdout.splitlines() == [
        "current  name  name_server  access  tls",
        "*        a     mq-a:9876            False",
        "         b     mq-b:9876            False",
    ]
    ropeway("context", "use", "b")
    printed = ropeway("context", "list", "--json").stdout
    valid(["context", "list"], printed)
    listed = json.loads(printed)
    assert [one["current"] for one in listed] == [False, True]
    ropeway("context", "delete", "b", "--yes")
    assert context_file.load().current is None


def test_secrets_come_by_stdin_or_from_files_and_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("hush-file\n")
    keys = ("--access-key", "ops", "--secret-key-file")
    ropeway("context", "add", "a", *keys, "-", stdin="hush-hush\nmore\n")
    ropeway("context", "add", "b", *keys, "secret", "--tls-ca", "ca.pem")
    saved = context_file.load().contexts
    assert saved["a"].secret_key == "hush-hush"
    assert saved["b"].secret_key_file == str(tmp_path / "secret")
    assert saved["b"].tls_ca == str(tmp_path / "ca.pem")
    for name in ("a", "b"):
        shown = ropeway("context", "show", name).output
        assert "hush" not in shown
        assert f"context {name}" in shown
    assert "ops" in ropeway("context", "list").stdout


def test_what_is_used_is_shown_with_where_it_is_from(monkeypatch):
    ropeway("context", "add", "a", "-n", "mq-a", "--site", "http://mq-a:8080")
    monkeypatch.setenv("ROPEWAY_TLS", "1")
    printed = ropeway("-n", "mq-b", "context", "show", "--json").stdout
    valid(["context", "show"], printed)
    shown = json.loads(printed)
    assert {name: (one["value"], one["from"]) for name, one in shown.items()} == {
        "name_server": ("mq-b:9876", "option"),
        "tls": (True, "environment"),
        "site": ("http://mq-a:8080", "context a"),
        "output": ("json", "option"),
    }


def test_a_context_says_what_commands_print():
    ropeway("context", "add", "a", "--default-output", "json")
    assert json.loads(ropeway("context", "list").stdout)[0]["name"] == "a"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("add", "a"), "context 'a' exists"),
        (("add", "b", "--context", "a"), "allowed: NAME alone"),
        (("add", "b", "-n", "x y"), "allowed: HOST"),
        (("use", "b"), "context 'b' does not exist; there are: a"),
        (("add", ""), "context name is ''"),
        (("delete", "b"), "context 'b' does not exist"),
        (("show", "b"), "context 'b' does not exist"),
    ],
)
def test_what_makes_no_sense_is_refused(args, said):
    ropeway("context", "add", "a")
    assert said in ropeway("context", *args, code=2).stderr


def test_one_is_not_deleted_without_a_yes():
    ropeway("context", "add", "a")
    ropeway("context", "delete", "a", stdin="n\n", code=1)
    assert "a" in context_file.load().contexts


def test_names_are_completed():
    ropeway("context", "add", "prod")
    environment = {
        "_ROPEWAY_COMPLETE": "bash_complete",
        "COMP_WORDS": "ropeway context use p",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from ropeway.gateway.cli.main import main; main(prog_name='ropeway')",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "plain,prod\n"
