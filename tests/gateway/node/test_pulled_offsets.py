"""How far groups have pulled."""

from ropeway.gateway.node.pulled_offsets import PulledOffsets


def test_the_last_pull_counts_also_where_it_goes_back():
    pulled = PulledOffsets()
    assert pulled.get("g", "orders", 0) == 0
    pulled.put("g", "orders", 0, 9)
    pulled.put("g", "orders", 0, 4)
    assert pulled.get("g", "orders", 0) == 4
    assert pulled.get("g", "orders", 1) == pulled.get("h", "orders", 0) == 0


def test_groups_and_topics_are_forgotten():
    pulled = PulledOffsets()
    pairs = [("g", "a"), ("g", "b"), ("h", "a"), ("h", "b")]

    def fill() -> None:
        for group, topic in pairs:
            pulled.put(group, topic, 1, 5)

    def known() -> list[tuple[str, str]]:
        return [pair for pair in pairs if pulled.get(*pair, 1)]

    fill()
    pulled.forget(group="g", topic="a")
    assert known() == pairs[1:]
    pulled.forget(group="h")
    assert known() == [("g", "b")]
    fill()
    pulled.forget(topic="a")
    assert known() == [("g", "b"), ("h", "b")]
    pulled.forget(topic="never seen")
