"""The Python examples of README.md and docs/client.md run as they stand there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    pytest.param(code, id=f"{page}-{number}")
    for page in ("README.md", "docs/client.md")
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    )
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_runs(text, ropeway_gateway, ropeway_topic):
    code = text.replace("127.0.0.1:9876", ropeway_gateway.name_server)
    names: dict = {"__name__": "example"}
    exec(compile(code, "example", "exec"), names)
    for name, member in names.items():
        if name.startswith("test_"):
            member(ropeway_gateway, ropeway_topic)
