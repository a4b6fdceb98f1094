"""Service URLs name brokers; what is none is refused with the allowed forms."""

import pytest

from ropeway.storage.pulsar.service_url import Address, ServiceUrl


def test_a_url_names_brokers_with_and_without_ports():
    url = ServiceUrl.parse("pulsar://one:1,two,[::1]:3/")
    assert url == (False, [Address("one", 1), Address("two", 6650), Address("::1", 3)])


def test_tls_has_a_scheme_and_a_port_of_its_own():
    assert ServiceUrl.parse("pulsar+ssl://one") == (True, [Address("one", 6651)])


@pytest.mark.parametrize(
    "url",
    [
        *("", "one:6650", "http://one", "pulsar://", "pulsar://one:x"),
        *("pulsar://one/a", "pulsar://one,", "pulsar://user@one", "pulsar://one:99999"),
    ],
)
def test_another_form_is_refused(url):
    with pytest.raises(ValueError, match=r"^service URL '.*'; allowed: pulsar://host"):
        ServiceUrl.parse(url)
