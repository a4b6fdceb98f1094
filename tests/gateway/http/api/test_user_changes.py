"""Users and their policies, changed from the page."""

from tests.audited import audited, changes
from tests.gateway.http.api.changing import WRITABLE, change
from tests.gateway.http.signed import guarded_site, sign_in
from tests.guarded import ALICE, ROOT, allow
from tests.remoting import looped


@looped
async def test_users_and_policies_are_changed_by_who_may_update_the_cluster(tmp_path):
    rules = allow("Cluster:*", "Get")
    audit = audited(tmp_path)
    async with guarded_site(tmp_path, rules, http=WRITABLE, audit=audit) as site:
        policy = {"user": "bobby", "resource": "Topic:a*", "actions": ["Pub"]}
        await sign_in(site, ALICE)
        assert (await site.get("users"))["offered"] == []
        refused = await change(site, "POST", "users", user="bobby", password="x" * 9)
        assert refused.status == 403
        assert (await change(site, "POST", "policies", **policy)).status == 403
        await sign_in(site, ROOT)
        assert (await site.get("users"))["offered"] == ["update"]
        for status in (201, 409):
            made = await change(site, "POST", "users", user="bobby", password="x" * 9)
            assert made.status == status, made.json
        assert (await change(site, "POST", "policies", **policy)).status == 201
        assert (await change(site, "PUT", "users/bobby", status="disable")).json == {
            "user": "bobby"
        }
        found = await site.get("users")
        assert {"user": "bobby", "type": "Normal", "status": "disable"} in found[
            "users"
        ]
        assert [one["actions"] for one in found["policies"] if one["user"] == "bobby"]
        gone = "policies?user=bobby&resource=Topic:a*"
        assert (await change(site, "DELETE", gone)).status == 200
        assert (await change(site, "DELETE", gone)).status == 409
        assert (await change(site, "DELETE", "users/bobby")).status == 200
        assert (await change(site, "PUT", "users/bobby", status="enable")).status == 409
        wrong = await change(site, "POST", "users", user="x", passwort="y")
        assert '"password": "TEXT"' in wrong.json["error"]
    line, again = changes(tmp_path, "CREATE_USER")
    assert (line["event"], again["event"]) == ("changed", "change failed")
    assert (line["channel"], line["principal"]) == ("http", f"users:{ROOT}")
    for request in ("UPDATE_USER", "DELETE_USER", "CREATE_ACL", "DELETE_ACL"):
        done = changes(tmp_path, request)[0]
        assert (done["event"], done["channel"]) == ("changed", "http"), request
        assert done["principal"] == f"users:{ROOT}"
    assert "xxxxxxxxx" not in (tmp_path / "audit.jsonl").read_text()
