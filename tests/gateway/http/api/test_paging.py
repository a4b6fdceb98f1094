"""Pages of lists."""

from ropeway.gateway.http.api import paging
from ropeway.gateway.http.params import Params

NAMES = ["Beta", "alpha", "gamma", "alphabet"]


def page(**given: str) -> paging.Page:
    return paging.page(Params(given, *paging.NAMES), NAMES)


def test_a_page_is_a_part_of_what_was_searched_in_order():
    assert page() == (4, 0, ["Beta", "alpha", "alphabet", "gamma"])
    assert page(limit="2", offset="1") == (4, 1, ["alpha", "alphabet"])
    assert page(search="ALPHA") == (2, 0, ["alpha", "alphabet"])
    assert page(search="b", limit="1", offset="9") == (2, 9, [])
