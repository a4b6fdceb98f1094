"""The examples of docs/client.md run as they stand there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "client.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number, ropeway_gateway, ropeway_topic):
    code = EXAMPLES[number].replace("127.0.0.1:9876", ropeway_gateway.name_server)
    names: dict = {"__name__": "example"}
    exec(compile(code, f"{PAGE.name} example {number}", "exec"), names)
    for name, member in names.items():
        if name.startswith("test_"):
            member(ropeway_gateway, ropeway_topic)
