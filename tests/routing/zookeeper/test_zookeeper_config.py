"""URLs of route stores on ZooKeeper: taken apart, and refused with what is allowed."""

from __future__ import annotations

import pytest

from ropeway.routing.api import RouteError
from ropeway.routing.zookeeper.zookeeper_config import ZooKeeperConfig, parse_url


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("zookeeper://a:1/r", ZooKeeperConfig("a:1", "/r")),
        ("zookeeper://a,b:7/r/s/", ZooKeeperConfig("a:2181,b:7", "/r/s")),
        (
            "zookeeper://[::1]:3,10.0.0.1/r",
            ZooKeeperConfig("[::1]:3,10.0.0.1:2181", "/r"),
        ),
    ],
)
def test_a_url_names_servers_and_a_path(url: str, place: ZooKeeperConfig):
    assert parse_url(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a:1/r",
        "zookeeper://",
        "zookeeper://a",
        "zookeeper://a/",
        "zookeeper:///r",
        "zookeeper://a:b/r",
        "zookeeper://a:1:2/r",
        "zookeeper://a,,b/r",
        "zookeeper://a//r",
        "zookeeper://a/r?x=1",
        "http://a/r",
    ],
)
def test_what_names_no_place_is_refused(url: str):
    with pytest.raises(RouteError, match="allowed: zookeeper://host:port"):
        parse_url(url)


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(RouteError) as refused:
        parse_url("zookeeper://me:secret@a/r")
    assert "secret" not in str(refused.value)
    assert "route store 'zookeeper://***@a/r'" in str(refused.value)
