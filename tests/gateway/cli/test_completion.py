"""`ropeway completion`, and what a shell is told."""

import click
import pytest

from gateway.cli import completion
from gateway.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run, shell):
    assert "_ROPEWAY_COMPLETE" in run("completion", shell).stdout


def test_names_are_asked_of_the_name_server(run, ropeway_gateway, ropeway_topic):
    run("produce", ropeway_topic, "a")
    with click.Context(main) as context:
        context.params["name_server"] = ropeway_gateway.name_server
        parameter = click.Argument(["topic"])
        begun = ropeway_topic[:-1]
        names = completion.topic_names(context, parameter, begun)
        assert names == [ropeway_topic]
        assert completion.broker_names(context, parameter, "") == ["broker-0"]
        context.params["name_server"] = "127.0.0.1:1"
        assert completion.group_names(context, parameter, "") == []
