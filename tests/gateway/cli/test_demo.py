"""`ropeway demo`, as a process: it sets up the log of all that runs beside it."""

import subprocess
import sys


def test_a_message_goes_there_and_back():
    done = subprocess.run(
        [sys.executable, "-m", "ropeway.gateway.cli.main", "demo"],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("gateway: listening on 127.0.0.1:")
    assert lines[1].startswith("sent:     'hello from Ropeway' to topic demo")
    assert lines[2].startswith("received: 'hello from Ropeway'")
    assert lines[3] == "gateway: stopped"
