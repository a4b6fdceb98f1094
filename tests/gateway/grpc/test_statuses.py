"""Every code that a processor can answer with has one here, and errors say no more."""

from __future__ import annotations

from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import code_of, status, together
from ropeway.gateway.processors.errors import CODES
from ropeway.gateway.wire.codes import ResponseCode


def test_codes_that_processors_answer_with_are_told_apart():
    assert code_of(ResponseCode.TOPIC_NOT_EXIST) == Code.TOPIC_NOT_FOUND
    assert code_of(ResponseCode.NO_PERMISSION) == Code.FORBIDDEN
    assert code_of(ResponseCode.SYSTEM_ERROR) == Code.INTERNAL_SERVER_ERROR
    vague = {
        code for code in CODES.values() if code_of(code) == Code.INTERNAL_SERVER_ERROR
    }
    assert vague == {ResponseCode.SYSTEM_ERROR}


def test_a_status_without_a_sentence_has_its_name():
    assert status(Code.OK).message == "OK"
    assert len(status(Code.BAD_REQUEST, "x" * 5000).message) == 1000


def test_several_results_have_one_status():
    assert together({Code.OK}).code == Code.OK
    assert together({Code.OK, Code.FORBIDDEN}).code == Code.MULTIPLE_RESULTS
