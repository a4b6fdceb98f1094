"""Bodies go from files and pipes to consumers as they are."""

import json

import pytest

from tests.gateway.cli.conftest import objects

BODIES = [b"\xff\x00\xfe", b"two\nlines\r\n", b"\n", b" ", b"caf\xc3\xa9"]


@pytest.fixture
def topic(run, ropeway_topic) -> str:
    run("topic", "create", ropeway_topic, "--queues", "1")
    return ropeway_topic


def read(run, topic: str, *options: str) -> bytes:
    return run("consume", topic, "--exit-at-end", *options).stdout_bytes


def test_a_file_is_a_message_and_so_is_all_of_the_standard_input(run, topic, tmp_path):
    names = [str(tmp_path / str(number)) for number in range(len(BODIES))]
    for number, body in enumerate(BODIES):
        (tmp_path / str(number)).write_bytes(body)
    run("produce", topic, *(word for name in names for word in ("--file", name)))
    run("produce", topic, "--file", "-", stdin=b"all\nof\0it")
    assert read(run, topic, "--raw") == b"".join([*BODIES, b"all\nof\0it"])
    hexes = read(run, topic, "--hex").split()
    assert hexes == [one.hex().encode() for one in [*BODIES, b"all\nof\0it"]]


def test_what_is_read_with_a_delimiter_can_be_sent_with_it(run, topic):
    stream = b"\x1e".join(BODIES) + b"\x1e"
    run("produce", topic, "--delimiter", "\\x1e", "--batch", "3", stdin=stream)
    assert read(run, topic, "--raw", "--delimiter", "\\x1e") == stream


def test_lines_with_a_delimiter_keep_their_carriage_returns(run, topic):
    run("produce", topic, "--delimiter", "\\n", stdin=b"a\r\nb\n")
    assert read(run, topic) == b"a\r\nb\n"


def test_json_lines_carry_bodies_keys_tags_and_properties(run, topic):
    for body in BODIES:
        options = ["--tag", "t", "--key", "k1", "--key", "k2", "--property", "a=b"]
        run("produce", topic, "--file", "-", *options, stdin=body)
    printed = read(run, topic, "--json")
    run("produce", topic, "--input", "json", "--batch", "9", stdin=printed)
    found = objects(run("consume", topic, "--exit-at-end", "--json"))
    before, after = found[: len(BODIES)], found[len(BODIES) :]
    for one, other in zip(before, after, strict=True):
        assert one["msg_id"] != other["msg_id"]
        assert {name: one.get(name) for name in ("body", "body_base64", "tag")} == {
            name: other.get(name) for name in ("body", "body_base64", "tag")
        }
        assert (other["keys"], other["properties"]["a"]) == ("k1 k2", "b")


def test_json_lines_carry_sharding_keys_and_flags(run, topic):
    lines = [
        {"body": str(number), "sharding_key": f"order-{number % 2}", "flag": number}
        for number in range(6)
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    run("produce", topic, "--input", "json", "--batch", "9", stdin=stdin)
    printed = read(run, topic, "--json")
    run("produce", topic, "--input", "json", stdin=printed)
    found = objects(run("consume", topic, "--exit-at-end", "--json"))
    meant = [
        {name: one[name] for name in ("body", "sharding_key", "flag")} for one in found
    ]
    assert sorted(meant[:6], key=lambda one: one["flag"]) == lines
    assert meant[6:] == meant[:6]
    assert all(
        one["properties"]["__SHARDINGKEY"] == one["sharding_key"] for one in found
    )


def test_a_batch_goes_to_one_queue_for_each_sharding_key(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "16")
    lines = [
        {"body": f"{number}", "sharding_key": f"order-{number % 5}"}
        for number in range(20)
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    for batch in ("20", "1"):
        given = ["--input", "json", "--batch", batch]
        run("produce", ropeway_topic, *given, stdin=stdin)
    queues: dict[str, set[int]] = {}
    for one in objects(run("consume", ropeway_topic, "--exit-at-end", "--json")):
        queues.setdefault(one["sharding_key"], set()).add(one["queue_id"])
    assert {key: len(found) for key, found in queues.items()} == {
        f"order-{number}": 1 for number in range(5)
    }


def test_each_message_may_begin_with_its_key(run, topic):
    run("produce", topic, "--key-delimiter", ":", stdin=b"k1:one:1\nk2:two\n")
    assert read(run, topic, "--format", "{keys}={body}") == b"k1=one:1\nk2=two\n"
    printed = read(run, topic, "--format", "{keys}:{body}")
    run("produce", topic, "--key-delimiter", ":", stdin=b"k3 k4:three\n" + printed)
    again = read(run, topic, "--format", "{keys}:{body}")
    assert again == printed + b"k3 k4:three\n" + printed
    refused = run("produce", topic, "--key-delimiter", ":", code=2, stdin=b"none\n")
    assert "b'none' has no b':'; allowed: a key" in refused.stderr


def test_an_empty_body_deletes_a_key_of_a_compacted_topic(run, ropeway_topic):
    compacted = ["--queues", "1", "--attribute", "cleanup.policy=COMPACTION"]
    run("topic", "create", ropeway_topic, *compacted)
    run("produce", ropeway_topic, "--key", "apple", "--file", "-", stdin=b"")
    run("produce", ropeway_topic, "--key-delimiter", "=", stdin=b"pear=")
    found = objects(run("consume", ropeway_topic, "--exit-at-end", "--json"))
    assert [(one["keys"], one["body"]) for one in found] == [
        ("apple", ""),
        ("pear", ""),
    ]


@pytest.mark.parametrize(
    ("args", "stdin", "complaint"),
    [
        (["m", "--file", "f"], b"", "MESSAGE and --file are both given"),
        (["m", "--input", "json"], b"", "are for the standard input"),
        (["--input", "json", "--delimiter", ";"], b"", "takes no --delimiter"),
        (["--input", "json"], b"nothing\n", "b'nothing': JSON is malformed"),
        (["--input", "json"], b"{}\n", "one of body and body_base64"),
        (["--key-delimiter", "="], b"\xff=1\n", "key b'\\xff'; allowed: UTF-8"),
    ],
)
def test_what_makes_no_message_is_said_in_words(run, topic, args, stdin, complaint):
    assert complaint in run("produce", topic, *args, code=2, stdin=stdin).stderr


def test_a_file_that_is_not_there_is_said(run, topic):
    refused = run("produce", topic, "--file", "/nowhere/x", code=1)
    assert refused.stderr == "Error: /nowhere/x: No such file or directory\n"


def test_json_of_consume_is_the_json_of_produce(run, topic):
    line = json.dumps({"body": "one", "keys": "k", "properties": {"UNIQ_KEY": "x"}})
    (sent,) = objects(
        run("produce", topic, "--input", "json", "--json", stdin=line.encode())
    )
    assert sent["msg_id"] != "x"
