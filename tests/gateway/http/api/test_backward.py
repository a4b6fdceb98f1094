"""Pages of messages from the newest back: nothing twice, nothing left out."""

import pytest

from tests.gateway.http.site import bury, send, serving
from tests.remoting import looped


async def pages(site, **params) -> list[list[tuple[int, int]]]:
    """Every page of a topic, as places of messages."""
    found, cursor = [], ""
    while cursor is not None:
        answer = await site.get("messages", topic="orders", cursor=cursor, **params)
        found.append([(one["queue_id"], one["offset"]) for one in answer["messages"]])
        cursor = answer["cursor"]
    return found


@looped
async def test_pages_have_each_message_once_whatever_is_sent_meanwhile(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 40)
        await send(site.client, "orders", 3, queue_id=1)
        everything = {(0, offset) for offset in range(40)}
        everything |= {(1, offset) for offset in range(3)}
        first = await site.get("messages", topic="orders", limit="5")
        assert first["total"] == 43
        await send(site.client, "orders", 2)
        found = [(one["queue_id"], one["offset"]) for one in first["messages"]]
        assert found == [(1, 2), (1, 1), (1, 0), (0, 39), (0, 38)]
        cursor = first["cursor"]
        while cursor is not None:
            page = await site.get("messages", topic="orders", limit="7", cursor=cursor)
            found += [(one["queue_id"], one["offset"]) for one in page["messages"]]
            cursor = page["cursor"]
        assert len(found) == len(set(found)) == 43
        assert set(found) == everything


@looped
async def test_a_text_is_found_in_bodies_keys_ids_and_tags(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 12)
        for text, offsets in (
            ("k11", [11]),
            (f"{7:032x}", [7]),
            ("PAID", [*range(11, -1, -1)]),
            ("10", [10]),
            ("nothing", []),
        ):
            (found,) = await pages(site, text=text)
            wanted = [offset for _, offset in found]
            assert set(offsets) <= set(wanted), text
            assert len(wanted) == 12 or set(wanted) <= {*offsets, 1, 0, 10}


@looped
async def test_a_search_looks_at_so_many_messages_and_goes_on_from_there(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 20)
        first = await site.get("messages", topic="orders", text="k0", most="8")
        assert (first["messages"], first["looked"]) == ([], 8)
        found = await pages(site, text="k0", most="8")
        assert found[-1] == [(0, 0)]


@looped
@pytest.mark.parametrize("cursor", ["x", "1,2,3,4,5,6,7,8,9", "-1", "9" * 17])
async def test_what_is_no_cursor_is_refused(tmp_path, cursor):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        sentence = await site.refused("messages", topic="orders", cursor=cursor)
        assert "cursor" in sentence


@looped
async def test_dead_letters_beyond_the_first_page_are_found(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 6)
        await bury(site.client, "orders", "readers", 6)
        first = await site.get("dead-letters/readers", limit="4")
        assert (first["total"], len(first["messages"])) == (6, 4)
        cursor = first["cursor"]
        rest = await site.get("dead-letters/readers", limit="4", cursor=cursor)
        assert len(rest["messages"]) == 2
        assert rest["cursor"] is None
        ids = {one["id"] for one in (*first["messages"], *rest["messages"])}
        assert len(ids) == 6
        (one,) = (await site.get("dead-letters/readers", text="k3"))["messages"]
        assert one["topic"] == "orders"
