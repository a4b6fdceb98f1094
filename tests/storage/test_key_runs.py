"""Runs of keys are what they are of, in Python and compiled, for logs and for tiers."""

from __future__ import annotations

import random
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.file.compiled import in_runs, writing_may_be_compiled
from ropeway.storage.sealed import columns
from ropeway.storage.sealed.compiled import may_be_compiled
from tests.compiler import needs_compiled_forms

if TYPE_CHECKING:
    from collections.abc import Callable

U64 = st.integers(0, (1 << 64) - 1)
OF_LOGS = writing_may_be_compiled.twins["in_runs"]
OF_TIERS = may_be_compiled.twins["in_runs"]
FORMS = [form for form in dict.fromkeys((*OF_LOGS, *OF_TIERS)) if form]


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_logs_and_tiers_have_one_form_in_python() -> None:
    assert OF_LOGS[0] is OF_TIERS[0]
    assert in_runs in OF_LOGS
    assert columns.in_runs in OF_TIERS


@given(
    keys=st.lists(U64, max_size=40),
    base=st.integers(0, 1 << 52),
    a_run=st.integers(1, 9),
)
def test_keys_stand_in_runs_that_are_sorted_each(
    form: Any, keys: list[int], base: int, a_run: int
) -> None:
    packed = form(struct.pack(f"<{len(keys)}Q", *keys), base, a_run)
    wanted = [key >> 32 << 32 | (key - base) & 0xFFFFFFFF for key in keys]
    runs = [sorted(wanted[low : low + a_run]) for low in range(0, len(keys), a_run)]
    assert struct.unpack(f"<{len(keys)}Q", packed) == tuple(
        key for run in runs for key in run
    )


@pytest.mark.parametrize(
    ("size", "a_run", "wrong"),
    [
        (9, 1, "9 bytes; allowed: at least 0 times 8"),
        (8, 0, "a run has at least one key"),
        (8, -1, "a run has at least one key"),
    ],
)
def test_keys_have_to_be_whole_and_runs_to_have_some(
    form: Any, size: int, a_run: int, wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        form(bytes(size), 0, a_run)


def test_what_has_no_bytes_is_refused(form: Any) -> None:
    with pytest.raises(TypeError):
        form("text", 0, 1)


def least_s(work: Callable[[], object]) -> float:
    """The CPU time of the quickest of some times."""
    taken = []
    for _ in range(9):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    return min(taken)


@needs_compiled_forms
def test_the_compiled_form_takes_a_fraction_of_the_time() -> None:
    """Messages of 6,400 keys kept the loop busy with sorting for half of the time."""
    keys = random.Random(5).randbytes(8 * 40_960)
    python, compiled = OF_LOGS
    assert compiled is not None
    assert least_s(lambda: compiled(keys, 0, 4096)) * 3 < least_s(
        lambda: python(keys, 0, 4096)
    )
