"""Codes that clients and brokers really use are in the lists."""

from __future__ import annotations

from gateway.wire.codes import (
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


def test_no_code_has_two_names() -> None:
    for codes in (RequestCode, ResponseCode, Language):
        assert len(codes.__members__) == len(list(codes))


def test_a_language_is_a_number_or_a_name_of_bounded_length() -> None:
    assert language_name(3) == "PYTHON"
    assert language_name(99) == "99"
    assert language_name("ZIG") == "ZIG"
    assert language_name("x" * 99) == "x" * 32
