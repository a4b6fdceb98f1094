"""An id stands in a schema, and an address that shows another one is not used."""

from ropeway.storage.pulsar.pulsar_id import Expected, definition, id_in, schema_topic

SPACE = "rocketmq/DefaultCluster"


def test_an_id_is_read_from_the_schema_that_has_it_and_from_no_other() -> None:
    assert id_in(definition("0a1b").encode()) == "0a1b"
    for other in (None, b"", b"{}", b"[]", b'{"fields": [{"name": "customer"}]}'):
        assert id_in(other) is None


def test_what_fits_has_no_complaint() -> None:
    expected = Expected(schema_topic(SPACE), "aa")
    assert expected.complaint("h:1", definition("aa").encode()) is None
    said = expected.complaint("h:1", b"")
    assert said is not None
    assert said.startswith("h:1 is of another Pulsar cluster (without an id) than the")
    assert "(id cc)" in str(expected.complaint("h:1", definition("cc").encode()))
