"""Nobody has anything done without permission, whatever and however they ask."""

from __future__ import annotations

import types
import typing

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.processors.admission import credentials_of
from ropeway.gateway.processors.needs import KNOWN, NEEDS
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.request_limits import UnauthenticatedConfig
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.namesrv import (
    DeleteKvConfig,
    GetKvConfig,
    PutKvConfig,
)
from ropeway.gateway.wire.commands.namesrv_admin import GetKvList
from ropeway.gateway.wire.commands.offsets import GetMaxOffset
from ropeway.gateway.wire.commands.query import ViewMessage
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack, SendReply
from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.frame import ROCKETMQ, Envelope
from ropeway.gateway.wire.header import ROWS, to_fields
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.guarded import (
    ALICE,
    NOBODY,
    PASSWORD,
    ROOT,
    acl_of,
    allow,
    ask,
    guarded,
    populate,
)
from tests.remoting import looped, two_running, until
from tests.requests import heartbeat, pulling, sending

SECRET = "secret"
DENIED = ResponseCode.NO_PERMISSION
GROUP = {"groupName": SECRET}
QUEUE = {"topic": SECRET, "brokerName": "broker-0", "queueId": 0}
NUMBERS = dict.fromkeys(("so", "q", "rq", "pt", "it"), 0)
BATCH_ACK = {"c": SECRET, "t": SECRET, "r": "0", "b": "AQ==", **NUMBERS}
BODIES = {
    Code.HEART_BEAT: {
        "clientID": "c",
        "consumerDataSet": [
            {
                "groupName": SECRET,
                "subscriptionDataSet": [{"topic": SECRET, "subString": "*"}],
            }
        ],
    },
    Code.LOCK_BATCH_MQ: {"consumerGroup": SECRET, "clientId": "c", "mqSet": [QUEUE]},
    Code.UNLOCK_BATCH_MQ: {"consumerGroup": SECRET, "clientId": "c", "mqSet": [QUEUE]},
    Code.QUERY_ASSIGNMENT: {"topic": SECRET, "consumerGroup": SECRET, "clientId": "c"},
    Code.SET_MESSAGE_REQUEST_MODE: {"topic": SECRET, "consumerGroup": SECRET},
    Code.BATCH_ACK_MESSAGE: {"bn": "broker-0", "acks": [BATCH_ACK]},
    Code.LITE_SUBSCRIPTION_CTL: {
        "subscriptionSet": [
            {
                "action": "PARTIAL_ADD",
                "clientId": "c",
                "group": SECRET,
                "topic": SECRET,
            }
        ]
    },
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: GROUP,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: {"groupConfigList": [GROUP]},
    Code.UPDATE_AND_CREATE_TOPIC_LIST: {
        "topicConfigList": [
            {"topicName": SECRET, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
        ]
    },
}


def made(code: int):
    """A header with something in every field."""
    kind = ROWS[code].header
    return kind(**{field.name: _value(field) for field in msgspec.structs.fields(kind)})


def _value(field):
    kinds = [field.type]
    if typing.get_origin(field.type) in (typing.Union, types.UnionType):
        kinds = list(typing.get_args(field.type))
    kind = typing.get_origin(kinds[0]) or kinds[0]
    kind = getattr(kind, "__origin__", kind)
    if field.name == "bname":
        return None
    return {str: SECRET, bool: False, int: 0}.get(kind, 0)


def wrongly_signed(
    fields: dict[str, str], body: bytes
) -> list[tuple[dict[str, str], bytes]]:
    """A send's fields and body, of which its signature is not, or not one at all."""
    return [
        (fields, body + b"b"),
        ({**fields, "b": "other"}, body),
        ({**fields, "more": "x"}, body),
        ({**fields, "Signature": ""}, body),
        ({**fields, "Signature": fields["Signature"][:-1]}, body),
        ({**fields, "Signature": "\u00e4" * 9000}, body),
        ({**fields, "AccessKey": "\u0430lice"}, body),
        ({**fields, "SignatureMethod": "HmacMD5"}, body),
        ({k: v for k, v in fields.items() if k != "Signature"}, body),
    ]


@looped
async def test_a_stranger_gets_no_answer_but_no(tmp_path):
    async with guarded(tmp_path) as (app, client):
        # One connection asks for all.
        app.server.unauthenticated.limits = UnauthenticatedConfig(refusals=10_000)
        for code in sorted(PROCESSORS):
            for fields in (
                {},
                {"AccessKey": ALICE},
                {"AccessKey": ALICE, "topic": "t"},
                {"Signature": "c2ln"},
                {"AccessKey": "", "Signature": ""},
                {"SecurityToken": "token"},
            ):
                answer = await client.ask(code, b"", fields=fields)
                refused = answer.code if NEEDS[code].of_nodes else DENIED
                assert (code, answer.code) == (code, refused or DENIED)
                assert answer.body == b""


@looped
async def test_who_has_no_permission_gets_nothing_done(tmp_path):
    async with guarded(tmp_path, allow("Topic:mine"), allow("Group:mine")) as (
        app,
        client,
    ):
        await ask(client, ROOT, sending(SECRET), b"hello")
        for code in sorted(PROCESSORS):
            body = msgspec.json.encode(BODIES[code]) if code in BODIES else b""
            for who in (NOBODY, ALICE):
                answer = await ask(client, who, made(code), body)
                expected = answer.code if NEEDS[code] is KNOWN else DENIED
                assert (Code(code), answer.code) == (code, expected)
        assert SECRET in app.node.routes.topics


@looped
async def test_who_has_permission_has_it_done(tmp_path):
    rules = (allow("Topic:orders", "Pub", "Sub"), allow("Group:readers", "Sub"))
    async with guarded(tmp_path, *rules) as (_, client):
        for v2 in (True, False):
            sent = await ask(client, ALICE, sending("orders", v2=v2), b"hello")
            assert sent.code == 0
        pulled = await ask(client, ALICE, pulling("orders"))
        assert [one.body for one in pulled.messages()] == [b"hello"] * 2
        for group, topic, code in (
            ("readers", "orders", 0),
            ("readers", "prices", DENIED),
            ("others", "orders", DENIED),
        ):
            beat = heartbeat("c", group, topic=topic)
            assert (await ask(client, ALICE, HeartBeat(), beat)).code == code


@looped
async def test_the_answer_says_who_may_not_do_what_and_no_rule(tmp_path):
    async with guarded(tmp_path) as (_, client):
        with capture_logs() as logs:
            answer = await ask(client, ALICE, sending(SECRET), b"hello")
        assert answer.remark == f"{ALICE} may not Pub Topic:{SECRET} from 127.0.0.1"
        (line,) = logs
        assert line["principal"] == "users:alice"
        assert line["rule"] == "no policy matches"
        assert PASSWORD not in repr(logs)


@looped
async def test_a_wrong_signature_is_refused_whatever_is_wrong(tmp_path):
    async with guarded(tmp_path, allow("*")) as (_, client):
        header = sending("orders")
        assert (await ask(client, ALICE, header, b"a", password="x")).code == DENIED
        good = await ask(client, ALICE, header, b"a")
        assert good.code == 0
        who = Credentials(access_key=ALICE, secret_key=PASSWORD)
        fields = signed(to_fields(header), b"a", who)
        for changed, body in wrongly_signed(fields, b"a"):
            assert (await client.ask(310, body, fields=changed)).code == DENIED
        again = await client.ask(310, b"a", fields=fields, serialize_type=ROCKETMQ)
        assert again.code == 0


@looped
async def test_a_topic_that_is_claimed_opens_no_other(tmp_path):
    rules = (allow("Topic:mine"), allow("Group:mine"))
    async with guarded(tmp_path, *rules) as (_, client):
        sent = await ask(client, ROOT, sending(SECRET), b"hello")
        await ask(client, ROOT, sending("mine"), b"hello")
        place = parse_offset_msg_id(sent.read(SendReply).msg_id)
        for claimed in (None, "mine", "%RETRY%mine"):
            seen = await ask(
                client, ALICE, ViewMessage(offset=place.message_id, topic=claimed)
            )
            assert seen.code != 0
            back = ConsumerSendMsgBack(
                offset=place.message_id,
                group="mine",
                delay_level=0,
                origin_topic=claimed,
            )
            assert (await ask(client, ALICE, back)).code != 0


@looped
async def test_a_retry_topic_of_another_group_cannot_be_read_nor_filled(tmp_path):
    async with guarded(tmp_path, allow("Topic:*"), allow("Group:mine")) as (_, client):
        theirs = "%RETRY%theirs"
        pulled = await ask(client, ALICE, pulling(theirs, group="mine"))
        assert pulled.code == DENIED
        sent = await ask(client, ALICE, sending(theirs, producer_group="mine"), b"x")
        assert sent.code == DENIED


@looped
async def test_nobody_sees_or_writes_the_rules_as_settings(tmp_path):
    async with guarded(tmp_path) as (app, client):
        settings = app.node.routes.settings
        kept = {
            place: value
            for place, value in settings.items()
            if place[0].startswith("ROPEWAY_ACL")
        }
        # The cluster's secret, and what the hook keeps.
        assert len({namespace for namespace, _ in kept}) > 1
        for namespace, key in [*kept, ("ROPEWAY_ACL", "none"), ("ROPEWAY_ACLx", "x")]:
            for header in (
                GetKvConfig(namespace=namespace, key=key),
                PutKvConfig(namespace=namespace, key=key, value="x"),
                DeleteKvConfig(namespace=namespace, key=key),
                GetKvList(namespace=namespace),
            ):
                answer = await ask(client, ROOT, header)
                assert (answer.code, answer.body) == (DENIED, b"")
        assert {place: settings[place] for place in kept} == kept


@looped
async def test_nobody_learns_which_users_there_are(tmp_path):
    async with guarded(tmp_path, allow("*")) as (app, client):
        await app.node.guard.administration.update_user(NOBODY, enabled=False)
        answers = [
            await ask(client, who, sending("orders"), b"x", password=password)
            for who in (ALICE, NOBODY, ROOT, "absent")
            for password in ("wrong", "")
        ]
        assert {(one.code, one.remark) for one in answers} == {
            (DENIED, "the access key, signature or token is not valid")
        }
        # Who knows a password is not told that the user is disabled, either.
        disabled = await ask(client, NOBODY, sending("orders"), b"x")
        assert (disabled.code, disabled.remark) == (DENIED, answers[0].remark)


@looped
async def test_a_dry_run_lets_everything_pass_and_says_so(tmp_path):
    async with guarded(tmp_path, dry_run=True) as (_, client):
        with capture_logs() as logs:
            assert (await client.ask(sending("orders"), b"x")).code == 0
            assert (await ask(client, NOBODY, sending("orders"), b"x")).code == 0
        refused = [one for one in logs if one["event"] == "would be refused"]
        assert len(refused) == 2


@looped
async def test_one_way_requests_are_guarded_too(tmp_path):
    async with guarded(tmp_path) as (app, client):
        client.send(sending("orders"), b"x", one_way=True)
        assert (await ask(client, NOBODY, GetMaxOffset("orders", 0))).code == DENIED
        assert app.node.topics.get("orders") is None


@looped
async def test_who_sent_a_request_travels_with_it_to_another_node(tmp_path):
    async with two_running(tmp_path, acl=acl_of(tmp_path)) as (
        (near, client),
        (far, other),
    ):
        await populate(near, allow("Topic:orders"))
        await until(far.node.guard.administration.rules)
        for one in (near, far):
            await until(lambda one=one: one.node.forwarder.others)
        await ask(other, ROOT, sending("orders"), b"made")
        await ask(other, ROOT, sending(SECRET), b"made")
        name = next(iter(near.node.forwarder.others))
        for who, topic, code in (
            (ALICE, "orders", 0),
            (ALICE, SECRET, DENIED),
            (NOBODY, "orders", DENIED),
        ):
            header = msgspec.structs.replace(sending(topic), bname=name)
            assert (await ask(client, who, header, b"hello")).code == code
        # A node that guards less than the one it asks gets nobody in by that.
        near.node.guard._dry_run = True
        header = msgspec.structs.replace(sending("orders"), bname=name)
        assert (await client.ask(header, b"hello")).code != 0


def envelope(fields: bytes, version: int = 500) -> Envelope:
    return Envelope(code=310, opaque=1, version=version, ext_fields=msgspec.Raw(fields))


def test_what_is_signed_is_every_value_and_the_body():
    found = credentials_of(envelope(b'{"b":"2","Signature":"s","a":"1"}'), b"body")
    assert (found.signature, found.content()) == ("s", b"12body")


def test_numbers_count_as_the_text_that_the_client_signed():
    found = credentials_of(envelope(b'{"AccessKey":"k","e":3,"k":true,"n":null}'), b"")
    assert (found.access_key, found.content()) == ("k", b"k3true")
    assert credentials_of(envelope(b"null"), b"").given is False


@given(st.binary(max_size=60))
def test_fields_that_are_none_are_a_header_error_and_nothing_else(data):
    try:
        credentials_of(envelope(data), b"")
    except HeaderError:
        return


def test_bodies_are_those_that_processors_read():
    assert bodies.decode(bodies.LockBatchBody, msgspec.json.encode(BODIES[41]))
