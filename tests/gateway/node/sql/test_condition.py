"""What whole conditions answer, and what bounds them."""

from __future__ import annotations

import asyncio

import pytest

from gateway.node.sql import (
    CompilerBusyError,
    NotCompiledError,
    SqlError,
    compile_condition,
    compile_later,
    compile_quickly,
)
from gateway.node.sql.condition import MAX_CHARACTERS, QUICK_CHARACTERS, _parser
from gateway.wire import message, properties
from tests.gateway.node.sql.cases import PROPERTIES, SEMANTICS
from tests.remoting import looped

RECORD = message.encode(
    message.Message(
        topic="t",
        queue_id=0,
        queue_offset=0,
        message_id=0,
        body=b"x",
        properties=properties.dump(PROPERTIES),
    )
)


@pytest.mark.parametrize(("expression", "answer"), SEMANTICS)
def test_conditions_answer_as_rocketmqs(expression: str, answer: object):
    condition = compile_condition(expression)
    pairs = message.view_pairs(RECORD)
    if answer is ValueError:
        with pytest.raises(ValueError):
            condition.evaluate(pairs)
    else:
        assert condition.evaluate(pairs) is answer
    assert condition.accepts(RECORD) is (answer is True)
    assert condition.accepts(memoryview(RECORD)) is (answer is True)


def test_how_many_properties_are_looked_up_is_known():
    assert compile_condition("a > 5 AND b = c OR d IN ('x')").terms == 4
    assert compile_condition("1 = 1").terms == 0


def test_an_expression_is_compiled_once():
    assert compile_condition("a > 77") is compile_condition("a > 77")


def test_an_error_is_the_same_each_time_and_does_not_grow():
    texts, depths = set(), set()
    for _ in range(3):
        with pytest.raises(SqlError) as refused:
            compile_condition("a >")
        texts.add(str(refused.value))
        depths.add(len(refused.traceback))
    assert len(texts) == 1
    assert len(depths) == 1


def test_so_long_an_expression_is_compiled_and_a_longer_one_refused():
    longest = "a = 1" + " OR a = 1" * ((MAX_CHARACTERS - 5) // 9)
    assert compile_condition(longest).evaluate(b"\x02a\x011\x02") is True
    with pytest.raises(SqlError, match=f"allowed: {MAX_CHARACTERS}"):
        compile_condition(longest.ljust(MAX_CHARACTERS + 1))


def test_a_long_expression_is_compiled_on_a_thread_and_then_known():
    text = " OR ".join(f"later{number} = 1" for number in range(50))
    assert len(text) > QUICK_CHARACTERS
    with pytest.raises(NotCompiledError):
        compile_quickly(text)
    asyncio.run(compile_later(text))
    assert compile_quickly(text).terms == 50


def test_the_first_expression_has_the_grammar_loaded_on_the_thread():
    _parser.cache_clear()
    with pytest.raises(NotCompiledError):
        compile_quickly("first = 1")
    asyncio.run(compile_later("first = 1"))
    assert compile_quickly("first = 1").terms == 1
    assert compile_quickly("second = 1").terms == 1


def test_an_expression_that_is_wrong_is_told_from_the_thread_as_well():
    text = "a > " + " " * QUICK_CHARACTERS
    asyncio.run(compile_later(text))
    with pytest.raises(SqlError):
        compile_quickly(text)


@looped
async def test_no_more_expressions_wait_for_the_thread_than_it_can_soon_compile():
    texts = [
        " OR ".join(f"busy{number}x{term} = 1" for term in range(20))
        for number in range(300)
    ]
    done = await asyncio.gather(*map(compile_later, texts), return_exceptions=True)
    busy = [one for one in done if isinstance(one, CompilerBusyError)]
    # While they come it compiles some.
    assert 0 < len(busy) <= 300 - 256
    assert all(one is None for one in done if one not in busy)


def test_what_is_kept_compiled_is_bounded_by_its_characters():
    text = " OR ".join(f"old{number} = 1" for number in range(50))
    asyncio.run(compile_later(text))
    for number in range(20):
        compile_condition((f"a = {number}").ljust(MAX_CHARACTERS))
    with pytest.raises(NotCompiledError):
        compile_quickly(text)
