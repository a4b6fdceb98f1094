"""The queues that messages go to."""

from ropeway.client import (
    Message,
    MessageQueue,
    select_by_keys,
    select_by_sharding_key,
)
from ropeway.client.queue_selector import QueueChoice

QUEUES = [MessageQueue("t", broker, number) for broker in "ab" for number in range(2)]
PLAIN = Message("t", b"x")


def test_a_sharding_keys_queue_is_javas():
    queues = [MessageQueue("t", "b", number) for number in range(7)]
    # "polygenelubricants".hashCode() is Integer.MIN_VALUE, whose remainder is -2.
    for key, queue_id in {"a": 97 % 7, "polygenelubricants": 2, "": 0}.items():
        message = Message("t", b"x", sharding_key=key)
        assert select_by_sharding_key(queues, message).queue_id == queue_id


def test_messages_that_leave_the_choice_go_to_each_queue_in_turn():
    choice = QueueChoice()
    for _ in range(3):
        assert {choice.choose(QUEUES, PLAIN, None) for _ in QUEUES} == set(QUEUES)


def test_after_a_failure_another_broker_comes_before_another_queue():
    choice = QueueChoice()
    for queues, allowed in [
        (QUEUES, QUEUES[2:]),
        (QUEUES[:2], QUEUES[1:2]),
        (QUEUES[:1], QUEUES[:1]),
    ]:
        taken = {choice.choose(queues, PLAIN, None, QUEUES[0]) for _ in range(8)}
        assert taken == set(allowed)


def test_a_selector_decides_before_a_sharding_key_and_both_before_a_failure():
    choice = QueueChoice()
    keyed = Message("t", b"x", sharding_key="a")
    at_key = select_by_sharding_key(QUEUES, keyed)
    for _ in range(4):
        assert choice.choose(QUEUES, keyed, None, at_key) == at_key
        assert choice.choose(QUEUES, keyed, lambda some, _: some[3]) == QUEUES[3]


def test_one_key_has_one_queue_and_it_is_javas():
    queues = [MessageQueue("t", "b", number) for number in range(7)]
    for keys, queue_id in {
        ("a",): 97 % 7,
        ("polygenelubricants",): 2,
        ("a", "b"): (97 * 31**2 + 32 * 31 + 98) % 7,
    }.items():
        message = Message("t", b"x", keys=keys)
        assert select_by_keys(queues, message).queue_id == queue_id
