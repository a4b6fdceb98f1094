"""Bodies of users and rules are RocketMQ's, member for member."""

import msgspec

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.access_bodies import AclInfo, UserInfo

ACL = (
    b'{"subject":"User:a","policies":[{"policyType":"Custom","entries":['
    b'{"resource":"Topic:t","actions":["Pub"],"sourceIps":["10.0.0.1"],'
    b'"decision":"Allow"}]}]}'
)


def test_an_acl_goes_both_ways():
    assert bodies.encode(bodies.decode(AclInfo, ACL)) == ACL


def test_what_is_not_given_of_a_user_is_left_out():
    assert bodies.encode(UserInfo(username="a")) == b'{"username":"a"}'
    assert msgspec.structs.astuple(bodies.decode(UserInfo, b"{}")) == (None,) * 4
