"""Options are checked before anything runs, and complaints name them."""

from __future__ import annotations

import pytest

from ropeway.client.tls import TlsFiles
from ropeway.spark.options import read_options, require_topics

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
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is '0'; allowed: a wh"),
        ({"startingTimestamp": "soon"}, "startingTimestamp is 'soon'; allowed"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss is 'maybe'; allowed: false"),
        ({"startingOffsets": "first"}, "startingOffsets is 'first'; allowed: earl"),
        ({"endingOffsets": "earliest"}, "endingOffsets is 'earliest'; allowed: lat"),
        ({"guarantee": "twice"}, "guarantee is 'twice'; allowed: at-least-once, ex"),
        ({"accessKey": "a"}, "accessKey and secretKey: one is missing"),
    ],
)
def test_a_wrong_option_is_named(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_options({**GIVEN, **changes})


def test_a_reader_needs_topics() -> None:
    with pytest.raises(ValueError, match="option topic is missing"):
        require_topics(read_options({**GIVEN, "topic": " , "}))
