"""What each worker gets, and directories that are somebody else's."""

import re
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.config import (
    Config,
    ConfigError,
    HttpConfig,
    ListenerConfig,
    LogConfig,
)
from ropeway.gateway.workers import broker_name, refuse_workers_data, sites, split


def test_each_worker_has_a_name_a_directory_and_ports_of_its_own(tmp_path):
    listeners = (
        ListenerConfig(port=9876),
        ListenerConfig("0.0.0.0", 5000, "mq.example.com", 6000),
        ListenerConfig(port=0),
    )
    first, second = split(Config(data=tmp_path, listeners=listeners), 2)
    assert first == Config(
        data=tmp_path / "broker-0",
        routes=str(tmp_path / "routes.db"),
        listeners=listeners,
    )
    assert (second.broker, second.data) == ("broker-1", tmp_path / "broker-1")
    assert second.routes == first.routes
    assert second.listeners == (
        ListenerConfig(port=9877),
        ListenerConfig("0.0.0.0", 5001, "mq.example.com", 6001),
        ListenerConfig(port=0),
    )


def test_each_worker_has_a_site_of_its_own(tmp_path):
    site = HttpConfig(port=8080, writable=True)
    ports = [one.http.port for one in split(Config(data=tmp_path, http=site), 2)]
    assert ports == [8080, 8081]
    anywhere = split(Config(data=tmp_path, http=HttpConfig(port=0)), 2)
    assert [one.http.port for one in anywhere] == [0, 0]
    listener = (ListenerConfig(port=8081),)
    with pytest.raises(ConfigError, match="both need port 8081"):
        split(Config(data=tmp_path, listeners=listener, http=site), 2)


def test_routes_that_were_given_are_kept(tmp_path):
    given = Config(data=tmp_path, routes="other.db")
    assert {one.routes for one in split(given, 3)} == {"other.db"}


@pytest.mark.parametrize(("given", "second"), [("east", "east-1"), ("e-0", "e-1")])
def test_a_brokers_name_is_numbered(given, second):
    assert broker_name(Config(broker=given), 1) == second


def test_listeners_whose_workers_would_meet_are_refused(tmp_path):
    listeners = (ListenerConfig(port=9876), ListenerConfig(port=9877))
    with pytest.raises(ConfigError, match="9876 and 9877 both need port 9877"):
        split(Config(data=tmp_path, listeners=listeners), 2)
    other = (ListenerConfig(port=9876), ListenerConfig("127.0.0.2", 9877))
    assert len(split(Config(data=tmp_path, listeners=other), 2)) == 2


@pytest.mark.parametrize(
    "listener", [ListenerConfig(port=65534), ListenerConfig(advertised_port=65534)]
)
def test_ports_beyond_the_last_are_refused(tmp_path, listener):
    assert split(Config(data=tmp_path, listeners=(listener,)), 2)
    with pytest.raises(ConfigError, match="would have port 65536; allowed: to 65535"):
        split(Config(data=tmp_path, listeners=(listener,)), 3)


def test_a_log_that_one_node_has_is_refused(tmp_path):
    config = Config(data=tmp_path, log=LogConfig(url="mine:///srv/mine"))
    with pytest.raises(ConfigError, match=r"mine:///srv/mine.*allowed: no workers"):
        split(config, 2)


def used(directory: Path) -> None:
    (directory / "log").mkdir(parents=True)


def test_the_directory_of_a_single_node_is_refused_with_the_way_out(tmp_path):
    used(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(f"to {tmp_path / 'broker-0'}")):
        split(Config(data=tmp_path), 2)


def test_the_directory_of_workers_is_refused_to_a_single_node(tmp_path):
    refuse_workers_data(Config(data=tmp_path))
    used(tmp_path / "broker-0")
    with pytest.raises(ConfigError, match="allowed: --workers"):
        refuse_workers_data(Config(data=tmp_path))


def test_workers_that_are_not_started_any_more_are_told_of(tmp_path):
    for number in range(4):
        used(tmp_path / f"broker-{number}")
    with capture_logs() as logs:
        split(Config(data=tmp_path), 2)
    assert [line["data"] for line in logs] == [
        str(tmp_path / "broker-2"),
        str(tmp_path / "broker-3"),
    ]


def test_ports_of_sites_are_known_where_they_are_set(tmp_path):
    config = Config(data=tmp_path, http=HttpConfig(port=18080))
    assert sites(split(config, 2)) == {"broker-0": 18080, "broker-1": 18081}
    assert sites(split(Config(data=tmp_path), 2)) == {}
    anywhere = Config(data=tmp_path, http=HttpConfig(port=0))
    assert sites(split(anywhere, 2)) == {}
