"""What mqadmin printed, without what differs from run to run and server to server."""

import json
import re
from pathlib import Path
from typing import Any

from tests.system.subcommands import name_of

_REPLACED = [
    (r"(\tat |\t\.\.\. ).*\n", ""),
    (r"(For more information|See https).*\n", ""),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d(,\d+)?", "TIME"),
    (r"\b1\d{12}\b", "TIME"),
    (r"\b([0-9A-F]{56}|[0-9A-F]{32})\b", "ID"),
    (r"\b[0-9a-f.:]+@\d+([@#]\w+)*", "CLIENT"),
    (r"\b(V5_5_0|Ropeway \S+)", "VERSION"),
    (r"\d+\.\d+", "N"),
    (r"\b\d+ms", "ms"),
    (r"true +\d+$", "true"),
    (r"OK, \d+", "OK"),
    # A place in the log.
    (r"(commitLogOffset=|CommitLog Offset: +|physicOffset=|ID@)\d+", r"\1N"),
    (r"/\S*/(configs|metadata|topic|subscriptionGroup|metrics).json", r"\1.json"),
    (r"/\S*/(none|topics)\b", r"\1"),
    (r"[ \t]+", " "),
    (r" +$", ""),
]
_SYSTEM = re.compile(
    r"RMQ_SYS|rmq_sys|BenchmarkTest|OFFSET_MOVED_EVENT|SELF_TEST_TOPIC|TBW102"
    r"|DefaultCluster(_REPLY_TOPIC)?$|(DefaultCluster )?broker-0$|SCHEDULE_TOPIC"
    r"|%RETRY%|DefaultCluster DefaultCluster|TOOLS_CONSUMER|CLIENT_INNER_PRODUCER"
    r"|^G1 "
)
"""What RocketMQ has for itself, and what mqadmin's own clients leave behind on it."""

_LISTS = {"topicList", "consumerProgress", "producer", "brokerConsumeStats"}
_SETTINGS = {"brokerStatus", "getBrokerConfig", "getNamesrvConfig"}
_OF_OLDER = "brokerVersion"
"""What 4.9.7 says and 5.5.0 does not; rocketmq-exporter needs it."""
_COUNTS = {"clusterList", "getBrokerLiteInfo"}
_ENDLESS = {"clusterRT"}


def comparable(line: str, text: str) -> list[str]:
    """The comparable lines of what a command line printed.

    Lists come sorted and without what is the system's. Of settings and facts only the
    names are left, of tables of counts all but the numbers, and of what goes on for
    ever each line once.
    """
    for pattern, instead in _REPLACED:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    found = [one.strip() for one in text.splitlines() if one.strip()]
    name = name_of(line)
    if name in _LISTS:
        return sorted(one for one in found if not _SYSTEM.search(one))
    if name in _SETTINGS:
        # A value may be empty: rates are, for a broker's first seconds.
        return sorted(re.split(r" ?[:=](?: |$)", one)[0] for one in found)
    if name in _COUNTS:
        return [re.sub(r"\d+", "N", one) for one in found]
    if name in _ENDLESS:
        return sorted(set(found))
    return found


def agree(line: str, theirs: str, ours: str) -> tuple[list[str], list[str]]:
    """Two lists that are equal where both printed what they should.

    Of settings and facts, Ropeway has a part of RocketMQ's.
    """
    expected, found = comparable(line, theirs), comparable(line, ours)
    if name_of(line) in _SETTINGS:
        expected = [one for one in expected if one in found]
        found = [one for one in found if one.split(" ")[-1] != _OF_OLDER]
    return expected, found


TOPICS = {"T1", "T2", "L1", "L2"}
GROUPS = {"G1", "LG1", "LG2", "readers"}


def exported(path: Path) -> dict[str, Any]:
    """The comparable part of a file that mqadmin exported."""
    whole = json.loads(path.read_text())
    topics, groups = whole.get("topicConfigTable"), whole.get("subscriptionGroupTable")
    return {
        "topics": topics and {name: topics[name] for name in TOPICS},
        "groups": groups and {name: groups[name] for name in GROUPS},
        "brokers": whole.get("brokerConfigs"),
        "scale": whole.get("clusterScale"),
        "metrics": _names(whole.get("evaluateReport")),
    }


def _names(value: Any) -> Any:
    """What is there, without how much: lists, as of clients, stay."""
    if isinstance(value, dict):
        return {name: _names(one) for name, one in value.items()}
    return value if isinstance(value, list) else None
