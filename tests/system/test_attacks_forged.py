"""Attacks that forge what they send, on each way in which gateways are deployed.

As `test_attacks`, with its deployments: what the tests of one node in the test's own
process send is sent to processes here.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import aiohttp

from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.node import names
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.admin import QueryTopicConsumeByWho
from ropeway.gateway.wire.commands.auth import (
    CreateUser,
    DeleteUser,
    GetUser,
    ListUsers,
    UpdateUser,
)
from ropeway.gateway.wire.commands.batches import (
    CommitBatch,
    LastBatch,
    Stage,
    StageReply,
)
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.namesrv import (
    DeleteKvConfig,
    GetKvConfig,
    PutKvConfig,
)
from ropeway.gateway.wire.commands.namesrv_admin import GetKvList
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.gateway.wire.commands.send import RecallMessage, SendReply
from tests.gateway.grpc import test_hidden_names as grpc_names
from tests.gateway.grpc.thin import Thin, consumer, sign
from tests.gateway.http.signed import HEADERS
from tests.gateway.processors import test_hidden_names as hidden
from tests.gateway.processors.test_access_users import info
from tests.gateway.processors.test_forged_properties import FROM_BANK, OTHERS_RECEIPT
from tests.gateway.processors.test_forged_requests import (
    HOW,
    JSON,
    ROCKETMQ,
    answered,
    forged_handles,
    forged_pairs,
    naming,
    with_both,
)
from tests.gateway.processors.test_reply import replying
from tests.gateway.processors.test_reply_access import FORGED
from tests.gateway.processors.test_system_topics import INNER, progress_of
from tests.guarded import ALICE, NOBODY, PASSWORD, ROOT
from tests.remoting import TIMEOUT_S, looped
from tests.requests import batch_of, heartbeat, sending, waiting
from tests.system.guarded_deployments import BANK, MANY
from tests.system.permissions import GROUP_LOOKS
from tests.system.wrong_credentials import wrong

if TYPE_CHECKING:
    from tests.remoting import Remoting
    from tests.system.guarded_deployments import Deployment

DENIED = ResponseCode.NO_PERMISSION


OWN = "billing"
"""Alice's: in `mine` there is nothing, so that others can wait there."""


async def stored(there: Deployment, client: Remoting, topic: str) -> int:
    """Store a message, and say how many the topic had before."""
    answer = await there.done(client, ROOT, sending(topic), b"hello")
    return answer.read(SendReply).queue_offset


async def until_stored(
    there: Deployment, client: Remoting, topic: str, wanted: int
) -> None:
    """Wait until a topic has so many."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            answer = await there.done(client, ROOT, GetMaxOffset(topic, 0))
            if answer.read(Offset).offset >= wanted:
                return
            await asyncio.sleep(0.05)


@looped
async def test_nobody_gets_in_by_a_wrong_signature_or_token(there: Deployment) -> None:
    header = sending(OWN)
    async with there.everywhere() as knocking:
        for _, client in knocking:
            await there.done(client, ALICE, header, b"a")
            before = await stored(there, client, OWN)
            sends = wrong(there, ALICE, header, b"a")
            for fields, body in sends:
                answer = await client.ask(310, body, fields=fields)
                assert (fields, answer.code) == (fields, DENIED)
                client.send(310, body, fields=fields, one_way=True)
            # Nor is it told what is wrong, or whether there is such a user.
            told = [await client.ask(310, b, fields=f) for f, b in sends[-2:]]
            assert len({one.remark for one in told}) == 1
            assert await stored(there, client, OWN) == before + 1


@looped
async def test_what_is_forbidden_is_answered_as_what_is_not_there(
    there: Deployment,
) -> None:
    differing = []
    async with there.everywhere() as knocking:
        for node, client in knocking:
            sent = await there.done(client, ROOT, sending("secret"), b"hello")
            retry = names.retry_topic("secret"), names.retry_topic(hidden.ABSENT)
            one, other = hidden.targets_of(sent)
            pairs = [
                (one, other),
                (one._replace(name=retry[0]), other._replace(name=retry[1])),
            ]
            for code in hidden.codes():
                if there.permit and code in GROUP_LOOKS:
                    continue
                for pair in pairs:
                    seen = [
                        [
                            target.hidden(await there.ask(client, ALICE, header, body))
                            for form, header, body in hidden.asked(code, target)
                            if form == "all"
                        ]
                        for target in pair
                    ]
                    if seen[0] != seen[1]:
                        differing.append((node, RequestCode(code).name, seen))
    assert not differing


@looped
async def test_no_grpc_call_tells_what_is_there_or_does_it(there: Deployment) -> None:
    one = grpc_names.Target("secret", "secret", "0" * 32)
    none = grpc_names.Target("absent", "absent", "0" * 32)
    for node in there.nodes:
        client = sign(Thin(node, "forging"), *there.keys[ALICE])
        stream, answer = await client.telemetry(consumer("mine", "mine"))
        assert answer.status.code == Code.OK, answer
        for name, calls in grpc_names.CALLS.items():
            for first, second in zip(calls(one), calls(none), strict=True):
                if first == second:
                    continue
                seen = one.hidden(await grpc_names.said(client, name, first))
                assert "code: OK" not in seen, name
                assert seen == none.hidden(await grpc_names.said(client, name, second))
        stream.cancel()
        await client.close()


@looped
async def test_a_field_that_is_there_twice_opens_no_other_topic(
    there: Deployment,
) -> None:
    async with there.everywhere() as knocking:
        for node, client in knocking:
            before = await stored(there, client, "bank")
            for topic in (OWN, "bank"):
                for header, field in naming(topic):
                    for kind in (JSON, ROCKETMQ):
                        for mine_last in (False, True):
                            request = with_both(
                                header,
                                field,
                                kind,
                                mine_last=mine_last,
                                mine=OWN,
                                who=there.credentials(ALICE),
                            )
                            port = int(node.rpartition(":")[2])
                            _, body = await answered(port, request)
                            assert b"bank" not in body
            assert await stored(there, client, "bank") == before + 1


@looped
async def test_nothing_takes_a_message_to_another_topic_or_recalls_it_there(
    there: Deployment,
) -> None:
    pairs = {"TIMER_DELAY_MS": "1000", "UNIQ_KEY": "victim"}
    async with there.everywhere() as knocking:
        for _, client in knocking:
            before = {one: await stored(there, client, one) for one in ("bank", OWN)}
            waits = await there.done(client, BANK, sending("bank", pairs=pairs), b"x")
            handle = waits.read(SendReply).recall_handle
            for topic, one in (
                ("bank", handle),
                (OWN, handle),
                *((OWN, forged) for forged in forged_handles(handle, OWN)),
            ):
                recalled = await there.ask(client, ALICE, RecallMessage(topic, one))
                assert topic == OWN or recalled.code == DENIED
                assert one != handle or recalled.code != 0
            for how in HOW:
                sent = sending(OWN, pairs=forged_pairs(handle, how))
                await there.done(client, ALICE, sent, b"forged")
            await until_stored(there, client, "bank", before["bank"] + 2)
            await until_stored(there, client, OWN, before[OWN] + 1 + len(HOW))
            assert await stored(there, client, "bank") == before["bank"] + 2


@looped
async def test_what_brokers_write_into_messages_no_producer_writes(
    there: Deployment,
) -> None:
    retry = names.retry_topic("mine")
    async with there.everywhere() as knocking:
        for _, client in knocking:
            for v2 in (True, False):
                sent = sending(OWN, v2=v2, pairs=OTHERS_RECEIPT)
                place = (await there.done(client, ALICE, sent, b"x")).read(SendReply)
                asked = waiting(OWN, place.queue_offset)
                (found,) = (await there.done(client, ROOT, asked)).messages()
                kept = properties.parse(found.properties)
                assert ("POP_CK" in kept, kept["K"]) == (False, "v")
            for origin, code in ((FROM_BANK, DENIED), ({"RETRY_TOPIC": OWN}, 0)):
                sent = sending(retry, pairs=origin)
                assert (await there.ask(client, ALICE, sent, b"x")).code == code


@looped
async def test_nobody_sees_or_writes_the_rules_as_settings(there: Deployment) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            for space in (names.ACCESS_NAMESPACES, f"{names.ACCESS_NAMESPACES}_USERS"):
                for header in (
                    GetKvConfig(namespace=space, key="x"),
                    PutKvConfig(namespace=space, key="x", value="x"),
                    DeleteKvConfig(namespace=space, key="x"),
                    GetKvList(namespace=space),
                ):
                    answer = await there.ask(client, ROOT, header)
                    assert (answer.code, answer.body) == (DENIED, b"")


@looped
async def test_nobody_makes_itself_a_superuser(there: Deployment) -> None:
    body = info(password="p", user_type="Super")
    async with there.everywhere() as knocking:
        for _, client in knocking:
            for header in (
                CreateUser("eve"),
                UpdateUser(MANY),
                UpdateUser(ROOT),
                DeleteUser(ROOT),
            ):
                assert (await there.ask(client, MANY, header, body)).code == DENIED
            for header in (GetUser(ROOT), ListUsers()):
                seen = await there.ask(client, MANY, header)
                assert PASSWORD.encode() not in seen.body


@looped
async def test_only_who_staged_commits(there: Deployment) -> None:
    stage = Stage(producer_id="sink", topic=OWN, queue_id=0)
    async with there.knock(there.nodes[0]) as client:
        staged = await there.done(client, ALICE, stage, batch_of(b"staged"))
        offsets = {"broker-0": [staged.read(StageReply).offset]}
        body = json.dumps({"staged": offsets}).encode()
        commit = CommitBatch(producer_id="sink", batch_id=0)
        for who in (NOBODY, BANK, MANY, ROOT):
            assert (await there.ask(client, who, commit, body)).code == DENIED
        await there.done(client, ALICE, commit, body)
        last = await there.ask(client, MANY, LastBatch(producer_id="sink"))
        assert last.code == DENIED


@looped
async def test_who_guesses_a_correlation_id_answers_nobody(there: Deployment) -> None:
    async with there.everywhere() as askers, there.everywhere() as thieves:
        for (_, asker), (_, thief) in zip(askers, thieves, strict=True):
            beat = heartbeat("asker", producers=("askers",))
            await there.done(asker, BANK, HeartBeat(), beat)
            for to in ("asker", "nobody-there"):
                refused = await there.ask(thief, MANY, replying(to), b"forged")
                assert (refused.code, FORGED in refused.remark) == (DENIED, True)
            assert asker.requests.empty()


@looped
async def test_no_right_to_groups_opens_names_that_only_progress_has(
    there: Deployment,
) -> None:
    async with there.everywhere() as knocking:
        for _, client in knocking:
            for group in INNER:
                for header in progress_of(group, "mine"):
                    if isinstance(header, QueryTopicConsumeByWho):
                        continue
                    answer = await there.ask(client, MANY, header)
                    assert (header, answer.code) == (header, DENIED)


@looped
async def test_the_page_shows_who_has_signed_in_no_more_than_it_may(
    there: Deployment,
) -> None:
    for page in there.pages:
        async with aiohttp.ClientSession(page) as session:
            cookie = await _signed_in(there, session)
            for path in (
                *("topics", "groups", "topics/secret", "routes/secret"),
                *("messages?topic=secret", "groups/secret", "dead-letters/secret"),
            ):
                async with session.get(f"/api/{path}", headers=cookie) as answer:
                    text = await answer.text()
                    assert (path, answer.status) == (path, 403), text
                    assert "may not" in text


async def _signed_in(there: Deployment, session: Any) -> dict[str, str]:
    """Sign in, once without what our own page says and once wrongly, and then right."""
    name, password = there.keys[ALICE]
    for key, secret, headers, status in (
        (name, password, {}, 403),
        (there.forged(ALICE), "wrong", HEADERS, 401),
        (name, password, HEADERS, 200),
    ):
        given = {"access_key": key, "secret_key": secret}
        async with session.post("/api/session", json=given, headers=headers) as answer:
            assert answer.status == status, await answer.text()
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
