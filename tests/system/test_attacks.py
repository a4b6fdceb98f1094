"""The attacks of docs/security.md, on each way in which gateways are deployed.

The tests that the page names try each in many forms, on one node in the test's own
process. Here are the central ones, on processes: one node, workers, a master with its
slave, and one that goes by Pulsar's tokens. Each node of a deployment is attacked.
Those that forge what they send are in `test_attacks_forged`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import grpc
import msgspec

from ropeway.gateway.grpc import protocol
from ropeway.gateway.grpc.protocol import Code, NotifyClientTerminationRequest, Resource
from ropeway.gateway.node import names
from ropeway.gateway.node.node_auth import NodeAuth, new_session
from ropeway.gateway.processors.needs import KNOWN, NEEDS
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire import bodies, message
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import (
    GetConsumerListByGroup,
    HeartBeat,
    LockBatchMq,
    UnlockBatchMq,
    UnregisterClient,
)
from ropeway.gateway.wire.commands.forward import Forward
from ropeway.gateway.wire.commands.offsets import GetMaxOffset
from ropeway.gateway.wire.commands.query import ViewMessage
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack, SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.gateway.grpc.thin import Thin, consumer, sign
from tests.gateway.http.test_login import ADDRESSES
from tests.gateway.processors.test_admission import BODIES, made
from tests.gateway.processors.test_shared_retries import THEIRS, asking
from tests.gateway.processors.test_system_topics import ALL_KINDS, looks
from tests.guarded import ALICE, NOBODY, ROOT
from tests.remoting import looped
from tests.requests import heartbeat, pulling, sending
from tests.system.guarded_deployments import (
    BANK,
    MANY,
    READER,
    SENDER,
)
from tests.system.permissions import GROUP_LOOKS
from tests.system.under_way import BY_IDENTITY, BY_RIGHTS, Staged, ended, under_way

if TYPE_CHECKING:
    from tests.remoting import Remoting
    from tests.system.guarded_deployments import Deployment

DENIED = ResponseCode.NO_PERMISSION


@looped
async def test_nobody_gets_in_without_credentials(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            for code in sorted(PROCESSORS):
                known = {"AccessKey": there.forged(ROOT)}
                for fields in ({}, known, {**known, "topic": "secret"}):
                    answer = await client.ask(code, b"", fields=fields)
                    # What is for nodes says no in its own way.
                    refused = answer.code if NEEDS[code].of_nodes else DENIED
                    assert (code, answer.code) == (code, refused or DENIED)
                    assert answer.body == b""


@looped
async def test_who_may_not_gets_nothing_done_by_any_request(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            await there.done(client, ROOT, sending("secret"), b"hello")
            for code in sorted(PROCESSORS):
                body = msgspec.json.encode(BODIES[code]) if code in BODIES else b""
                for who in (NOBODY, ALICE):
                    answer = await there.ask(client, who, made(code), body)
                    open_to_all = NEEDS[code] is KNOWN or (
                        who == ALICE and there.permit and code in GROUP_LOOKS
                    )
                    expected = answer.code if open_to_all else DENIED
                    found = RequestCode(code).name, who, answer.code
                    assert found == (RequestCode(code).name, who, expected)
            pulled = await there.ask(client, ROOT, pulling("secret"))
            assert pulled.messages()[-1].body == b"hello"


READING = {
    *("pull", "pop", "peek", "notification", "query"),
    *("end", "first", "search", "earliest"),
}
"""Requests that show messages, or where they begin and end."""


@looped
async def test_who_may_only_send_reads_nothing(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            answer = await there.ask(client, SENDER, sending("bank"), b"secret")
            place = parse_offset_msg_id(answer.read(SendReply).msg_id)
            named = {
                name: one for name, one in looks("bank").items() if name in READING
            }
            assert named.keys() == READING
            named["view"] = ViewMessage(offset=place.message_id, topic="bank")
            for name, header in named.items():
                answer = await there.ask(client, SENDER, header)
                assert (name, answer.code, answer.body) == (name, DENIED, b"")
            unnamed = await there.ask(client, SENDER, ViewMessage(place.message_id))
            assert (unnamed.code == 0, unnamed.body) == (False, b"")


@looped
async def test_an_id_opens_no_message_of_a_topic_that_one_may_not_read(
    there: Deployment,
) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            answer = await there.done(client, ROOT, sending("secret"), b"secret")
            place = parse_offset_msg_id(answer.read(SendReply).msg_id)
            for claimed in (None, "mine", "%RETRY%mine"):
                back = ConsumerSendMsgBack(
                    place.message_id, "mine", delay_level=0, origin_topic=claimed
                )
                for header in (ViewMessage(place.message_id, claimed), back):
                    seen = await there.ask(client, ALICE, header)
                    assert (seen.code == 0, seen.body) == (False, b"")


@looped
async def test_nobody_reads_another_groups_retries(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            await there.done(client, ROOT, sending(THEIRS), b"hello")
            for name, header in asking(THEIRS).items():
                answer = await there.ask(client, ALICE, header, b"x")
                assert (name, answer.code, answer.body) == (name, DENIED, b"")
            beat = heartbeat("c", "team", topic=THEIRS)
            assert (await there.ask(client, ALICE, HeartBeat(), beat)).code == DENIED


@looped
async def test_half_messages_are_shown_to_who_may_send_alone(there: Deployment) -> None:
    async with there.everywhere() as thieves, there.knock(there.nodes[0]) as real:
        for who in (ALICE, NOBODY):
            for number, (_, thief) in enumerate(thieves):
                named = heartbeat(f"{who}{number}", producers=("bank",))
                assert (await there.ask(thief, who, HeartBeat(), named)).code == 0
        named = heartbeat("real", producers=("bank",))
        assert (await there.ask(real, BANK, HeartBeat(), named)).code == 0
        half = {"pairs": {"TRAN_MSG": "true", "PGROUP": "bank"}, "sys_flag": 4}
        for _ in range(3):
            await there.done(real, BANK, sending("bank", **half), b"hello")
        for _ in range(6):
            asked = await real.asked()
            assert asked.code == RequestCode.CHECK_TRANSACTION_STATE
            assert message.decode(asked.body).body == b"hello"
        assert all(thief.requests.empty() for _, thief in thieves)


@looped
async def test_nobody_takes_or_ends_another_users_client(there: Deployment) -> None:
    async with there.everywhere() as honest, there.everywhere() as thieves:
        name = "client"
        # Clients send heartbeats to masters and slaves.
        for _, client in honest:
            beat = heartbeat(name, "bank", topic="bank", producers=("bank",))
            assert (await there.ask(client, BANK, HeartBeat(), beat)).code == 0
        for (_, client), (_, thief) in zip(honest, thieves, strict=True):
            mine = heartbeat("other", "mine", topic="mine")
            assert (await there.ask(thief, ALICE, HeartBeat(), mine)).code == 0
            for taking in (
                heartbeat(name, "mine", topic="mine"),
                heartbeat(name, producers=("bank",)),
            ):
                answer = await there.ask(thief, ALICE, HeartBeat(), taking)
                assert answer.code == DENIED, answer
            for group in ("bank", "mine"):
                gone = UnregisterClient(
                    client_id=name, producer_group="bank", consumer_group=group
                )
                await there.ask(thief, ALICE, gone)
            listed = await there.ask(client, BANK, GetConsumerListByGroup("bank"))
            found = msgspec.json.decode(listed.body)["consumerIdList"]
            assert name in found


@looped
async def test_nobody_takes_or_frees_queues_as_another_users_client(
    there: Deployment,
) -> None:
    queue = bodies.MessageQueue("broker-0", 0, "mine")
    body = bodies.encode(bodies.LockBatchBody("mine", "locking", mq_set=[queue]))

    async def locks(client: Remoting, who: str) -> bool:
        answer = await there.ask(client, who, LockBatchMq(), body)
        return bool(msgspec.json.decode(answer.body)["lockOKMQSet"])

    async with there.everywhere() as knocking, there.knock(there.nodes[0]) as master:
        await there.until_allowed(master, READER, GetMaxOffset("mine", 0))
        assert await locks(master, READER)
        for _, client in knocking:
            await locks(client, MANY)
            assert (await there.ask(client, MANY, UnlockBatchMq(), body)).code == 0
            assert not await locks(master, MANY)
            assert await locks(master, READER)


@looped
async def test_no_way_through_another_node_is_open(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            for broker in ("broker-0", "broker-1", "broker-9"):
                for header in (sending("secret"), pulling("secret")):
                    sent_on = msgspec.structs.replace(header, bname=broker)
                    assert (await client.ask(sent_on, b"x")).code == DENIED
                    for who in (NOBODY, ALICE):
                        answer = await there.ask(client, who, sent_on, b"x")
                        assert (answer.code, answer.body) == (DENIED, b"")


@looped
async def test_who_loses_its_rights_is_told_whatever_waits(there: Deployment) -> None:
    async with under_way(there, READER) as going, there.knock(there.nodes[0]) as client:
        staged = Staged(there, READER, client)
        await staged.stage()
        await there.revoke(READER)
        await ended(going, BY_RIGHTS)
        assert await staged.commit() == DENIED
        await there.restore(READER)


@looped
async def test_who_is_known_no_more_is_told_whatever_is_under_way(
    there: Deployment,
) -> None:
    async with under_way(there, READER) as going:
        await there.exclude(READER)
        await ended(going, BY_IDENTITY)
        await there.admit(READER)
    async with there.everywhere() as knocking:
        for _, client in knocking:
            await there.until_allowed(client, READER, GetMaxOffset("mine", 0))


@looped
async def test_system_topics_are_for_superusers_alone(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            await there.done(client, ROOT, sending(names.TRACE_TOPIC), b"hello")
            for topic in ALL_KINDS:
                for name, header in looks(topic).items():
                    answer = await there.ask(client, MANY, header)
                    assert (topic, name, answer.code) == (topic, name, DENIED)
                    assert answer.body == b""


@looped
async def test_nobody_speaks_for_another_as_a_node(there: Deployment) -> None:
    frame = encode_frame(RequestCode.GET_ALL_TOPIC_CONFIG, 1)
    root = '{"hook":"users","name":"root","super":true}'
    async with there.everywhere() as knocking:
        for node, client in knocking:
            for secret in ("", "ropeway", "0" * 43):
                auth = NodeAuth(secret)
                for principal in (None, root):
                    said = auth.say("127.0.0.1:1", node, new_session(), 1, principal)
                    fields, made = msgspec.structs.asdict(said), auth.sign(said, frame)
                    forged = Forward(**fields, signature=made)
                    for asked in (
                        await client.ask(forged, frame),
                        await there.ask(client, MANY, forged, frame),
                    ):
                        assert (asked.code, asked.body) == (DENIED, b"")
                        assert "is not known as a node" in asked.remark


@looped
async def test_grpc_lets_nobody_in_without_credentials(there: Deployment) -> None:
    for node in there.nodes:
        client = Thin(node)
        for method in protocol.SERVICE.methods:
            request = protocol.message_class(method.input_type)()
            if method.client_streaming:
                status, why = await client.refused(consumer("bank", "bank"))
                assert why.startswith("UNAUTHORIZED: "), (status, why)
                continue
            ended = await _outcome(client, method, request)
            assert ended in REFUSALS, (method.name, ended)
        await client.close()


REFUSALS = (Code.UNAUTHORIZED, grpc.StatusCode.UNIMPLEMENTED)


async def _outcome(client: Thin, method: Any, request: Any) -> Any:
    """How a call ends: a code of RocketMQ's, or gRPC's own."""
    call = client.stream if method.server_streaming else client.call
    try:
        answer = await call(method.name, request)
    except grpc.RpcError as error:
        return error.code()
    return (answer[-1] if isinstance(answer, list) else answer).status.code


@looped
async def test_nobody_ends_another_users_grpc_client(there: Deployment) -> None:
    group = Resource(name="bank")
    for node in there.nodes:
        owner, thief = (sign(Thin(node), *there.keys[who]) for who in (BANK, ALICE))
        stream, answer = await owner.telemetry(consumer("bank", "bank"))
        assert answer.status.code == Code.OK
        _, why = await thief.refused(consumer("mine", "mine"))
        assert why.startswith("FORBIDDEN: client id thin is in use by another")
        for request, codes in (
            (NotifyClientTerminationRequest(group=group), {Code.FORBIDDEN}),
            (NotifyClientTerminationRequest(), {Code.UNRECOGNIZED_CLIENT_TYPE}),
        ):
            ended = await thief.call("NotifyClientTermination", request)
            assert ended.status.code in codes
        ended = await owner.call(
            "NotifyClientTermination", NotifyClientTerminationRequest(group=group)
        )
        assert ended.status.code == Code.OK
        stream.cancel()
        await owner.close()
        await thief.close()


@looped
async def test_the_page_shows_nothing_before_somebody_signs_in(
    there: Deployment,
) -> None:
    for page in there.pages:
        async with aiohttp.ClientSession(page) as session:
            for path in ADDRESSES:
                async with session.get(f"/api/{path}") as answer:
                    assert answer.status == 401, path
                    assert "sign in first" in await answer.text()
            for path in ("/healthz", "/"):
                async with session.get(path) as answer:
                    assert answer.status == 200, path
