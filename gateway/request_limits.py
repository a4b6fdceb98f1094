"""How much work one request may ask for, and what unknown clients may take."""

from __future__ import annotations

from typing import Annotated

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]


class RequestsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much work one request may ask for; one that asks for more is refused.

    All requests are worked on by one thread: what one asks for, all others wait for.
    """

    header_bytes: Positive = 256 * 1024
    """Longest header; above, the connection is closed. The longest properties that a
    message may have, 32 KiB, can be six times as long in JSON."""
    partial_bytes: Positive = 64 * 1024 * 1024
    """Of requests that are not whole, of all known connections; above, the one is
    closed whose request has been coming for longest. So many are sixteen of the
    longest messages at a time, and leave room in 256 MiB for what they become."""
    body_bytes: Positive = 1024 * 1024
    """Longest body of a request that brings no messages: some 10 ms of reading JSON."""
    batch_messages: Positive = 16_384
    """Messages of one batch; clients send some hundreds."""
    heartbeat_groups: Positive = 1024
    """Producers and consumers of one client; RocketMQ has no limit."""
    heartbeat_subscriptions: Positive = 4096
    """Topics that the consumers of one client want, together."""
    queues: Positive = 8192
    """Queues that a request locks or unlocks."""
    names: Positive = 1024
    """Topics or groups that a request lists in one of its fields."""
    expression_characters: Positive = 16_384
    """Of one SQL92 expression, or of one list of tags."""
    expression_terms: Positive = 1024
    """Properties that one SQL92 expression looks up, or tags of one list."""


class PullsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much one pull gives at most, whatever it asks for.

    Source: MessageStoreConfig.java, RocketMQ 5.5.0.
    """

    count: Positive = 32
    """Messages from memory: maxTransferCountOnMessageInMemory's default."""
    size_bytes: Positive = 256 * 1024
    """Likewise; one longer message is given alone: maxTransferBytesOnMessageInMemory's
    default."""
    disk_count: Positive = 32
    """Messages that have to be fetched from a disk or from Pulsar. RocketMQ's
    maxTransferCountOnMessageInDisk is 8, and counts from 40 % of RAM behind the end."""
    disk_size_bytes: Positive = 256 * 1024
    """Likewise: maxTransferBytesOnMessageInDisk, 64 KiB with RocketMQ."""
    bulk_count: Positive = 1024
    """Messages for who asks for bulk: Ropeway's Python client and Spark's source."""
    bulk_size_bytes: Positive = 4 * 1024 * 1024
    """Likewise."""


class CreationsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What clients may make, each user or, without access control, each address.

    Superusers may make any number of topics and groups.
    """

    topics_per_hour: Positive = 10_000
    """New topics of one user or address, those by a first send included; an hour's
    may come at once. A program that makes them by mistake is told within seconds. One
    of more than 16 queues counts as several."""
    groups_per_hour: Positive = 10_000
    """New groups, those by a first heartbeat, pull or pop included; likewise."""
    at_once: Positive = 1024
    """Topics, and groups, that are being created for one user or address at a time; of
    more, clients are told that the broker is busy, and try again. Each takes 20 KiB
    until it is there, and a disk may need minutes for 10,000."""
    topics: Positive = 100_000
    """Topics of everybody, those of retries and dead letters included: each costs
    memory on all nodes, and time at each start."""
    groups: Positive = 100_000
    """Groups of everybody, likewise."""
    registrations: Positive = 100_000
    """Producers and consumers that connections of one user or address have on a node
    at a time; a client has one for each of its groups."""
    session_bytes: Positive = 160 * 1024 * 1024
    """What the Telemetry streams of gRPC clients of one user or address take on a node:
    20 KiB each, and four times their settings; so 8,000 clients."""
    client_id_characters: Positive = 255
    """Longest client id, and longest name of a producer group; clients make ids of an
    address and an instance name."""


class UnauthenticatedConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may take before access control has known one of its requests.

    Without access control, everybody is known.
    """

    timeout_ms: Positive = 10_000
    """A connection that nobody is known on for so long is closed; clients begin with a
    signed request at once."""
    connections: Positive = 1024
    """Of one more, the one is closed that has been there for longest."""
    header_bytes: Positive = 64 * 1024
    """Longest header of a request; a request's body may be as long as a message."""
    partial_bytes: Positive = 32 * 1024 * 1024
    """Of requests that are not whole, of all such connections together: some seven of
    the longest messages."""
    refusals: Positive = 256
    """So many requests of a connection are refused before it is closed, and so many
    answers in a row may come that nobody asked for, of a known one, too. What it has
    sent by then need not be read: some 20 microseconds a request."""
