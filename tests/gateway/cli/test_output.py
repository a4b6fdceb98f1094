"""What commands print."""

import json

import msgspec
import pytest

from ropeway.client import MessageQueue, ReceivedMessage
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import (
    FORMAT_NAMES,
    formatted,
    message_row,
    print_facts,
    print_message,
    print_rows,
    progress,
)

MESSAGE = ReceivedMessage(
    topic="orders",
    body=b"one coffee",
    queue=MessageQueue("orders", "broker-0", 3),
    queue_offset=7,
    msg_id="ID",
    offset_msg_id="PLACE",
    message_id=1,
    tags=None,
    keys=("a", "b"),
    properties={"x": "y"},
    reconsume_times=0,
    flag=0,
    sys_flag=0,
    born_ms=1,
    born_host=("127.0.0.1", 1),
    store_ms=2,
    store_host=("127.0.0.1", 2),
)


def test_columns_are_as_wide_as_they_need_to_be(capsys):
    print_rows([{"name": "a", "n": 10}, {"name": "longer", "n": 2}], as_json=False)
    assert capsys.readouterr().out == "name    n\na       10\nlonger  2\n"


def test_facts_are_lines_or_an_object(capsys):
    print_facts({"a": 1, "longer": ""}, as_json=False)
    print_facts({"a": 1}, as_json=True)
    assert capsys.readouterr().out == 'a       1\nlonger\n{"a":1}\n'


def test_progress_is_shown_only_on_a_terminal(capsys, monkeypatch):
    with progress("work", 2) as step:
        step()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("work", 2) as step:
        step()
        step()
    assert "work" in capsys.readouterr().err


def test_no_rows_are_nothing_or_an_empty_list(capsys):
    print_rows([], as_json=False)
    print_rows([], as_json=True)
    assert capsys.readouterr().out == "[]\n"


def test_every_name_of_a_format_is_one_of_a_message():
    assert set(message_row(MESSAGE)) == set(FORMAT_NAMES.split())
    template = "{topic} {broker} {queue_id} {offset} {keys} {body}"
    assert formatted(template, message_row(MESSAGE)) == (
        "orders broker-0 3 7 a b one coffee"
    )


@pytest.mark.parametrize("template", ["{none}", "{", "{0}", "{body.none}"])
def test_a_format_that_names_nothing_is_refused(template):
    with pytest.raises(MisusedError, match="allowed in braces: topic broker"):
        formatted(template, message_row(MESSAGE))


def test_bodies_that_are_no_text_are_kept_whole(capsysbinary):
    odd = msgspec.structs.replace(MESSAGE, body=b"\xff\x00")
    print_message(odd, "", as_json=True)
    found = json.loads(capsysbinary.readouterr().out)
    assert found["body_base64"] == "/wA="
    assert "body" not in found
    print_message(odd, "{body}", as_json=False)
    assert capsysbinary.readouterr().out == b"\xff\x00\n"


def test_a_terminal_gets_escapes_for_what_is_no_text(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    odd = msgspec.structs.replace(MESSAGE, body=b"\xff")
    print_message(odd, "{body}", as_json=False)
    assert capsys.readouterr().out == "\\xff\n"
