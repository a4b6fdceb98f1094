"""Requests as other nodes send them on, for tests that speak for a node."""

import itertools
from typing import Any

import msgspec

from ropeway.gateway.node.node_auth import new_session
from ropeway.gateway.wire.commands.forward import Forward

_NUMBERS = itertools.count()


def signed(node: Any, here: str, client: str, body: bytes, **changes: Any) -> Forward:
    """What a node of the cluster says of a request.

    Args:
        node: One of the cluster's.
        here: Which address it is sent to.
        client: Who sent it.
        body: The request.
        changes: Of what is said, before it is signed; and what is not of `Signed`,
            after.
    """
    auth = node.forwarder.node_auth
    said = auth.say(client, here, new_session(), next(_NUMBERS), None)
    names = said.__struct_fields__
    of_said = {name: value for name, value in changes.items() if name in names}
    after = {name: value for name, value in changes.items() if name not in names}
    said = msgspec.structs.replace(said, **of_said)
    made = {"signature": auth.sign(said, body), **after}
    return Forward(**msgspec.structs.asdict(said), **made)
