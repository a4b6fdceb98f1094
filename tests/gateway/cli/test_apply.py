"""`ropeway apply` and `ropeway diff`, with users and policies where there are some."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli.main import main
from tests.gateway.cli.secured import PASSWORD, ROOT, Secured, secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = """\
topics:
  orders: {{queues: 2, attributes: {{message.type: FIFO}}}}
  prices:
groups:
  kitchen: {{retries: 3, in_order: true}}
users:
  root: {{type: Super}}
  somebody: {{}}
  alice: {{password_file: {folder}/password}}
policies:
- {{user: alice, resource: "Topic:orders", actions: [Sub, Pub]}}
- {{user: alice, resource: "Group:*", actions: [Sub], sources: [10.0.0.0/8]}}
quotas:
- {{topic: orders, send_bytes: 100, read_bytes: 0}}
- {{group: kitchen, cold_bytes: 50}}
- {{topic: prices, send_bytes: 0}}
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Secured]:
    with secured(tmp_path) as made:
        yield made


def call(node: Secured, line: str, text: str, code: int = 0) -> Result:
    environment = node.environment(ROOT)
    done = CliRunner().invoke(main, line.split(), input=text, env=environment)
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.mark.slow
def test_a_cluster_becomes_what_a_file_declares_and_stays_so(node):
    text = FILE.format(folder=node.folder)
    shown = call(node, "diff -f -", text, 1).stdout
    assert "+ topic orders\n    queues: 2\n    attributes: message.type=FIFO\n" in shown
    assert "+ group kitchen\n    in_order: true\n    retries: 3\n" in shown
    assert "+ user alice\n" in shown
    assert "+ policy alice Topic:orders\n    actions: Pub,Sub\n" in shown
    assert "+ quota topic orders\n    send_bytes: 100\n" in shown
    assert "prices" not in shown.partition("+ quota")[2]
    assert call(node, "apply -f - --dry-run", text).stdout == shown
    refused = call(node, "apply -f -", text, 1).stderr
    assert "Apply 8 to create? Standard input is no terminal" in refused
    assert call(node, "diff -f -", text, 1).stdout == shown

    done = call(node, "apply -f - --yes", text)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "topic orders created",
        "topic prices created",
        "group kitchen created",
        "user alice created",
        "policy alice Topic:orders created",
        "policy alice Group:* created",
        "quota topic orders created",
        "quota group kitchen created",
    ]
    assert call(node, "apply -f - --yes", text).stdout == "nothing differs\n"
    assert call(node, "diff -f -", text).stdout == ""

    changed = (
        text.replace("queues: 2", "queues: 4")
        .replace("retries: 3", "retries: 5")
        .replace("[Sub, Pub]", "[Sub]")
        .replace("somebody: {}", "somebody: {status: disable}")
        .replace("send_bytes: 100,", "send_bytes: 0, send_requests: 5,")
    )
    rows = json.loads(call(node, "diff -f - --json", changed, 1).stdout)
    assert [(one["kind"], one["before"], one["after"]) for one in rows] == [
        ("topic", {"queues": 2}, {"queues": 4}),
        ("group", {"retries": 3}, {"retries": 5}),
        ("user", {"status": "enable"}, {"status": "disable"}),
        (
            "policy",
            {"actions": ["Pub", "Sub"]},
            {"actions": ["Sub"]},
        ),
        (
            "quota",
            {"send_requests": None, "send_bytes": 100},
            {"send_requests": 5, "send_bytes": None},
        ),
    ]
    assert json.loads(call(node, "apply -f - --yes --json", changed).stdout) == rows
    assert call(node, "diff -f -", changed).stdout == ""


@pytest.mark.slow
def test_nothing_is_deleted_without_prune(node):
    text = FILE.format(folder=node.folder)
    call(node, "apply -f - --yes", text)
    less = "topics: {orders: }\ngroups: {}\nusers: {}\npolicies: []\nquotas: []\n"
    assert call(node, "diff -f -", less).stdout == ""
    call(node, "topic create kept", "")
    assert call(node, "diff -f - --prune", "groups: {kitchen: }").stdout == ""
    shown = call(node, "diff -f - --prune", less, 1).stdout
    assert sorted(shown.splitlines()) == [
        "- group kitchen",
        "- policy alice Group:*",
        "- policy alice Topic:orders",
        "- quota group kitchen",
        "- quota topic orders",
        "- topic kept",
        "- topic prices",
        "- user alice",
        "- user somebody",
    ]
    kinds = [line.split()[1] for line in shown.splitlines()]
    assert kinds == sorted(
        kinds, key=["quota", "policy", "user", "group", "topic"].index
    )
    call(node, "apply -f - --prune --yes", less)
    assert call(node, "diff -f - --prune", less).stdout == ""
    names = call(node, "topic list", "").stdout.split()
    assert names == ["topic", "orders"]


def test_a_new_user_needs_a_password_and_nothing_is_done_without(node):
    text = "topics: {orders: {}}\nusers: {bob: {}}"
    refused = call(node, "apply -f - --yes", text, 2)
    assert "user bob does not exist yet; give a password_file" in refused.stderr
    missing = text.replace("bob: {}", "bob: {password_file: nowhere}")
    refused = call(node, "apply -f - --yes", missing, 2)
    assert "no secret can be read from nowhere: No such file" in refused.stderr
    assert "orders" not in call(node, "topic list", "").stdout
    assert PASSWORD not in refused.output
