"""What was ordered each minute: totals of an item, when their minute is over.

$ ropeway topic create totals --queues 1
$ ropeway produce orders '{"item": "tea", "price": 3, "time_ms": 1000}'
$ ropeway produce orders '{"item": "tea", "price": 4, "time_ms": 59000}'
$ ropeway produce orders '{"item": "gold", "price": 3000, "time_ms": 70000}'
$ ropeway streams run examples/order_totals.py --checkpoint ./order-totals --once
$ ropeway consume totals --exit-at-end
{"item": "tea", "minute_ms": 0, "total": 7}

Without --once it runs on. The last order ends the minute of those before it.
"""

import json
from typing import Any

from ropeway.streams import StreamBuilder, Tumbling, Windowed

MINUTE_MS = 60_000


# %% Orders are JSON, and say when they were made.
def order(body: bytes) -> tuple[str, dict[str, Any]]:
    """An order, by its item."""
    found = json.loads(body)
    return found["item"], found


def total(key: Windowed, price: float) -> bytes:
    """A minute's total as JSON."""
    return json.dumps(
        {"item": key.key, "minute_ms": key.begin_ms, "total": price}
    ).encode()


# %% An order may be five seconds late and still counts.
builder = StreamBuilder("orderTotals")
(
    builder.source("orders", order, allowed_lateness_ms=5_000)
    .select_timestamp(lambda found: found["time_ms"])
    .key_by(lambda found: found["item"])
    .window(Tumbling(MINUTE_MS))
    .sum(lambda found: found["price"])
    .sink("totals", total)
)
