"""`ropeway completion`, and what a shell is told."""

import pytest
from click.shell_completion import ShellComplete

from ropeway.gateway.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run, shell):
    assert "_ROPEWAY_COMPLETE" in run("completion", shell).stdout


def names(args: list[str], begun: str) -> list[str]:
    found = ShellComplete(main, {}, "ropeway", "_C").get_completions(args, begun)
    return [one.value for one in found]


def test_names_are_asked_of_the_name_server(
    run, ropeway_gateway, ropeway_topic, monkeypatch
):
    # People do not wait so long for a name; a busy machine's tests do.
    monkeypatch.setattr("ropeway.gateway.cli.completion._TIMEOUT_S", 60.0)
    run("produce", ropeway_topic, "a")
    server = ["--name-server", ropeway_gateway.name_server]
    begun = ropeway_topic[:-1]
    assert names([*server, "topic", "show"], begun) == [ropeway_topic]
    assert names(["topic", "show", *server], begun) == [ropeway_topic]
    assert names([*server, "broker", "show"], "") == ["broker-0"]
    assert names(["-n", "127.0.0.1:1", "broker", "show"], "") == []


def test_no_secret_is_read_while_a_line_is_completed():
    assert names(["broker", "show", "--token-file", "-"], "") == []
