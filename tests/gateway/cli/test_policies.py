"""Policies of users; what they do is tried by `test_user.py` on a node that guards."""


def test_where_no_users_are_kept_that_is_said(run):
    assert "no users are kept here" in run("acl", "list", code=1).stderr
    assert "no users are kept here" in run("user", "list", code=1).stderr
    made = ("acl", "create", "a", "--resource", "Topic:t", "--action", "Pub")
    assert "no users are kept here" in run(*made, code=1).stderr
