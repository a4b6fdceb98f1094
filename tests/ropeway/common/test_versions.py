"""The words of a refusal; `tests/formats` has what is refused with them."""

from ropeway.common.versions import newer


def test_a_refusal_names_what_came_from_where_and_what_is_allowed() -> None:
    assert newer("offsets.db", 2, 1) == (
        "offsets.db has format 2; this program reads up to 1: use a newer one"
    )
