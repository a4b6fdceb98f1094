"""A Pulsar cluster of several processes: three bookies, two brokers, and a proxy.

Brokers and the proxy speak nothing but TLS, and let nobody in without a token.
"""

import base64
import itertools
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.gateway.test_tls import Pair, issue, trusting
from tests.starts import started_again
from tests.system.process import free_ports
from tests.system.pulsar import DEFAULTS, START_SECONDS, VERSION
from tests.system.pulsar_servers import Bookie, Broker, Server, java, ports, written_to
from tests.system.secured_pulsar import ADMIN, AS_ITSELF, KEY, token

PROXY_VERSION = "4.0.8"
"""Maven has no proxy of 4.2."""
NAME = "pair"
HOSTS = ("127.0.0.1", "localhost")
"""What the brokers call their machine: two machines, to whoever compares names."""
SESSION_MS = 10_000
"""A dead broker's topics are another's after so long; by default after 30 s."""
PAUSE_S = 0.2
BUNDLES = 4
BOOKIES = 3
COPIES = 2
"""An entry is on so many bookies before it is acknowledged. One more than these may be
lost: where fewer are left, Pulsar takes no sends."""
BOOKIE_S = 10
"""A bookie that stands still is given up after so long; by default after 30 s."""
BALANCER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""As brokers have it by default."""
TENANT = "public"
PROXY, GATEWAY = "proxy", "gateway"
"""Roles: the proxy's, which says in whose name it asks, and who may do with topics of
the tenant what he likes, and nothing else. A gateway needs no more."""
TOKENS = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
TOKEN_S = 24 * 3600


class Way(NamedTuple):
    """How a gateway reaches the cluster."""

    service_url: str
    admin_url: str
    more: str = ""
    """Lines of its table `[pulsar]`: who it is, and whom it trusts."""


class PulsarCluster:
    """Two brokers, of which each serves some topics, three bookies, and a proxy.

    Args:
        directory: for data, settings and logs.
        zookeeper: where the cluster's metadata is, `host:port`.
        balancer: the class that decides which broker serves what.
    """

    def __init__(
        self, directory: Path, zookeeper: str, *, balancer: str = BALANCER
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._metadata_url = f"zk:{zookeeper}"
        pair = issue(directory, "localhost", address="127.0.0.1")
        self.trust = trusting(pair)
        service, web = free_ports(2)
        settings = {
            **DEFAULTS,
            "clusterName": NAME,
            "metadataStoreUrl": self._metadata_url,
            "configurationMetadataStoreUrl": self._metadata_url,
            "metadataStoreSessionTimeoutMillis": str(SESSION_MS),
            "loadBalancerEnabled": "true",
            "loadManagerClassName": balancer,
            "defaultNumberOfNamespaceBundles": str(BUNDLES),
            "managedLedgerCacheSizeMB": "32",
            "managedLedgerDefaultEnsembleSize": str(COPIES),
            "managedLedgerDefaultWriteQuorum": str(COPIES),
            "managedLedgerDefaultAckQuorum": str(COPIES),
            "bookkeeperClientTimeoutInSeconds": str(BOOKIE_S),
            # As by default: here others are left when one is left out.
            "bookkeeperClientHealthCheckEnabled": "true",
        }
        self.bookies = [
            Bookie(directory / f"bookie-{number}", settings)
            for number in range(BOOKIES)
        ]
        self.brokers = [
            Broker(
                directory / f"broker-{number}", host, settings | _secured(pair, ADMIN)
            )
            for number, host in enumerate(HOSTS)
        ]
        self.proxy = Server(
            directory / "proxy",
            "org.apache.pulsar.proxy.server.ProxyServiceStarter",
            "--config",
            {
                **settings,
                **_secured(pair, PROXY),
                **ports("service", service),
                **ports("webService", web),
                "tlsEnabledWithBroker": "true",
                "forwardAuthorizationCredentials": "true",
                # By default those of brokers that listen where brokers do.
                "brokerProxyAllowedTargetPorts": "*",
            },
            port=web,
            heap_mib=128,
            version=PROXY_VERSION,
        )
        self._servers = [*self.bookies, *self.brokers, self.proxy]
        token_file = directory / "token"
        token_file.write_text(token(GATEWAY, TOKEN_S))
        token_file.chmod(0o600)
        signs_in = (
            f'ca_certificate = "{pair.certificate}"\ntoken_file = "{token_file}"\n'
        )
        self.through_proxy = Way(
            f"pulsar+ssl://127.0.0.1:{service}", f"https://127.0.0.1:{web}", signs_in
        )

    @property
    def to_brokers(self) -> Way:
        """The way to whichever broker answers."""
        return Way(
            "pulsar+ssl://" + ",".join(one.address for one in self.brokers),
            "https://" + ",".join(one.name for one in self.brokers),
            self.through_proxy.more,
        )

    @started_again
    def start(self) -> None:
        """Start what does not run, and return when topics can be made."""
        is_set_up = (self._directory / "set-up").exists()
        if not is_set_up:
            self._set_up()
        self._run([*self.bookies, *self.brokers])
        for one in self.brokers:
            self._ask("GET", "admin/v2/brokers/ready", at=f"https://{one.name}")
        # With TLS to brokers, it starts only where one is ready.
        self._run([self.proxy])
        if not is_set_up:
            rights = {"adminRoles": [GATEWAY], "allowedClusters": [NAME]}
            self._ask("POST", f"admin/v2/tenants/{TENANT}", rights, patient=True)
            (self._directory / "set-up").touch()

    def _run(self, servers: Sequence[Server]) -> None:
        starting = [one for one in servers if not one.running]
        for one in starting:
            one.launch()
        for one in starting:
            one.wait()

    def kill(self) -> None:
        """End all without warning."""
        for one in reversed(self._servers):
            one.kill()

    def owner(self, topic: str) -> Broker:
        """Which broker serves `tenant/namespace/topic`, a partition by itself."""
        found = self._ask("GET", f"lookup/v2/topic/persistent/{topic}")["brokerUrlTls"]
        return next(
            one for one in self.brokers if found == f"pulsar+ssl://{one.address}"
        )

    def bookies_of(self, topic: str) -> list[Bookie]:
        """Which bookies have what is written to a topic now, a partition by itself."""
        path = f"admin/v2/persistent/{topic}/internalStats?metadata=true"
        give_up = time.monotonic() + START_SECONDS
        while not (found := written_to(self.bookies, self._ask("GET", path))):
            assert time.monotonic() < give_up, f"{topic}: nobody knows its ledger"
            time.sleep(PAUSE_S)
        return found

    def bundle(self, topic: str) -> str:
        """The part of its namespace that a topic is in, which moves as a whole."""
        return str(self._ask("GET", f"lookup/v2/topic/persistent/{topic}/bundle"))

    def bundles(self, namespace: str) -> list[str]:
        """All parts of a namespace."""
        ends = self._ask("GET", f"admin/v2/namespaces/{namespace}/bundles")
        return [f"{a}_{b}" for a, b in itertools.pairwise(ends["boundaries"])]

    def move(self, namespace: str, bundle: str, to: Broker) -> None:
        """Have a broker serve what is in a bundle."""
        where = f"?destinationBroker={to.name}"
        self._ask("PUT", f"admin/v2/namespaces/{namespace}/{bundle}/unload{where}")

    def unload(self, namespace: str) -> None:
        """Have all topics of a namespace opened anew, without anything in memory."""
        self._ask("PUT", f"admin/v2/namespaces/{namespace}/unload", patient=True)

    def split(self, namespace: str, bundle: str) -> None:
        """Make two of a bundle, and have its topics served anew."""
        path = f"admin/v2/namespaces/{namespace}/{bundle}/split?unload=true"
        self._ask("PUT", path)

    def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        patient: bool = False,
        at: str = "",
    ) -> Any:
        """What the REST interface answers, whichever broker it has to be asked for.

        Args:
            method: of HTTP.
            path: what follows the host.
            body: sent as JSON.
            patient: ask again what failed there, as is done with GET.
            at: the URL of who is asked; without it, the proxy's.
        """
        request = urllib.request.Request(
            f"{at or self.through_proxy.admin_url}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token(ADMIN)}",
                "Content-Type": "application/json",
            },
        )
        patient = patient or method == "GET"
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(
                    request, timeout=START_SECONDS, context=self.trust
                ) as reply:
                    text = reply.read().decode()
                break
            except urllib.error.HTTPError as error:
                # What is on its way from broker to broker is nobody's for a moment.
                if error.code < 500 or not patient or time.monotonic() > give_up:
                    raise AssertionError(
                        f"{method} {path}: {error.code} {error.read()[:500]!r}"
                    ) from error
                time.sleep(PAUSE_S)
        return json.loads(text) if text.startswith("{") else text

    def _set_up(self) -> None:
        """Write what brokers and bookies find each other by."""
        subprocess.run(
            [
                *java(self._directory, VERSION, "-Xmx128m"),
                "org.apache.pulsar.PulsarClusterMetadataSetup",
                *["--cluster", NAME],
                *["--metadata-store", self._metadata_url],
                *["--configuration-metadata-store", self._metadata_url],
                *["--web-service-url", f"https://{self.brokers[0].name}"],
                *["--broker-service-url", f"pulsar+ssl://{self.brokers[0].address}"],
            ],
            check=True,
            timeout=START_SECONDS,
            stdout=subprocess.DEVNULL,
        )


def _secured(pair: Pair, role: str) -> dict[str, str]:
    """Who is let in, and what a server shows and asks others with, as the role."""
    key = base64.b64encode(KEY).decode()
    certificate = str(pair.certificate)
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": TOKENS,
        "tokenSecretKey": f"data:;base64,{key}",
        "superUserRoles": f"{ADMIN},{PROXY}",
        "proxyRoles": PROXY,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": str(pair.key),
        "tlsTrustCertsFilePath": certificate,
        "brokerClientTlsEnabled": "true",
        "brokerClientTrustCertsFilePath": certificate,
        "brokerClientAuthenticationPlugin": AS_ITSELF,
        "brokerClientAuthenticationParameters": f"token:{token(role, TOKEN_S)}",
    }
