"""Runs RocketMQ 5's gRPC clients on command: JSON lines in and out. See ../README.md.

It has an environment of its own: the client's package is named as an older one is.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rocketmq.grpc_protocol import FilterType, TransactionResolution
from rocketmq.v5.client import ClientConfiguration, Credentials
from rocketmq.v5.consumer import (
    ConsumeResult,
    LitePushConsumer,
    MessageListener,
    PushConsumer,
    SimpleConsumer,
)
from rocketmq.v5.model import FilterExpression, Message
from rocketmq.v5.producer import Producer, TransactionChecker

BATCH = 16
WAIT_S = 5
REQUEST_TIMEOUT_S = 30
"""By default 3 s, as long as a loaded machine may stand still."""
RESOLUTIONS = {
    "commit": TransactionResolution.COMMIT,
    "rollback": TransactionResolution.ROLLBACK,
}

Fields = dict[str, Any]
running: dict[int, Any] = {}
output = threading.Lock()


def emit(command: Fields, event: str, **fields: Any) -> None:
    line = json.dumps({"id": command["id"], "event": event, **fields})
    with output:
        os.write(1, line.encode() + b"\n")


def describe(message: Message) -> Fields:
    return {
        "body": message.body.decode(),
        "topic": message.topic,
        "msg_id": message.message_id,
        "tags": message.tag,
        "keys": " ".join(sorted(message.keys)),
        "properties": dict(message.properties),
        "group": message.message_group,
        "priority": message.priority,
        "lite_topic": message.lite_topic,
        "attempt": message.delivery_attempt,
        "at_ms": time.time_ns() // 1_000_000,
    }


def build(topic: str, wanted: Fields) -> Message:
    message = Message()
    message.topic = topic
    message.body = wanted["body"].encode()
    if "tags" in wanted:
        message.tag = wanted["tags"]
    for key in wanted.get("keys", "").split():
        message.keys = key
    if "group" in wanted:
        message.message_group = wanted["group"]
    if "priority" in wanted:
        message.priority = wanted["priority"]
    if "lite_topic" in wanted:
        message.lite_topic = wanted["lite_topic"]
    if "delay_ms" in wanted:
        # The client takes whole seconds: not before the time that was asked for.
        message.delivery_timestamp = int(time.time() + wanted["delay_ms"] / 1000) + 1
    for name, value in wanted.get("properties", {}).items():
        message.add_property(name, value)
    return message


def configuration(command: Fields) -> ClientConfiguration:
    return ClientConfiguration(
        command["namesrv"], Credentials(), request_timeout=REQUEST_TIMEOUT_S
    )


def sent(command: Fields, wanted: Fields, receipt: Any) -> None:
    emit(
        command,
        "sent",
        body=wanted["body"],
        msg_id=receipt.message_id,
        recall_handle=receipt.recall_handle,
    )


def produce(command: Fields) -> None:
    producer = Producer(configuration(command), (command["topic"],))
    producer.startup()
    try:
        for one in command["messages"]:
            sent(command, one, producer.send(build(command["topic"], one)))
    finally:
        producer.shutdown()


class Until:
    """What is running until it is stopped, and ends by itself then."""

    def shutdown(self) -> None:
        pass


def keep_sending(command: Fields) -> None:
    """Send numbers one after the other until it is stopped."""
    running[command["id"]] = Until()
    producer = Producer(configuration(command), (command["topic"],))
    producer.startup()
    try:
        number = 0
        while command["id"] in running:
            one = {"body": str(number), **group_of(command, number)}
            try:
                sent(command, one, producer.send(build(command["topic"], one)))
                number += 1
            except Exception as error:  # noqa: BLE001 - the library's own
                emit(command, "missed", **describe_error(error))
            time.sleep(command.get("pause_ms", 0) / 1000)
    finally:
        producer.shutdown()


def group_of(command: Fields, number: int) -> Fields:
    groups = command.get("groups", 0)
    return {"group": str(number % groups)} if groups else {}


class Checker(TransactionChecker):
    def __init__(self, command: Fields) -> None:
        self._command = command

    def check(self, message: Message) -> Any:
        emit(self._command, "checked", **describe(message))
        answer = message.properties.get("check")
        return RESOLUTIONS.get(
            answer, TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
        )


def transact(command: Fields) -> None:
    """A producer of transactions, which answers what it is asked until its stop."""
    checker = Checker(command)
    producer = Producer(configuration(command), (command["topic"],), checker)
    producer.startup()
    running[command["id"]] = producer
    for one in command["messages"]:
        transaction = producer.begin_transaction()
        receipt = producer.send(build(command["topic"], one), transaction)
        sent(command, one, receipt)
        end = one.get("properties", {}).get("local")
        if end == "commit":
            transaction.commit()
        elif end == "rollback":
            transaction.rollback()


def recall(command: Fields) -> None:
    producer = Producer(configuration(command), (command["topic"],))
    producer.startup()
    try:
        message_id = producer.recall_message(command["topic"], command["handle"])
        emit(command, "recalled", msg_id=message_id)
    finally:
        producer.shutdown()


def subscriptions(command: Fields) -> dict[str, FilterExpression]:
    if "sql" in command:
        expression = FilterExpression(command["sql"], FilterType.SQL)
    else:
        expression = FilterExpression(command.get("tags", "*"))
    return {command["topic"]: expression}


def accept(command: Fields, message: Message) -> bool:
    accepted = message.delivery_attempt > command.get("fail", 0)
    emit(command, "received", **describe(message), accepted=accepted)
    return accepted


class Listener(MessageListener):
    def __init__(self, command: Fields) -> None:
        self._command = command

    def consume(self, message: Message) -> ConsumeResult:
        if accept(self._command, message):
            return ConsumeResult.SUCCESS
        return ConsumeResult.FAILURE


def push(command: Fields) -> None:
    consumer = PushConsumer(
        configuration(command),
        command["group"],
        Listener(command),
        subscriptions(command),
    )
    consumer.startup()
    running[command["id"]] = consumer


def consume_lite(command: Fields) -> None:
    consumer = LitePushConsumer(
        configuration(command),
        command["group"],
        command["topic"],
        Listener(command),
    )
    consumer.startup()
    running[command["id"]] = consumer
    if command.get("say_all"):
        consumer.subscribe_lite_all()


def subscribe_lite(command: Fields) -> None:
    consumer = running[command["target"]]
    consumer.subscribe_lite(command["lite_topic"])
    # It has sent the letters of the name, one by one; this sends all names whole, as
    # the client does every half minute.
    consumer.subscribe_lite_all()
    emit(command, "subscribed")


def unsubscribe_lite(command: Fields) -> None:
    running[command["target"]].unsubscribe_lite(command["lite_topic"])
    emit(command, "subscribed")


def poll(command: Fields) -> None:
    """Acknowledges what it accepts, and keeps the rest for `change_ms` only."""
    consumer = SimpleConsumer(
        configuration(command),
        command["group"],
        subscriptions(command),
        await_duration=WAIT_S,
    )
    consumer.startup()
    running[command["id"]] = consumer
    threading.Thread(target=receive, args=(command, consumer), daemon=True).start()


def receive(command: Fields, consumer: SimpleConsumer) -> None:
    invisible_s = command.get("invisible_ms", 60_000) // 1000
    while command["id"] in running:
        try:
            for one in consumer.receive(BATCH, invisible_s) or ():
                if accept(command, one):
                    consumer.ack(one)
                else:
                    change_s = command.get("change_ms", 0) // 1000
                    consumer.change_invisible_duration(one, change_s)
        except Exception as error:  # noqa: BLE001 - the library's own
            # It is stopped, or the server is away: what comes next shows.
            emit(command, "missed", **describe_error(error))


def stop(command: Fields) -> None:
    """A consumer ends when its last long poll has: nobody waits for that."""
    client = running.pop(command["target"])
    threading.Thread(target=client.shutdown, daemon=True).start()


def describe_error(error: Exception) -> Fields:
    return {"type": type(error).__name__, "code": -1, "error": str(error)}


ACTIONS: dict[str, Callable[[Fields], None]] = {
    "produce": produce,
    "keep_sending": keep_sending,
    "transact": transact,
    "recall": recall,
    "consume": push,
    "consume_lite": consume_lite,
    "subscribe_lite": subscribe_lite,
    "unsubscribe_lite": unsubscribe_lite,
    "poll": poll,
    "stop": stop,
}


def run(command: Fields) -> None:
    try:
        ACTIONS[command["do"]](command)
    except Exception as error:  # noqa: BLE001 - told to the test
        emit(command, "error", **describe_error(error))
    else:
        emit(command, "done")


def main() -> None:
    deadline = threading.Timer(float(sys.argv[1]), os._exit, (3,))
    deadline.daemon = True
    deadline.start()
    for line in sys.stdin:
        threading.Thread(target=run, args=(json.loads(line),), daemon=True).start()
    # Threads of the client do not end by themselves.
    os._exit(0)


if __name__ == "__main__":
    main()
