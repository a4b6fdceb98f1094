"""What requests need is what they touch, and every request needs something."""

from types import SimpleNamespace

import msgspec
import pytest

import ropeway.gateway.processors.all  # noqa: F401 - registers every processor
from ropeway.acl.api import Action, Need, Resource, ResourceKind
from ropeway.gateway.processors.needs import (
    GET,
    KNOWN,
    NEEDS,
    NODES,
    PUB,
    SIGNED,
    SUB,
    UPDATE,
    on_cluster,
    on_every_group,
    on_every_topic,
    on_group,
    on_group_if_given,
    on_popped,
    on_topic,
    on_topic_if_given,
)
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.header import ROWS
from tests.remoting import looped, running

CONTEXT = SimpleNamespace(
    node=SimpleNamespace(
        config=SimpleNamespace(cluster="DefaultCluster"),
        groups=SimpleNamespace(get={}.get),
        offsets=SimpleNamespace(groups_of=lambda _: ()),
    )
)


class Request(msgspec.Struct):
    topic: str | None = None
    consumer_group: str | None = None


def needed(needs, **fields):
    return [
        (str(one.resource), one.actions) for one in needs(Request(**fields), CONTEXT)
    ]


def test_every_code_with_a_processor_declares_what_it_needs():
    assert NEEDS.keys() == PROCESSORS.keys()


@pytest.mark.rule(
    "acl.md", "`KNOWN`, `NODES` and `SIGNED` are those that need nobody's permission"
)
def test_only_these_need_nobodys_permission():
    assert {code for code, needs in NEEDS.items() if needs is KNOWN} == {
        RequestCode.CHECK_CLIENT_CONFIG,
        # What they name was staged by somebody who might send it.
        RequestCode.ROPEWAY_COMMIT_BATCH,
        RequestCode.ROPEWAY_LAST_BATCH,
    }
    assert NEEDS[RequestCode.ROPEWAY_FORWARD] is SIGNED
    assert {code for code, needs in NEEDS.items() if needs.of_nodes} == {
        RequestCode.ROPEWAY_FORWARD,
        RequestCode.ROPEWAY_RELAY,
        RequestCode.ROPEWAY_ASK,
        RequestCode.ROPEWAY_TAKE_QUEUE,
        RequestCode.ROPEWAY_STORE_DUE,
    }
    assert NODES.of_nodes


@looped
async def test_no_client_sends_what_only_nodes_do_to_whichever_node(tmp_path):
    """A slave sent it on, and its master took it for another node's."""
    codes = [code for code, needs in NEEDS.items() if needs is NODES]
    assert len(codes) == 4
    async with running(tmp_path) as (app, client):
        for leads in (True, False):
            app.node.leadership.leads = leads
            for code in codes:
                answer = await client.ask(code)
                assert answer.code == ResponseCode.NO_PERMISSION
                assert "is a client; allowed: nodes of this cluster" in answer.remark
        app.node.leadership.leads = True


def test_a_field_names_the_resource():
    assert needed(on_topic(PUB), topic="orders") == [("Topic:orders", (PUB,))]
    assert needed(on_group(SUB, GET), consumer_group="g") == [("Group:g", (SUB, GET))]
    assert needed(on_cluster(UPDATE)) == [("Cluster:DefaultCluster", (UPDATE,))]


def test_a_retry_topic_is_its_groups():
    assert needed(on_topic(SUB), topic="%RETRY%g") == [("Group:g", (SUB,))]
    assert needed(on_group(SUB), consumer_group="%RETRY%g") == [("Group:g", (SUB,))]
    assert needed(on_topic(SUB), topic="%DLQ%g") == [("Topic:%DLQ%g", (SUB,))]


@pytest.mark.parametrize(
    ("topic", "others"),
    [
        ("orders", [("Topic:orders", (SUB,))]),
        ("%RETRY%g", []),
        ("%RETRY%g+orders", [("Topic:orders", (SUB,))]),
        ("%RETRY%g_orders", [("Topic:orders", (SUB,))]),
        ("%RETRY%other", [("Group:other", (SUB,))]),
        ("%RETRY%other+orders", [("Group:other", (SUB,)), ("Topic:orders", (SUB,))]),
        ("", [("Topic:*", (SUB,))]),
    ],
)
def test_who_pops_retries_needs_the_group_and_the_topic(topic, others):
    found = needed(on_popped(SUB), consumer_group="g", topic=topic)
    assert found == [("Group:g", (SUB,)), *others]


def test_who_names_nothing_needs_all():
    assert needed(on_topic(GET)) == needed(on_every_topic(GET)) == [("Topic:*", (GET,))]
    assert needed(on_group(GET), consumer_group="") == [("Group:*", (GET,))]
    assert needed(on_every_group(GET)) == [("Group:*", (GET,))]
    assert needed(on_topic_if_given(GET)) == needed(on_group_if_given(GET)) == []


@pytest.mark.parametrize("code", NEEDS, ids=lambda code: RequestCode(code).name)
def test_a_need_names_fields_that_its_request_has(code):
    header = ROWS[code].header
    fields = [one for one in msgspec.structs.fields(header) if one.required]
    request = msgspec.convert(
        {one.encode_name: "1" for one in fields}, header, strict=False
    )
    # It may look at what the node has, or the body; here there is none.
    missing = None
    try:
        tuple(NEEDS[code](request, CONTEXT))
    except HeaderError:
        pass
    except AttributeError as error:
        missing = error
    assert missing is None or missing.obj is not request, missing


def test_needs_add_up():
    both = on_topic(PUB) & on_group_if_given(SUB)
    assert tuple(both(Request("t", "g"), CONTEXT)) == (
        Need(Resource(ResourceKind.TOPIC, "t"), (Action.PUB,)),
        Need(Resource(ResourceKind.GROUP, "g"), (Action.SUB,)),
    )
