"""What answers say, or that they lack it."""

from __future__ import annotations

import pytest

from ropeway.gateway.grpc.answers import header_of, messages_of, refused
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import Offset
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.errors import HeaderError


def test_an_answer_has_the_fields_of_its_kind_or_lacks_them():
    answer = Answer(header=Offset(9))
    assert header_of(answer, Offset).offset == 9
    for wrong in (answer, Answer()):
        with pytest.raises(HeaderError, match="PullReply"):
            header_of(wrong, PullReply)


def test_a_refusal_has_the_code_and_the_words_of_the_protocol():
    error = refused(Answer(ResponseCode.TOPIC_NOT_EXIST, "no topic"))
    assert (error.code, error.message) == (Code.TOPIC_NOT_FOUND, "no topic")
    assert not list(messages_of(Answer()))
