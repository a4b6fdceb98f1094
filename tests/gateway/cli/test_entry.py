"""Where the command begins, and how Ctrl-C ends it."""

import signal
import subprocess
import sys
import threading

import pytest

from ropeway.gateway.fast_imports import killable

_SLOW_IMPORT = """
import os, signal, sys, time
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
sys.meta_path.insert(0, Finder())
sys.argv = ["ropeway", "topic", "list"]
from ropeway.gateway.cli.entry import main
main()
"""


@pytest.mark.parametrize("module", ["click", "msgspec", "ropeway.client"])
def test_ctrl_c_while_it_imports_prints_nothing(module):
    done = subprocess.run(
        [sys.executable, "-c", _SLOW_IMPORT.format(module=module)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGINT
    assert (done.stdout, done.stderr) == (b"", b"")


# Where tests run in the background of a shell, Ctrl-C is not for them, nor for theirs.
_IN_FRONT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from ropeway.gateway.cli.entry import main
main()
"""


def test_ctrl_c_while_it_runs_gives_the_code_of_shells(ropeway_gateway, ropeway_topic):
    command = [sys.executable, "-c", _IN_FRONT]
    arguments = ["produce", ropeway_topic, "-n", ropeway_gateway.address]
    with subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert b"offset=0" in process.stdout.readline()
        # A terminal stays open, too: nothing waits for the end of what is typed.
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()


def test_what_was_set_before_is_set_again():
    before = signal.getsignal(signal.SIGINT)
    with killable():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == before


def test_another_thread_changes_nothing():
    found = []

    def look() -> None:
        with killable():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
