"""The Python examples of pages about the client run as they stand there."""

import pytest

from tests.pages import ROOT, blocks

EXAMPLES = [
    pytest.param(block.text, id=f"{page}-{number}")
    for page in ("README.md", "docs/client.md", "docs/traces.md")
    for number, block in enumerate(blocks(ROOT / page, "python"))
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_runs(text, ropeway_gateway, ropeway_topic):
    code = text.replace("127.0.0.1:9876", ropeway_gateway.name_server)
    names: dict = {"__name__": "example"}
    exec(compile(code, "example", "exec"), names)
    for name, member in names.items():
        if name.startswith("test_"):
            member(ropeway_gateway, ropeway_topic)
