"""`ropeway demo`."""

from click.testing import CliRunner

from gateway.cli.main import main


def test_a_message_goes_there_and_back():
    shown = CliRunner().invoke(main, ["demo"])
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("gateway: listening on 127.0.0.1:")
    assert lines[1].startswith("sent:     'hello from Ropeway' to topic demo")
    assert lines[2].startswith("received: 'hello from Ropeway'")
    assert lines[3] == "gateway: stopped"
