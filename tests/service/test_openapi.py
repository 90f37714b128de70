"""The OpenAPI document: every route, with schemas that its references lead to."""

import json
import re

import pytest

pytest.importorskip("starlette")

from onebit.service.app import ROUTES
from onebit.service.openapi import api_page, document


def test_every_route_is_in_the_document_and_on_the_page() -> None:
    paths, page = document(ROUTES)["paths"], api_page(ROUTES)
    for route in ROUTES:
        operation = paths[route.path.replace(":path", "")][route.method.lower()]
        assert operation["description"] == route.description
        assert ("requestBody" in operation) == (route.method in ("POST", "PUT"))
        assert f"{route.method} {route.path}" in page
    assert sum(map(len, paths.values())) == len(ROUTES)


def test_references_lead_somewhere_and_operations_have_names_of_their_own() -> None:
    made = document(ROUTES)
    schemas = made["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", json.dumps(made))) <= schemas.keys()
    assert schemas["Guess"]["required"] == ["record"]
    assert not schemas["Guess"]["additionalProperties"]
    assert schemas["TicketResult"]["required"] == ["id", "label", "propensity", "time"]
    names = [operation["operationId"] for methods in made["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
