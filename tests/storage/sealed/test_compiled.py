"""The compiled forms are there where they could be built, and refuse."""

from __future__ import annotations

import pytest

from ropeway.storage.sealed import columns
from ropeway.storage.sealed.compiled import may_be_compiled
from tests.compiler import needs_compiled_forms

assert columns  # it declares what may be compiled


@needs_compiled_forms
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("columns_of", ("text", False)),
        ("cuts_of", (b"", False, "1", 1)),
        ("crc32", ("text",)),
    ],
)
def test_a_compiled_form_refuses_what_it_cannot_read(
    name: str, wrong: tuple[object, ...]
) -> None:
    compiled = may_be_compiled.twins[name][1]
    assert compiled is not None
    with pytest.raises(TypeError):
        compiled(*wrong)
