"""What consumers say of themselves, in the form that fastjson gives it."""

from __future__ import annotations

import pytest

from ropeway.client import Admin, MessageQueue, admin_clients
from ropeway.client.admin_clients import QueueState, TopicRates
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import PATIENT, scenario

JAVA = (
    b'{"jstack":"TID: 1\\n\\tat \\"x\\"","mqPopTable":{},"mqTable":{{"brokerName":'
    b'"broker-0","queueId":1,"topic":"orders"}:{"cachedMsgCount":3,"commitOffset":7,'
    b'"locked":false}},"properties":{"PROP_CLIENT_VERSION":"V5_5_0"},"statusTable":'
    b'{"orders":{"consumeFailedMsgs":0,"consumeFailedTPS":0.5,"consumeOKTPS":2.0,'
    b'"consumeRT":1.25,"pullRT":9.0,"pullTPS":2.5},"%RETRY%g":{"pullTPS":0.0}},'
    b'"subscriptionSet":[]}'
)
"""What Java's client 5.5.0 answers, cut to what is read of it."""


def test_java_says_queues_rates_and_stack():
    found = admin_clients.read_running_info(JAVA)
    assert found.queues == [QueueState(MessageQueue("orders", "broker-0", 1), 7, 3)]
    assert found.rates == {
        "orders": TopicRates(2.0, 0.5, 1.25, 2.5),
        "%RETRY%g": TopicRates(),
    }
    assert found.stack == 'TID: 1\n\tat "x"'


def test_go_says_its_stack_with_line_ends_as_they_are():
    found = admin_clients.read_running_info(b'{"jstack":"goroutine 1\n\tmain.go"}')
    assert found.stack == "goroutine 1\n\tmain.go"


def test_one_that_says_nothing_of_it_has_none():
    found = admin_clients.read_running_info(b'{"jstack":null}')
    assert (found.queues, found.rates, found.stack) == ([], {}, None)


@scenario
async def test_who_is_not_connected_is_not_found(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(AdminError, match="no client nobody is connected"):
            await admin_clients.find(admin, "nobody")
