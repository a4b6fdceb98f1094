"""Orders with the names of their customers: a left join with the latest of each.

$ ropeway topic create named --queues 1
$ ropeway produce customers '{"id": 7, "name": "Ada"}'
$ ropeway produce orders '{"item": "tea", "customer": 7}'
$ ropeway produce orders '{"item": "gold", "customer": 8}'
$ ropeway streams run examples/enrichment.py --checkpoint ./enrichment --once
$ ropeway consume named --exit-at-end
{"item": "tea", "customer": 7, "name": "Ada"}
{"item": "gold", "customer": 8, "name": null}

Without --once it runs on.
"""

import json
from typing import Any

from ropeway.streams import StreamBuilder


# %% Both topics have JSON.
def parsed(body: bytes) -> tuple[None, dict[str, Any]]:
    """A message's object; it has no key yet."""
    return None, json.loads(body)


def named(found: dict[str, Any], customer: dict[str, Any] | None) -> dict[str, Any]:
    """An order with its customer's name, where that is known."""
    return {**found, "name": customer and customer["name"]}


# %% Orders fire at once; customers that come later serve later orders.
builder = StreamBuilder("enrichment")
(
    builder.source("orders", parsed)
    .left_join(builder.source("customers", parsed))
    .where(lambda found: found["customer"])
    .equal_to(lambda customer: customer["id"])
    .apply(named)
    .sink("named", lambda _, found: json.dumps(found).encode())
)
