"""Every declared command against Java's header classes and against captures."""

from __future__ import annotations

import re
import typing
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ropeway.gateway.wire.commands
from ropeway.gateway.wire import message
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands import pop, transactions
from ropeway.gateway.wire.frame import (
    I32,
    I64,
    JSON,
    ROCKETMQ,
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import (
    ROWS,
    Header,
    Row,
    decode_fields,
    decode_request,
    from_fields,
    to_fields,
)
from tests import captures

NOT_THE_COMMANDS_OWN = {
    "AccessKey": "who signs, for access control",
    "Signature": "the signature, for access control",
    "SecurityToken": "a temporary key's token, for access control",
    "OnsChannel": "where an account of the C++ client belongs; signed, else unused",
    "ReqT": "RequestType of Java: STREAM from a proxy's clients; nobody reads it here",
    "bname": "the broker that the client means; the connection says it",
    "lo": "whether queues are logical ones of static topics, which we have not",
    "ns": "the namespace, which clients have put into the topic's name already",
    "nsd": "whether they have",
    "oway": "whether the request is one-way; the flag says it",
}
"""Fields that any request may have, and why no header declares them."""

UNDECLARED_CAPTURES = {9999: "does not exist, to see how a broker refuses it"}
"""Codes that there are captures of, and why they are not declared."""

NOT_IN_JAVAS_CLASS = {
    "GetRouteInfo": {"ownOnly"},
    "CreateTopic": {"allBrokers", "begins", "ends", "hold", "writes"},
    "PullMessage": {"bulk"},
    "QueryMessage": {"_UNIQUE_KEY_QUERY"},
    "SendReply": {"MSG_REGION", "TRACE_ON"},
}
"""Fields that Java reads and writes without its header class, and three of ours."""

INHERITED = {"bname"}
"""What Java's header classes have from RpcRequestHeader."""

OURS = {
    RequestCode.ROPEWAY_FORWARD,
    RequestCode.ROPEWAY_RELAY,
    RequestCode.ROPEWAY_ASK,
    RequestCode.ROPEWAY_LIST_TIMERS,
    RequestCode.ROPEWAY_GET_LATEST,
    RequestCode.ROPEWAY_COMPACT_TOPIC,
    *(RequestCode.ROPEWAY_TRIM_TOPIC, RequestCode.ROPEWAY_MIRROR_MESSAGES),
    RequestCode.ROPEWAY_STAGE,
    RequestCode.ROPEWAY_COMMIT_BATCH,
    RequestCode.ROPEWAY_LAST_BATCH,
    RequestCode.ROPEWAY_NODE_STATUS,
    RequestCode.ROPEWAY_STEP_BACK,
    RequestCode.ROPEWAY_MOVE_QUEUE,
    RequestCode.ROPEWAY_TAKE_QUEUE,
    RequestCode.ROPEWAY_STORE_DUE,
    RequestCode.ROPEWAY_DRAIN_BROKER,
    RequestCode.ROPEWAY_GET_DRAIN,
    RequestCode.ROPEWAY_REMOVE_BROKER,
    RequestCode.ROPEWAY_TOPIC_PLACES,
    RequestCode.ROPEWAY_LIST_HALVES,
    RequestCode.ROPEWAY_EXPLAIN_ACCESS,
    RequestCode.ROPEWAY_SET_QUOTA,
    RequestCode.ROPEWAY_DELETE_QUOTA,
    RequestCode.ROPEWAY_LIST_QUOTAS,
    RequestCode.ROPEWAY_NOTE_RESEND,
}
"""Commands that RocketMQ does not have."""

LAXER_THAN_JAVA = {
    ("CreateTopic", "topicFilterType"): "has one sensible value; nobody reads it",
    ("CreateTopic", "order"): "Java has a default and only complains in its log",
    ("GetAllTopicConfig", "topicSeq"): "4.x sends no fields and gets all topics",
    ("GetAllGroupConfig", "groupSeq"): "4.x sends no fields and gets all groups",
    ("AllGroupConfigReply", "totalGroupNum"): "4.x does not say",
    ("UpdateGlobalWhiteAddrs", "aclFileFullPath"): "mqadmin 4.9.7 does not send it",
}
"""Fields that Java's class requires and ours does not, and why."""

JAVA_TYPES: dict[str, object] = {
    "String": str,
    "BoundaryType": str,
    "Integer": I32,
    "int": I32,
    "Long": I64,
    "long": I64,
    "Boolean": bool,
    "boolean": bool,
}

VALUES: dict[object, st.SearchStrategy[object]] = {
    str: st.text(max_size=30),
    bool: st.booleans(),
    I32: st.integers(-(1 << 31), (1 << 31) - 1),
    I64: st.integers(-(1 << 63), (1 << 63) - 1),
}

HEADERS = {
    kind.__name__: kind
    for row in ROWS.values()
    for kind in (row.header, row.reply)
    if kind.__struct_fields__ and row.code not in OURS
}

REPLIES = {row.reply.__name__: row.reply for row in ROWS.values()}


def all_rows() -> list[object]:
    rows = [row for row in ROWS.values() if row.code not in OURS]
    return [pytest.param(row, id=row.code.name) for row in rows]


def source(kind: type[Header]) -> str:
    found = re.search(
        r"Source: ([^\n]+?)(?:\.java)?, RocketMQ [45]\.", kind.__doc__ or ""
    )
    assert found, f"{kind.__name__} does not say where its facts are from"
    return found[1]


def plain_type(field: msgspec.structs.FieldInfo) -> tuple[object, bool]:
    """The type of a field without its None, and whether it may be None."""
    parts = typing.get_args(field.type)
    if type(None) in parts:
        (kind,) = (part for part in parts if part is not type(None))
        return kind, True
    return field.type, False


@cache
def values(kind: type[Header]) -> st.SearchStrategy[Header]:
    arguments = {}
    for field in msgspec.structs.fields(kind):
        wanted, optional = plain_type(field)
        strategy = VALUES[wanted]
        arguments[field.name] = st.none() | strategy if optional else strategy
    return st.builds(kind, **arguments)


@pytest.mark.parametrize("row", all_rows())
def test_every_command_says_what_it_is_for_and_where_its_facts_are_from(
    row: Row,
) -> None:
    doc = row.header.__doc__ or ""
    assert len(doc.splitlines()[0]) > 10
    assert source(row.header)


@pytest.mark.parametrize("name", HEADERS)
def test_fields_are_those_of_javas_class(name: str) -> None:
    kind = HEADERS[name]
    java = captures.java_headers().get(source(kind))
    if java is None:
        # It shares the fields of the class it is derived from, or Java writes its
        # fields without a class.
        assert kind.__bases__[0] is not Header or "." in source(kind)
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    extra = NOT_IN_JAVAS_CLASS.get(name, set())
    assert set(fields) - extra - INHERITED == set(java) - INHERITED
    for field_name, java_type in java.items():
        field = fields[field_name]
        wanted = JAVA_TYPES[java_type.rstrip("!")]
        assert plain_type(field)[0] == wanted, field_name
        required = java_type.endswith("!") and (name, field_name) not in LAXER_THAN_JAVA
        assert field.required == required, field_name


def test_every_exception_from_javas_classes_is_still_one() -> None:
    for name, field_name in LAXER_THAN_JAVA:
        kind = HEADERS[name]
        assert captures.java_headers()[source(kind)][field_name].endswith("!")
    for name, extra in NOT_IN_JAVAS_CLASS.items():
        assert not extra & set(captures.java_headers()[source(HEADERS[name])])


def test_every_captured_command_is_declared() -> None:
    assert set(captures.codes()) - set(UNDECLARED_CAPTURES) <= set(ROWS)
    assert not set(UNDECLARED_CAPTURES) & set(ROWS)


@pytest.mark.parametrize(
    "code", [code for code in captures.codes() if code not in UNDECLARED_CAPTURES]
)
def test_captured_requests_are_read_and_written_again(code: int) -> None:
    for capture in captures.load(code):
        row = ROWS[code]
        raw = capture.request.raw
        envelope = decode_envelope(raw.serialize_type, raw.header)
        fields = {key: str(value) for key, value in capture.request.fields.items()}
        if capture.client.startswith("cpp"):
            # C++ writes booleans as 0 and 1.
            for name in {"batch", "unitMode"} & set(fields):
                fields[name] = {"0": "false", "1": "true"}[fields[name]]
        declared = set(row.header.__struct_encode_fields__)
        assert set(fields) - declared <= set(NOT_THE_COMMANDS_OWN)
        written = to_fields(decode_request(row, envelope.ext_fields))
        assert {key: written[key] for key in fields if key in declared} == {
            key: value for key, value in fields.items() if key in declared
        }


@pytest.mark.parametrize(
    "code", [code for code in captures.codes() if code not in UNDECLARED_CAPTURES]
)
def test_captured_answers_are_read_and_written_again(code: int) -> None:
    reply = ROWS[code].reply
    for side in [one.response for one in captures.load(code) if one.response]:
        found = code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
        if side.header["code"] != ResponseCode.SUCCESS and not found:
            continue
        envelope = decode_envelope(side.raw.serialize_type, side.raw.header)
        written = to_fields(from_fields(reply, envelope.ext_fields))
        assert {key: written[key] for key in side.fields} == side.fields


def test_fields_that_belong_to_no_command_are_declared_by_none() -> None:
    declared = {
        name for row in ROWS.values() for name in row.header.__struct_encode_fields__
    }
    assert declared & set(NOT_THE_COMMANDS_OWN) == {"bname"}


@pytest.mark.parametrize("row", all_rows())
@settings(max_examples=12)
@given(data=st.data(), serialize_type=st.sampled_from([JSON, ROCKETMQ]))
def test_any_header_survives_the_wire(
    row: Row, data: st.DataObject, serialize_type: int
) -> None:
    header = data.draw(values(row.header))
    frame = encode_frame(
        row.code, 1, fields=to_fields(header), serialize_type=serialize_type
    )
    (raw,) = FrameReader().feed(frame)
    envelope = decode_envelope(raw.serialize_type, raw.header)
    assert envelope.code == row.code
    assert decode_request(ROWS[envelope.code], envelope.ext_fields) == header


@pytest.mark.parametrize("name", REPLIES)
@settings(max_examples=12)
@given(data=st.data())
def test_any_answer_survives_the_wire(name: str, data: st.DataObject) -> None:
    reply = REPLIES[name]
    header = data.draw(values(reply))
    (raw,) = FrameReader().feed(encode_frame(0, 1, fields=to_fields(header)))
    envelope = decode_envelope(raw.serialize_type, raw.header)
    assert from_fields(reply, envelope.ext_fields) == header
    assert decode_fields(envelope.ext_fields) == to_fields(header)


def test_the_package_lists_every_module_that_declares_commands() -> None:
    modules = {row.header.__module__.rpartition(".")[2] for row in ROWS.values()}
    assert modules == set(ropeway.gateway.wire.commands.__all__)


def test_flags_and_choices_are_those_of_rocketmq() -> None:
    # ConsumeInitMode.java, MessageSysFlag.java, 5.3.4.
    assert pop.FROM_LATEST == 1
    assert transactions.NOT_DECIDED == 0
    assert message.COMMITTED_FLAG == 2 << 2


ASSUMED: dict[str, dict[str, object]] = {
    "ChangeInvisibleTime": {"suspend": False},
    "CloneGroupOffset": {"offline": False},
    "CompactTopic": {"force": False},
    "TrimTopic": {"queue_id": -1, "dry_run": False},
    "ConsumerSendMsgBack": {"unit_mode": False},
    "CreateAccessConfig": {"admin": False},
    "CreateTopic": {"topic_filter_type": "SINGLE_TAG", "order": False, "force": False},
    "DeleteGroup": {"clean_offset": False},
    "EndTransaction": {"from_transaction_check": False},
    "Forward": {
        "to": "",
        "session": "",
        "number": -1,
        "signed_ms": 0,
        "signature": "",
        "held_ms": -1,
        "sent_ms": 0,
    },
    "DrainBroker": {"undo": False},
    "GetConsumerRunningInfo": {"jstack_enable": False},
    "GetLiteClientInfo": {
        "parent_topic": "",
        "group": "",
        "client_id": "",
        "max_count": 1000,
    },
    "GetLiteGroupInfo": {"top_k": 0},
    "GetLiteTopicInfo": {"parent_topic": "", "lite_topic": ""},
    "GetMaxOffset": {"committed": True},
    "ListHalves": {"after": 0},
    "ListTimers": {"after": ""},
    "Notification": {"order": False},
    "NotificationReply": {"polling_full": False},
    "PopMessage": {"order": False},
    "PushReplyMessage": {"properties": "", "unit_mode": False},
    "QueryConsumeQueue": {"queue_id": 0, "index": 0, "count": 0},
    "QueryConsumerOffset": {"set_zero_if_not_found": True},
    "QueryMessage": {"unique_key_query": False},
    "RegisterBroker": {"compressed": False},
    "RemoveBroker": {"gone": False},
    "ResetClientOffset": {"queue_id": -1},
    "ResetOffset": {"queue_id": -1},
    "SearchOffset": {"boundary_type": "LOWER"},
    "SendBatchMessage": {"properties": "", "unit_mode": False, "batch": False},
    "SendMessage": {"properties": "", "unit_mode": False, "batch": False},
    "SendMessageV2": {"properties": "", "unit_mode": False, "batch": False},
    "SendReplyMessage": {"properties": "", "unit_mode": False, "batch": False},
    "SendReplyMessageV2": {"properties": "", "unit_mode": False, "batch": False},
}
"""What fields are where a request or an answer leaves them out; the others are None."""


def test_what_is_left_out_is_what_its_class_assumes() -> None:
    declared = {}
    for kind in {kind for row in ROWS.values() for kind in (row.header, row.reply)}:
        known = {
            field.name: field.default
            for field in msgspec.structs.fields(kind)
            if not field.required and field.default is not None
        }
        if known:
            declared[kind.__name__] = known
    assert declared == ASSUMED


REPLY_OF = {
    "SEND_MESSAGE": "SendReply",
    "PULL_MESSAGE": "PullReply",
    "QUERY_MESSAGE": "QueryReply",
    "QUERY_CONSUMER_OFFSET": "Offset",
    "GET_ALL_TOPIC_CONFIG": "AllTopicConfigReply",
    "GET_BROKER_CONFIG": "BrokerConfigReply",
    "SEARCH_OFFSET_BY_TIMESTAMP": "Offset",
    "GET_MAX_OFFSET": "Offset",
    "GET_MIN_OFFSET": "Offset",
    "GET_EARLIEST_MSG_STORETIME": "StoreTime",
    "HEART_BEAT": "HeartBeatReply",
    "GET_KV_CONFIG": "KvValue",
    "REGISTER_BROKER": "RegisterBrokerReply",
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG": "AllGroupConfigReply",
    "WIPE_WRITE_PERM_OF_BROKER": "WipeWritePermReply",
    "SEND_MESSAGE_V2": "SendReply",
    "SEND_BATCH_MESSAGE": "SendReply",
    "QUERY_DATA_VERSION": "DataVersionReply",
    "SEND_REPLY_MESSAGE": "SendReply",
    "SEND_REPLY_MESSAGE_V2": "SendReply",
    "ADD_WRITE_PERM_OF_BROKER": "AddWritePermReply",
    "LITE_PULL_MESSAGE": "PullReply",
    "RECALL_MESSAGE": "RecallReply",
    "ROPEWAY_MIRROR_MESSAGES": "MessagesMirrored",
    "ROPEWAY_STAGE": "StageReply",
    "ROPEWAY_LAST_BATCH": "LastBatchReply",
    "POP_MESSAGE": "PopReply",
    "PEEK_MESSAGE": "PopReply",
    "CHANGE_MESSAGE_INVISIBLETIME": "InvisibleReply",
    "NOTIFICATION": "NotificationReply",
    "POLLING_INFO": "PollingInfoReply",
    "POP_LITE_MESSAGE": "PopLiteReply",
}
"""Requests whose answers have fields, and the class that has them."""


def test_each_request_is_answered_by_the_header_of_its_class() -> None:
    declared = {
        RequestCode(code).name: row.reply.__name__
        for code, row in ROWS.items()
        if row.reply.__name__ != "Empty"
    }
    assert declared == REPLY_OF
