"""The API keeps what its description says: each address is asked what that allows, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from served import Served

from fleettui.demo.launcher import DemoFleet
from fleettui.serve.actions import ACTIONS
from fleettui.serve.app import ENDPOINTS
from fleettui.serve.openapi import describe
from fleettui.serve.tokens import make_token_file

CHECKS = [
    status_code_conformance, content_type_conformance, response_schema_conformance, negative_data_rejection,
]  # fmt: skip
DESCRIBED = schemathesis.openapi.from_dict(describe(ENDPOINTS, ACTIONS))
ENDLESS = {endpoint.path for endpoint in ENDPOINTS if endpoint.media_type == "text/event-stream"}
OPERATIONS = [
    operation
    for operation in (result.ok() for result in DESCRIBED.get_all_operations())
    if operation.path not in ENDLESS
]


@pytest.fixture(scope="module")
def open_to_all(fleet: DemoFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server that takes changes, with decisions of its own, and its token."""
    folder = tmp_path_factory.mktemp("described")
    token: Path = folder / "fuzz.token"
    make_token_file(str(token))
    options = ("--allow-actions", "--token-file", str(token), "--state-dir", str(folder / "state"))
    with Served(folder / "stderr", fleet.environment, *options) as served:
        served.json("/api/route", model="llama3.1:70b")  # answered when every machine has
        yield served, token.read_text().strip()
        assert "Traceback" not in served.log.read_text()
        assert " failed" not in served.log.read_text()


def test_every_address_is_described() -> None:
    assert len(OPERATIONS) == len(ENDPOINTS) + len(ACTIONS) - len(ENDLESS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_answers_are_those_described(
    open_to_all: tuple[Served, str], operation: schemathesis.schemas.APIOperation
) -> None:
    served, token = open_to_all

    @hypothesis.given(case=operation.as_strategy())
    @hypothesis.settings(
        max_examples=6, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def ask(case: schemathesis.Case) -> None:
        answer = case.call(
            base_url=f"http://127.0.0.1:{served.port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )
        assert answer.status_code not in (401, 500)
        case.validate_response(answer, checks=CHECKS)

    ask()
