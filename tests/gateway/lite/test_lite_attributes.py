"""What attributes say of lite topics."""

from __future__ import annotations

from ropeway.gateway.lite.lite_attributes import LiteGroup, expiry_ms, of_group


def test_a_group_without_attributes_is_of_other_topics():
    assert of_group({}) == LiteGroup("", False, False, False, 2000, False)


def test_a_group_says_how_it_consumes():
    given = {
        "lite.bind.topic": "rooms",
        "lite.sub.model": "Exclusive",
        "lite.sub.reset.offset.exclusive": "true",
        "lite.sub.reset.offset.unsubscribe": "true",
        "lite.sub.client.quota": "7",
        "lite.sub.wildcard": "false",
    }
    assert of_group(given) == LiteGroup("rooms", True, True, True, 7, True)


def test_lite_topics_expire_where_that_is_set_and_never_before_a_quarter_of_an_hour():
    assert expiry_ms({}) is expiry_ms({"lite.topic.expiration": "-1"}) is None
    assert expiry_ms({"lite.topic.expiration": "60"}) == 3_600_000
    assert expiry_ms({"lite.topic.expiration": "1"}) == 900_000
