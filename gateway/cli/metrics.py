"""`ropeway metrics`: what Prometheus reads, for people, of all workers side by side."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import TYPE_CHECKING

import click

from ropeway.client.tls import tls_failure
from ropeway.common.reasons import reason_of
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.cluster_settings import note
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import (
    CannotError,
    MisusedError,
    RefusedError,
    TlsFailedError,
    UnreachableError,
)
from ropeway.gateway.cli.output import print_json
from ropeway.gateway.cli.rows.brokers import MetricRow
from ropeway.gateway.cli.tables import print_table
from ropeway.gateway.cli.target import NO_SECRET, find
from ropeway.gateway.http.metrics.catalog import COMMON
from ropeway.gateway.http.metrics.text import join, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.cli.target import Found, Target

_TIMEOUT_S = 15.0
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_DEFAULT_SITE = "http://127.0.0.1:8080"
_LONG = ("*_bucket", "ropeway_queue_*")
"""Too many to be looked at unless they are asked for."""


@click.command(
    epilog=example(
        "ropeway metrics",
        "ropeway metrics 'rocketmq_consumer_lag*' --site http://10.0.0.7:8080",
    )
)
@click.argument("name", nargs=-1)
@click.option(
    "--site",
    callback=note,
    expose_value=False,
    metavar="URL",
    help="The page of a node, or of any of its workers; by default "
    f"{_DEFAULT_SITE}.  [env: ROPEWAY_SITE]",
)
@cluster_options
@json_option(list[MetricRow])
def metrics(name: tuple[str, ...], cluster: Target, as_json: bool) -> None:
    """Print the metrics of a node and its workers, a column for each.

    NAME is that of a metric, with * for any text. Without one, all are printed but
    those of single queues and the buckets of histograms.
    """
    site, is_trusted = _site(find(click.get_current_context()))
    rows = _rows(_read(site, cluster, is_trusted=is_trusted), name)
    if not rows:
        raise CannotError(f"no metric named {' or '.join(name)} has a value at {site}")
    if as_json:
        print_json(rows)
        return
    workers = sorted({worker for row in rows for worker in row.values})
    table = [
        {
            "metric": row.metric,
            "labels": join(row.labels),
            **{worker: row.values.get(worker, "") for worker in workers},
        }
        for row in rows
    ]
    print_table(table)


def _site(found: Mapping[str, Found]) -> tuple[str, bool]:
    """Where to ask, and whether it may have the credentials that were chosen.

    Those of a context are not for whoever listens on this machine.
    """
    if "site" in found:
        return found["site"].value, True
    who = [found[name] for name in ("access_key", "token") if name in found]
    return _DEFAULT_SITE, not any(one.source.startswith("context") for one in who)


def _authorization(cluster: Target) -> str | None:
    who = cluster.credentials
    if who is None:
        return None
    if who.secret_key == NO_SECRET:
        return f"Bearer {who.access_key}"
    pair = f"{who.access_key}:{who.secret_key}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _read(site: str, cluster: Target, *, is_trusted: bool) -> str:
    if not site.startswith(("http://", "https://")):
        raise MisusedError(f"--site is {site!r:.200}; allowed: http://HOST:PORT")
    authorization = _authorization(cluster) if is_trusted else None
    headers = {"Authorization": authorization} if authorization else {}
    request = urllib.request.Request(  # noqa: S310 - its scheme was looked at
        f"{site.rstrip('/')}/metrics/workers", headers=headers
    )
    try:
        with urllib.request.urlopen(  # noqa: S310 - likewise
            request,
            timeout=_TIMEOUT_S,
            context=cluster.tls.context() if cluster.tls else None,
        ) as answer:
            page: bytes = answer.read()
            return page.decode()
    except urllib.error.HTTPError as error:
        with error:
            text = f"{site} answers {error.code} {error.reason}"
        if error.code in _REFUSED:
            raise RefusedError(f"{text}: not allowed") from None
        raise CannotError(text) from None
    except OSError as error:
        cause = getattr(error, "reason", error)
        if why := tls_failure(cause):
            raise TlsFailedError(f"{site}: {why}") from error
        raise UnreachableError(
            f"nobody answers at {site}: {reason_of(cause)}"
        ) from error


def _rows(page: str, names: tuple[str, ...]) -> list[MetricRow]:
    found: dict[tuple[str, str], MetricRow] = {}
    for line in page.rstrip("\n").split("\n"):
        if line.startswith("# "):
            continue
        name, labels, value = parse(line)
        if not _is_wanted(name, names):
            continue
        worker = labels.get("node_id", "")
        rest = {key: text for key, text in labels.items() if key not in COMMON}
        row = MetricRow(metric=name, labels=rest, values={})
        found.setdefault((name, join(rest)), row).values[worker] = value
    return list(found.values())


def _is_wanted(name: str, names: tuple[str, ...]) -> bool:
    if names:
        return any(fnmatchcase(name, one) for one in names)
    return not any(fnmatchcase(name, one) for one in _LONG)
