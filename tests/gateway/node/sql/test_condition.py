"""What whole conditions answer, and what bounds them."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.node.sql import (
    CompilerBusyError,
    NotCompiledError,
    SqlError,
    compile_condition,
    compile_later,
    compile_quickly,
)
from ropeway.gateway.node.sql.condition import MAX_CHARACTERS, QUICK_CHARACTERS, _parser
from ropeway.gateway.wire import message, properties
from tests.gateway.node.sql.cases import PROPERTIES, SEMANTICS
from tests.gateway.node.test_fair_queueing import Asking, Leadership, Log
from tests.remoting import looped, until

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


def of_terms(name: str, count: int = 50) -> str:
    """An expression that is compiled in several steps."""
    return " OR ".join(f"{name}{number} = 1" for number in range(count))


def fair_queue_of() -> FairQueue:
    return FairQueue(LimitsConfig(), Log(), Leadership())


def wanted() -> bool:
    return True


@looped
async def test_a_long_expression_is_compiled_later_and_then_known():
    text = of_terms("later")
    assert len(text) > QUICK_CHARACTERS
    with pytest.raises(NotCompiledError):
        compile_quickly(text)
    await compile_later(text, fair_queue_of().slices("me"), wanted)
    assert compile_quickly(text).terms == 50


@looped
async def test_the_first_expression_has_the_grammar_loaded_on_a_thread():
    _parser.cache_clear()
    with pytest.raises(NotCompiledError):
        compile_quickly("first = 1")
    await compile_later("first = 1", fair_queue_of().slices("me"), wanted)
    assert compile_quickly("first = 1").terms == 1
    assert compile_quickly("second = 1").terms == 1


@looped
@pytest.mark.parametrize("wrong", ["a > ", "a ? b", "a = 'b"])
async def test_an_expression_that_is_wrong_at_its_end_is_told_later_as_well(wrong: str):
    text = f"{of_terms('wrong')} OR {wrong}"
    await compile_later(text, fair_queue_of().slices("me"), wanted)
    with pytest.raises(SqlError):
        compile_quickly(text)


@looped
@pytest.mark.parametrize("end", ["", " >"])
async def test_others_have_turns_while_a_long_expression_is_compiled(
    monkeypatch: pytest.MonkeyPatch, end: str
):
    """A thread took the interpreter from the loop, for 5 ms at a time."""
    monkeypatch.setattr("ropeway.gateway.node.fair_queueing._TURN_S", 0.0)
    fair_queue = fair_queue_of()
    taken: list[str] = []
    Asking("other", fair_queue, 10, taken, "others")
    text = of_terms("turns", 900) + end
    await compile_later(text, fair_queue.slices("me"), wanted)
    assert len(taken) == 10


@looped
async def test_flows_compile_one_after_the_other_and_one_that_waits_no_more_drops_out():
    fair_queue = fair_queue_of()
    mine = fair_queue.slices("me")
    await mine.begin_large()
    texts = [of_terms("mine"), of_terms("gone")]
    waiting = [
        asyncio.create_task(compile_later(text, fair_queue.slices("me"), is_there))
        for text, is_there in zip(texts, (wanted, lambda: False), strict=True)
    ]
    await until(lambda: fair_queue.waiting_bytes > sum(map(len, texts)))
    await compile_later(of_terms("others"), fair_queue.slices("others"), wanted)
    mine.end_large()
    _, dropped = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(dropped, CompilerBusyError)
    assert compile_quickly(texts[0]).terms == 50
    with pytest.raises(NotCompiledError):
        compile_quickly(texts[1])
    assert fair_queue.waiting_bytes == 0


@looped
async def test_no_more_expressions_of_a_flow_wait_than_can_soon_be_compiled():
    fair_queue = fair_queue_of()
    texts = [of_terms(f"busy{number}x", 20) for number in range(258)]
    first = fair_queue.slices("me")
    await first.begin_large()
    waiting = asyncio.gather(
        *(compile_later(text, fair_queue.slices("me"), wanted) for text in texts),
        return_exceptions=True,
    )
    await until(lambda: fair_queue.waiting_bytes > 0)
    # Others compile meanwhile.
    await compile_later(of_terms("beside"), fair_queue.slices("others"), wanted)
    first.end_large()
    done = await waiting
    assert done[:256] == [None] * 256
    assert [type(one) for one in done[256:]] == [CompilerBusyError] * 2
    await compile_later(of_terms("again"), fair_queue.slices("me"), wanted)


@looped
async def test_what_is_kept_compiled_is_bounded_by_its_characters():
    text = of_terms("old")
    await compile_later(text, fair_queue_of().slices("me"), wanted)
    for number in range(20):
        compile_condition((f"a = {number}").ljust(MAX_CHARACTERS))
    with pytest.raises(NotCompiledError):
        compile_quickly(text)
