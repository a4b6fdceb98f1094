"""Runs the C++ RocketMQ client on command: JSON lines in, JSON lines out.

The client is the library inside the PyPI package `rocketmq`. See ../README.md.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rocketmq.client import Message, Producer, PullConsumer, PushConsumer, RecvMessage
from rocketmq.consts import MessageProperty
from rocketmq.exceptions import ffi_check
from rocketmq.ffi import MessageModel, dll

SEND_TIMEOUT_MS = 10_000
RETRY_PAUSE_SECONDS = 0.2

Fields = dict[str, Any]
running: dict[int, PushConsumer] = {}
producers: dict[str, Producer] = {}
opening = threading.Lock()
output = threading.Lock()


class NotAcceptedError(Exception):
    """Makes the wrapper answer RECONSUME_LATER; it knows no other way."""


def emit(command: Fields, event: str, **fields: Any) -> None:
    line = json.dumps({"id": command["id"], "event": event, **fields})
    with output:
        os.write(1, line.encode() + b"\n")


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def instance(command: Fields) -> bytes:
    return f"{os.getpid()}-{command['id']}".encode()


def describe(message: RecvMessage) -> Fields:
    found = {name.value: text(message.get_property(name)) for name in MessageProperty}
    return {
        "body": text(message.body),
        "topic": message.topic,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "msg_id": message.id,
        "reconsume_times": message.reconsume_times,
        "tags": text(message.tags),
        "keys": text(message.keys),
        "properties": {name: value for name, value in found.items() if value},
        "born_ms": message.born_timestamp,
        "stored_ms": message.store_timestamp,
        "at_ms": int(time.time() * 1000),
    }


def describe_error(error: BaseException) -> Fields:
    return {"type": type(error).__name__, "code": -1, "error": str(error)}


def open_producer(command: Fields) -> Producer:
    with opening:
        namesrv = command["namesrv"]
        if namesrv not in producers:
            producer = Producer("agent-producer", timeout=SEND_TIMEOUT_MS)
            producer.set_namesrv_addr(namesrv)
            ffi_check(dll.SetProducerInstanceName(producer._handle, instance(command)))
            producer.start()
            producers[namesrv] = producer
        return producers[namesrv]


def build(command: Fields, wanted: Fields) -> Message:
    message = Message(command["topic"])
    message.set_body(wanted["body"])
    if "tags" in wanted:
        message.set_tags(wanted["tags"])
    if "keys" in wanted:
        message.set_keys(wanted["keys"])
    if "delay_level" in wanted:
        message.set_delay_time_level(wanted["delay_level"])
    for name, value in wanted.get("properties", {}).items():
        message.set_property(name, value)
    return message


def produce(command: Fields) -> None:
    producer = open_producer(command)
    mode = command.get("mode", "sync")
    if mode == "batch":
        produce_batch(command, producer)
        return
    if mode == "async":
        produce_async(command, producer)
        return
    for wanted in command["messages"]:
        message = build(command, wanted)
        if mode == "oneway":
            producer.send_oneway(message)
        elif mode == "ordered":
            shard = wanted.get("shard", 0)
            produce_one(
                command, wanted, lambda m=message, s=shard: producer.send_orderly(m, s)
            )
        else:
            produce_one(command, wanted, lambda m=message: producer.send_sync(m))
        time.sleep(command.get("pause_ms", 0) / 1000)


def produce_one(command: Fields, wanted: Fields, send: Callable[[], Any]) -> None:
    give_up = time.monotonic() + command.get("retry_for_ms", 0) / 1000
    while True:
        try:
            result = send()
        except Exception as error:  # noqa: BLE001 - whatever it is goes to the test
            if time.monotonic() >= give_up:
                emit(command, "failed", body=wanted["body"], **describe_error(error))
                return
            time.sleep(RETRY_PAUSE_SECONDS)
        else:
            emit(command, "sent", body=wanted["body"], **describe_sent(result))
            return


def produce_batch(command: Fields, producer: Producer) -> None:
    result = producer.send_batch([build(command, one) for one in command["messages"]])
    bodies = [one["body"] for one in command["messages"]]
    emit(command, "sent", bodies=bodies, **describe_sent(result))


def produce_async(command: Fields, producer: Producer) -> None:
    open_sends = threading.Semaphore(0)
    messages = [build(command, wanted) for wanted in command["messages"]]

    def succeeded(wanted: Fields, result: Any) -> None:
        emit(command, "sent", body=wanted["body"], **describe_sent(result))
        open_sends.release()

    def failed(wanted: Fields, error: BaseException) -> None:
        emit(command, "failed", body=wanted["body"], **describe_error(error))
        open_sends.release()

    for wanted, message in zip(command["messages"], messages, strict=True):
        producer.send_async(
            message, partial(succeeded, wanted), partial(failed, wanted)
        )
    for _ in messages:
        open_sends.acquire()


def describe_sent(result: Any) -> Fields:
    status = "SEND_OK" if result.status == 0 else result.status.name
    return {"status": status, "msg_id": result.msg_id, "offset": result.offset}


def consume(command: Fields) -> None:
    broadcasting = command.get("broadcasting", False)
    consumer = PushConsumer(
        command["group"],
        orderly=command.get("orderly", False),
        message_model=(
            MessageModel.BROADCASTING if broadcasting else MessageModel.CLUSTERING
        ),
    )
    consumer.set_namesrv_addr(command["namesrv"])
    consumer.set_instance_name(instance(command).decode())
    consumer.set_thread_count(2)

    def listen(message: RecvMessage) -> None:
        accepted = message.reconsume_times >= command.get("fail", 0)
        emit(command, "received", accepted=accepted, **describe(message))
        if not accepted:
            raise NotAcceptedError

    consumer.subscribe(command["topic"], listen, command.get("tags", "*"))
    consumer.start()
    running[command["id"]] = consumer


def pull(command: Fields) -> None:
    consumer = PullConsumer(command["group"])
    consumer.set_namesrv_addr(command["namesrv"])
    consumer.offset_table = {}  # the class shares one among all consumers
    consumer.start()
    for message in consumer.pull(command["topic"], command.get("tags", "*")):
        emit(command, "received", **describe(message))
    consumer.shutdown()


def stop(command: Fields) -> None:
    consumer = running.pop(command["target"], None)
    if consumer is not None:
        consumer.shutdown()


def run(command: Fields) -> None:
    actions = {"produce": produce, "consume": consume, "pull": pull, "stop": stop}
    try:
        actions[command["do"]](command)
    except Exception as error:  # noqa: BLE001 - whatever it is goes to the test
        emit(command, "error", **describe_error(error))
    else:
        emit(command, "done")


def main() -> None:
    deadline = threading.Timer(float(sys.argv[1]), os._exit, [3])
    deadline.daemon = True
    deadline.start()
    sys.unraisablehook = lambda _: None  # NotAcceptedError passes a C frame on its way
    for line in sys.stdin:
        command = json.loads(line)
        threading.Thread(target=run, args=[command], daemon=True).start()
    os._exit(0)  # the library's threads outlive an ordinary exit


main()
