"""Names that nobody else has."""

import datetime as dt
import os

from ropeway.client.ids import UniqueKeys, client_id, local_address, new_instance


def ms(*parts: int) -> int:
    return int(dt.datetime(*parts).timestamp() * 1000)  # noqa: DTZ001 - local, as Java


def test_a_unique_key_has_javas_parts():
    now = ms(2026, 3, 2)
    keys = UniqueKeys("192.0.2.7", origin=0xABCDEF01, now_ms=lambda: now)
    key = keys.make()
    assert key[:8] == "C0000207"
    assert int(key[8:12], 16) == os.getpid() & 0xFFFF
    assert key[12:20] == "ABCDEF01"
    assert int(key[20:28], 16) == 24 * 3600 * 1000
    assert key[28:] == "0001"


def test_keys_of_one_millisecond_differ():
    keys = UniqueKeys(now_ms=lambda: ms(2026, 1, 5))
    assert len({keys.make() for _ in range(1000)}) == 1000


def test_time_in_a_key_starts_anew_with_a_month():
    times = [ms(2026, 12, 31, 23, 59, 59), ms(2027, 1, 1)]
    keys = UniqueKeys(now_ms=iter(times).__next__)
    first, second = keys.make(), keys.make()
    assert int(first[20:28], 16) == 31 * 24 * 3600 * 1000 - 1000
    assert int(second[20:28], 16) == 0


def test_a_key_of_an_ipv6_host_is_longer():
    assert len(UniqueKeys("2001:db8::1").make()) == 56


def test_client_ids_are_address_and_instance():
    assert client_id("DEFAULT") == f"{local_address()}@DEFAULT"
    assert new_instance() != new_instance()
