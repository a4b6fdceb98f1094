"""Codes that clients and brokers really use are in the lists."""

from __future__ import annotations

import json
from pathlib import Path

from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    Language,
    RequestCode,
    ResponseCode,
    language_name,
)
from tests import captures


def test_every_captured_request_is_in_the_list_by_its_code() -> None:
    unknown = set(captures.codes()) - set(RequestCode)
    assert unknown == {9999}


def test_every_captured_answer_is_in_the_list() -> None:
    answers = {
        capture.response.header["code"]
        for capture in captures.load_all()
        if capture.response
    }
    assert answers <= set(ResponseCode)


def test_every_captured_language_is_in_the_list() -> None:
    spoken = {
        side.header["language"]
        for capture in captures.load_all()
        for side in capture.sides
    }
    assert spoken <= set(Language.__members__)


def test_captured_answers_have_the_answer_flag_and_requests_have_not() -> None:
    for capture in captures.load_all():
        assert not capture.request.header["flag"] & RESPONSE_FLAG
        if capture.response:
            assert capture.response.header["flag"] & RESPONSE_FLAG
            assert not capture.request.header["flag"] & ONE_WAY_FLAG


def test_our_own_requests_have_numbers_that_rocketmq_leaves_free() -> None:
    free = range(20_000, 21_000)
    ours = {code for code in RequestCode if code.name.startswith("ROPEWAY_")}
    assert ours == {code for code in RequestCode if code in free}
    assert ours
    assert not ours & set(captures.codes())


def test_no_code_has_two_names() -> None:
    for codes in (RequestCode, ResponseCode, Language):
        assert len(codes.__members__) == len(list(codes))


def test_a_language_is_a_number_or_a_name_of_bounded_length() -> None:
    assert language_name(3) == "PYTHON"
    assert language_name(99) == "99"
    assert language_name("ZIG") == "ZIG"
    assert language_name("x" * 99) == "x" * 32


OF_ROCKETMQ = json.loads(Path(__file__).with_name("codes_of_rocketmq.json").read_text())
"""The constants of RocketMQ's classes, taken from their bytecode."""
OLDER = {
    "UPDATE_AND_CREATE_ACL_CONFIG": 50,
    "DELETE_ACL_CONFIG": 51,
    "GET_BROKER_CLUSTER_ACL_INFO": 52,
    "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG": 53,
    "GET_BROKER_CLUSTER_ACL_CONFIG": 54,
    "BROKER_CLOSE_CHANNEL_REQUEST": 1014,
    "CHECK_NOT_ACTIVE_BROKER_REQUEST": 1015,
    "GET_BROKER_LIVE_INFO_REQUEST": 1016,
    "GET_SYNC_STATE_DATA_REQUEST": 1017,
    "RAFT_BROKER_HEART_BEAT_EVENT_REQUEST": 1018,
}
"""Of RocketMQ 4.9 and 5.0, which later versions do not have."""


def test_codes_are_those_of_rocketmq() -> None:
    for ours, theirs in (
        (RequestCode, OF_ROCKETMQ["requests"] | OLDER),
        (ResponseCode, OF_ROCKETMQ["responses"]),
    ):
        foreign = {n: int(v) for n, v in ours.__members__.items() if "ROPEWAY" not in n}
        assert foreign == {name: theirs[name] for name in foreign}


def test_our_own_requests_are_where_rocketmq_has_none() -> None:
    own = {n: int(v) for n, v in RequestCode.__members__.items() if "ROPEWAY" in n}
    assert own == {
        "ROPEWAY_FORWARD": 20001,
        "ROPEWAY_RELAY": 20002,
        "ROPEWAY_ASK": 20003,
        "ROPEWAY_LIST_TIMERS": 20004,
        "ROPEWAY_STAGE": 20005,
        "ROPEWAY_COMMIT_BATCH": 20006,
        "ROPEWAY_LAST_BATCH": 20007,
        "ROPEWAY_NODE_STATUS": 20010,
        "ROPEWAY_STEP_BACK": 20011,
        "ROPEWAY_MOVE_QUEUE": 20015,
        "ROPEWAY_TAKE_QUEUE": 20016,
        "ROPEWAY_STORE_DUE": 20017,
        "ROPEWAY_DRAIN_BROKER": 20018,
        "ROPEWAY_GET_DRAIN": 20019,
        "ROPEWAY_REMOVE_BROKER": 20022,
        "ROPEWAY_TOPIC_PLACES": 20012,
        "ROPEWAY_EXPLAIN_ACCESS": 20014,
        "ROPEWAY_GET_LATEST": 20020,
        "ROPEWAY_COMPACT_TOPIC": 20021,
        "ROPEWAY_TRIM_TOPIC": 20023,
        "ROPEWAY_MIRROR_MESSAGES": 20024,
        "ROPEWAY_SET_QUOTA": 20030,
        "ROPEWAY_DELETE_QUOTA": 20031,
        "ROPEWAY_LIST_QUOTAS": 20032,
        "ROPEWAY_NOTE_RESEND": 20033,
        "ROPEWAY_LIST_HALVES": 20034,
    }
    assert not set(own.values()) & set(OF_ROCKETMQ["requests"].values())


def test_languages_have_the_numbers_of_rocketmq() -> None:
    # LanguageCode.java, RocketMQ 5.5.0.
    assert [one.name for one in sorted(Language)] == [
        *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER"),
        *("HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"),
    ]
    assert [int(one) for one in sorted(Language)] == list(range(14))
