"""Options are checked before anything runs, and complaints name them."""

from __future__ import annotations

import pytest

from ropeway.client.tls import TlsFiles
from ropeway.spark.options import read_options, require_topics
from ropeway.spark.stream import StreamReader

GIVEN = {"nameServer": "127.0.0.1:9876", "topic": "orders, bills"}


def test_options_have_defaults() -> None:
    options = read_options(GIVEN)
    assert options.topics == ("orders", "bills")
    assert options.guarantee == "exactly-once"
    assert options.fail_on_data_loss
    assert options.starting is None
    assert options.client_config().tls is None


def test_options_are_read() -> None:
    options = read_options(
        {
            **GIVEN,
            "startingOffsets": '{"orders": {"broker-0:3": 12}}',
            "endingTimestamp": "1700000000000",
            "maxOffsetsPerTrigger": "5",
            "failOnDataLoss": "FALSE",
            "accessKey": "a",
            "secretKey": "s",
            "tls": "true",
        }
    )
    assert options.starting == {"orders": {"broker-0:3": 12}}
    assert options.ending_ms == 1700000000000
    assert options.max_offsets == 5
    assert not options.fail_on_data_loss
    config = options.producer_config()
    assert config.credentials is not None
    assert config.tls is not None


def test_files_for_tls_switch_it_on() -> None:
    options = read_options({**GIVEN, "tlsCa": "/ca.pem", "tlsServerName": "mq"})
    assert options.tls == TlsFiles(ca="/ca.pem")
    assert options.tls_server_name == "mq"
    assert read_options({**GIVEN, "tlsCa": "/ca.pem", "tls": "false"}).tls is None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"nameServer": " "}, "option nameServer is missing; allowed: host:port"),
        ({"nameServer": "mq-1"}, "nameServer is 'mq-1'; allowed: host:port"),
        ({"nameServer": "a:1;b:x"}, "nameServer is 'a:1;b:x'; allowed: host:port"),
        ({"nameServer": ":9876"}, "nameServer is ':9876'; allowed: host:port"),
        ({"path": "orders"}, "option path is unknown; allowed: topic, or one of"),
        ({"option.topic": "a"}, "CREATE TABLE is given options, .* TEMPORARY VIEW"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is '0'; allowed: a wh"),
        ({"maxTriggerDelay": "1m"}, "maxTriggerDelay is given; allowed: with minO"),
        (
            {"minOffsetsPerTrigger": "3", "maxTriggerDelay": "1 week"},
            "maxTriggerDelay is '1 week'; allowed: .* like 90s, of ms, s, m, h, d",
        ),
        (
            {"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"},
            "minOffsetsPerTrigger is 3; allowed: at most maxOffsetsPerTrigger, 2",
        ),
        (
            {"endingOffsetsByTimestamp": "5"},
            "endingOffsetsByTimestamp is '5'; allowed: JSON like {\"orders",
        ),
        ({"startingTimestamp": "soon"}, "startingTimestamp is 'soon'; allowed"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss is 'maybe'; allowed: false"),
        ({"startingOffsets": "first"}, "startingOffsets is 'first'; allowed: earl"),
        ({"endingOffsets": "earliest"}, "endingOffsets is 'earliest'; allowed: lat"),
        ({"guarantee": "twice"}, "guarantee is 'twice'; allowed: at-least-once, ex"),
        ({"accessKey": "a"}, "accessKey and secretKey: one is missing"),
        ({"txnAppId": "a"}, "txnAppId and txnVersion: one is missing; allowed: both"),
        ({"txnVersion": "1"}, "txnAppId and txnVersion: one is missing; allowed: both"),
        (
            {"txnAppId": "a", "txnVersion": "-1"},
            "txnVersion is '-1'; allowed: a whole number from 0",
        ),
        ({"subscribePattern": "a.*"}, "'a.*', and there is topic; allowed: one of th"),
        (
            {"subscribePattern": "a.*", "topic": "", "tier": "file:///t/b"},
            "'a.*', and there is tier; allowed: one of them",
        ),
        (
            {"subscribePattern": "*", "topic": ""},
            r"subscribePattern is '\*': nothing to repeat .*; allowed: a regular",
        ),
        ({"groupIdPrefix": " "}, "option groupIdPrefix is missing; allowed: a name"),
        ({"sql": " "}, "option sql is missing; allowed: a condition, like amount > 5"),
        ({"sql": "a > 5", "tags": "b"}, "options sql and tags are given; allowed: on"),
        (
            {"sql": "a > 5", "tier": "file:///t/b"},
            "options sql and tier are given; allowed: one of them",
        ),
    ],
)
def test_a_wrong_option_is_named(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_options({**GIVEN, **changes})


def test_a_stream_has_no_end() -> None:
    for name, value in (
        ("endingOffsets", "latest"),
        ("endingTimestamp", "5"),
        ("endingOffsetsByTimestamp", "{}"),
    ):
        with pytest.raises(ValueError, match=f"option {name} is given for a stream"):
            StreamReader(read_options({**GIVEN, name: value}), ["value"])


def test_a_reader_needs_topics() -> None:
    with pytest.raises(ValueError, match=r"option topic is missing; .* subscribePatt"):
        require_topics(read_options({**GIVEN, "topic": " , "}))
    require_topics(read_options({**GIVEN, "topic": "", "subscribePattern": "a.*"}))


def test_queues_are_read_in_the_name_of_a_group() -> None:
    for more, group in (
        ({}, "ropeway-spark"),
        ({"groupIdPrefix": "jobs"}, "jobs-spark"),
        ({"groupIdPrefix": "jobs", "group": "billing"}, "billing"),
    ):
        assert read_options({**GIVEN, **more}).reading_group == group


def test_a_table_of_sparks_catalog_is_told_that_it_has_no_options() -> None:
    with pytest.raises(ValueError, match=r"nameServer is missing; .* a temporary view"):
        read_options({})
