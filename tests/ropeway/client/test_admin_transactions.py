"""Open transactions, as an administrator's client lists them."""

from ropeway.client import Admin, admin_transactions
from tests.requests import sending
from tests.ropeway.client.scenario import PATIENT, scenario


@scenario
async def test_open_transactions_are_listed_page_by_page(
    ropeway_gateway, topic, monkeypatch
):
    monkeypatch.setattr(admin_transactions, "MAX_PAGE", 2)
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 1)
        keys = [f"{topic}-{number}" for number in range(5)]
        for key in keys:
            pairs = {"TRAN_MSG": "true", "PGROUP": "payers", "UNIQ_KEY": key}
            half = sending(topic, pairs=pairs, sys_flag=4)
            await admin.ask(ropeway_gateway.address, half, b"x")
        found = await admin_transactions.open_transactions(admin, topic=topic)
        assert [one.msg_id for one in found] == keys
        some = await admin_transactions.open_transactions(admin, topic=topic, most=3)
        assert [one.msg_id for one in some] == keys[:3]
        (one,) = await admin_transactions.open_transactions(admin, msg_id=keys[4])
        assert (one.topic, one.producer_group) == (topic, "payers")
