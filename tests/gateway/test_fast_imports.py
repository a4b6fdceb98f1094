"""A start loads what it needs, and looks for no garbage among it."""

import gc
import subprocess
import sys

from ropeway.gateway.fast_imports import quickly

FOR_FEW = ("aiohttp", "greenlet", "grpc", "lark", "rich")
"""Libraries for the page, for Pulsar, for one kind of filters, for a terminal; and one
that the tests have."""


def test_a_node_without_a_page_and_filters_loads_no_library_for_them():
    program = (
        "import ropeway.gateway.worker_process, sys\n"
        f"print([name for name in {FOR_FEW} if name in sys.modules])\n"
        "import rich.text, greenlet\n"
        "print(rich.text.Text('there'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\nthere\n"


def test_nothing_is_garbage_while_it_is_imported_and_all_is_as_before_behind_it():
    assert gc.isenabled()
    with quickly():
        assert not gc.isenabled()
        with quickly():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_process_of_ours_looks_for_no_garbage_as_it_ends():
    program = (
        "import os\n"
        "{}\n"
        "class Found:\n"
        "    def __del__(self): os.write(1, b'found')\n"
        "one = Found()\n"
        "one.itself = one\n"
        "del one"
    )

    def said(first: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", program.format(first)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert said("pass") == "found"
    assert said("import ropeway.gateway.fast_imports") == ""
