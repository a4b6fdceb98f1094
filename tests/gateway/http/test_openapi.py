"""docs/openapi.yaml: every address, parameter and member is the code's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ropeway.gateway.http.api import ROUTES
from ropeway.gateway.http.login import ROUTES as SIGNING_IN
from tests.gateway.http.site import bury, send, serving
from tests.remoting import looped
from tests.requests import committing

TEXT = (Path(__file__).parents[3] / "docs" / "openapi.yaml").read_text()
DESCRIBED: dict[str, Any] = yaml.safe_load(TEXT)
ID = f"{1:032X}"
NAMES = {"topic": "orders", "group": "readers", "id": ID, "client": "nobody"}
ASKED = {
    "/api/clients/{client}": {"group": "readers"},
    "/api/messages": {"topic": "orders"},
    "/api/messages/{id}": {"topic": "orders"},
    "/api/messages/{id}/groups": {"topic": "orders"},
}


def test_it_is_openapi_as_its_specification_says():
    # It takes as long as a tenth of all other tests' imports.
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert [*OpenAPIV31SpecValidator(DESCRIBED).iter_errors()] == []


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """What a part is, or what it refers to."""
    found: Any = part
    if "$ref" in part:
        found = DESCRIBED
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
    assert isinstance(found, dict)
    return found


def test_every_address_of_the_api_is_described_and_no_other():
    routes = {(one.path, one.method.lower()) for one in (*ROUTES, *SIGNING_IN)}
    described = {
        (path, method)
        for path, methods in DESCRIBED["paths"].items()
        for method in methods
        if method != "parameters"
    }
    assert described == routes


@looped
async def test_parameters_and_members_are_those_of_the_code(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 1))
        await bury(site.client, "orders", "readers", 1)
        for path, methods in DESCRIBED["paths"].items():
            if "get" not in methods or path == "/api/access":
                # Access control is off here.
                continue
            address = path.removeprefix("/api/").format(**NAMES)
            parameters = {
                resolved(one)["name"] for one in methods["get"].get("parameters", ())
            }
            refusal = await site.refused(address, nonsense="1")
            _, _, allowed = refusal.partition("; allowed: ")
            assert set(re.findall(r"\w+", allowed)) - {"none"} == parameters, path
            answer = await site.get(address, **ASKED.get(path, {}))
            schema = resolved(methods["get"]["responses"]["200"])["content"][
                "application/json"
            ]["schema"]
            assert sorted(answer) == schema["required"], path
