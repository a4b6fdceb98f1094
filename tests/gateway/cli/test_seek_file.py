"""Files of a group's offsets."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.seek_file import Place, lines, read

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)
places = st.lists(
    st.builds(Place, names, names, st.integers(0, 1023), st.integers(0, 1 << 62)),
    unique_by=lambda one: one.queue,
)


@given(places)
def test_what_is_written_is_read(written):
    as_lines = "\n".join(lines(written)).encode()
    assert read(as_lines, "f") == written
    assert read(msgspec.json.encode(written), "f") == written


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"orders\tbroker-0\t0", "line 1 has 3 cells"),
        (b"orders\tbroker-0\tx\t1", "Expected `int`"),
        (b'[{"topic":"orders"}]', "missing required field `broker`"),
        (b"\xff\t", "utf-8"),
        (b"t\tb\t0\t1\nt\tb\t0\t2", "queue 0 of topic t on broker b twice"),
    ],
)
def test_what_is_none_is_refused(data, said):
    with pytest.raises(MisusedError, match="allowed: ") as refused:
        read(data, "kitchen.tsv")
    assert said in str(refused.value)
    assert str(refused.value).startswith("kitchen.tsv: ")
