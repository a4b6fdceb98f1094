"""Requests as other nodes send them on, for tests that speak for a node."""

import itertools
from typing import Any

import msgspec

from ropeway.gateway.node.node_auth import new_session
from ropeway.gateway.wire.commands.forward import Forward

_NUMBERS = itertools.count()


def sealed(node: Any, here: str, client: str, body: bytes, **changes: Any) -> Forward:
    """What a node of the cluster says of a request.

    Args:
        node: One of the cluster's.
        here: Which address it is sent to.
        client: Who sent it.
        body: The request.
        changes: Of what is said, before it is sealed; and `seal`, after.
    """
    seal = node.forwarder.seal
    said = seal.say(client, here, new_session(), next(_NUMBERS), None)
    given = changes.pop("seal", None)
    said = msgspec.structs.replace(said, **changes)
    made = seal.sign(said, body) if given is None else given
    return Forward(**msgspec.structs.asdict(said), seal=made)
