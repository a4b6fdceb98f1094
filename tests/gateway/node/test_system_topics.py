"""Topics that are there from the start."""

import msgspec

from ropeway.gateway.config import Config, TopicsConfig
from ropeway.gateway.node.system_topics import system_topics


def test_the_template_is_there_where_topics_are_made_by_sending() -> None:
    config = Config()
    made = {name: queues for name, queues, _ in system_topics(config)}
    assert made["SCHEDULE_TOPIC_XXXX"] == 18
    assert {config.cluster, config.broker} < made.keys()
    without = msgspec.structs.replace(config, topics=TopicsConfig(auto_create=False))
    names = {name for name, _, _ in system_topics(without)}
    assert made.keys() - names == {"TBW102"}
