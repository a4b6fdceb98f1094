"""Why a server did not do what was asked, found out on real nodes."""

import asyncio
import socket

import pytest

from ropeway.client import (
    Admin,
    ClientConfig,
    ConnectionFailedError,
    RemotingError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.client.diagnosis import Diagnosis, Reason, diagnose
from ropeway.client.tls import TlsFiles
from ropeway.gateway.wire.codes import ResponseCode
from tests.gateway.test_tls import issue, tls_app
from tests.guarded import guarded
from tests.ropeway.client.scenario import PATIENCE

PLAIN = ClientConfig(**PATIENCE)


async def asked(address: str, config: ClientConfig = PLAIN) -> Diagnosis | None:
    """Ask something that fails, and find out why."""
    async with Admin(address, config=config) as admin:
        with pytest.raises(RemotingError) as failed:
            await admin.topics()
        return await diagnose(failed.value, config)


def trusting(ca, **more) -> ClientConfig:
    return ClientConfig(
        **PATIENCE, tls=TlsFiles(ca=str(ca.certificate)).context(), **more
    )


def test_tls_is_wanted_or_other_tls(tmp_path):
    ca, other = issue(tmp_path, "ca"), issue(tmp_path, "other")
    pair = issue(tmp_path, "mq.example", ca)

    async def main() -> list[Diagnosis | None]:
        async with tls_app(tmp_path, pair, required=True) as app:
            address = app.server.listeners[0].advertised
            return [
                await asked(address),
                await asked(address, trusting(ca)),
                await asked(address, trusting(other, tls_server_name="mq.example")),
            ]

    found = asyncio.run(main())
    assert [one and one.reason for one in found] == [
        Reason.TLS_WANTED,
        Reason.WRONG_HOST,
        Reason.UNTRUSTED,
    ]
    assert all(one and one.is_of_access and "--tls" in one.advice for one in found)


def test_a_client_certificate_is_wanted(tmp_path):
    ca = issue(tmp_path, "ca")
    pair = issue(tmp_path, "mq", ca, address="127.0.0.1")

    async def main() -> Diagnosis | None:
        async with tls_app(tmp_path, pair, client_ca=ca.certificate) as app:
            return await asked(app.server.listeners[0].advertised, trusting(ca))

    found = asyncio.run(main())
    assert found is not None
    assert found.reason is Reason.CERTIFICATE_WANTED


def test_a_node_without_tls_and_one_that_allows_nothing_are_told(tmp_path):
    ca = issue(tmp_path, "ca")

    async def main() -> list[Diagnosis | None]:
        async with guarded(tmp_path / "data") as (app, _):
            address = app.server.listeners[0].advertised
            return [await asked(address, trusting(ca)), await asked(address)]

    found = asyncio.run(main())
    assert [one and one.reason for one in found] == [Reason.NO_TLS, Reason.NOT_ALLOWED]


def test_nobody_is_there():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        found = asyncio.run(asked(f"127.0.0.1:{bound.getsockname()[1]}"))
    assert found is not None
    assert (found.reason, found.is_of_access) == (Reason.NOBODY, False)
    assert found.text == "nobody listens: Connection refused"


def test_a_host_that_is_none_is_told():
    found = asyncio.run(asked("nosuch.invalid:9876"))
    assert found is not None
    assert found.reason is Reason.UNKNOWN_HOST


def test_one_that_accepts_and_says_nothing_is_silent():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        config = ClientConfig(request_timeout_s=0.1)
        found = asyncio.run(asked(address, config))
    assert found is not None
    assert found.reason is Reason.SILENT


@pytest.mark.parametrize(
    "error",
    [
        RemotingError("why"),
        ResponseError(ResponseCode.SYSTEM_ERROR, "why", "a:1"),
        ConnectionFailedError("broker-0", "has no master"),
    ],
)
def test_where_there_is_no_more_to_say_nothing_is_said(error):
    assert asyncio.run(diagnose(error, PLAIN)) is None


def test_a_node_that_lost_a_connection_and_is_there_again_is_no_fault(tmp_path):
    pair = issue(tmp_path, "localhost", address="127.0.0.1")

    async def main() -> list[Diagnosis | None]:
        async with tls_app(tmp_path, pair) as app:
            lost = ConnectionFailedError(
                app.server.listeners[0].advertised, "connection lost"
            )
            return [await diagnose(lost, PLAIN), await diagnose(lost, trusting(pair))]

    assert asyncio.run(main()) == [None, None]


def test_an_answer_that_does_not_come_in_time_is_not_looked_for_again():
    found = asyncio.run(diagnose(RequestTimeoutError("a:1", "no answer"), PLAIN))
    assert found is not None
    assert found.reason is Reason.SILENT


REFUSED_BY_4_X = (
    "org.apache.rocketmq.acl.common.AclException: No accessKey is configured, "
    "org.apache.rocketmq.acl.plain.PlainPermissionManager.validate("
    "PlainPermissionManager.java:663)"
)
"""What a broker of RocketMQ 4.9.7 answers to who does not sign."""


@pytest.mark.parametrize(
    ("remark", "said"),
    [
        (REFUSED_BY_4_X, "not allowed: No accessKey is configured"),
        ("the broker is busy", None),
    ],
)
def test_a_broker_of_4_x_refuses_by_the_name_of_an_exception(remark, said):
    error = ResponseError(ResponseCode.SYSTEM_ERROR, remark, "mq-1:10911")
    found = asyncio.run(diagnose(error, PLAIN))
    assert (found and found.text) == said
