"""MCP at /mcp of `fleettui serve --mcp`, asked by the SDK's own client; who may not ask there."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from served import Answer, Served

from fleettui.demo.launcher import DemoFleet

CATALOG = str(Path(__file__).resolve().parents[2] / "catalog")
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def server(fleet: DemoFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("mcp")
    token = folder / "ops"
    token.write_text("abcdefghijklmnopqrstuvwxyz0123456789\n")
    token.chmod(0o600)
    arguments = ["--catalog", CATALOG, "--mcp", "--token-file", str(token)]
    with Served(folder / "stderr", fleet.environment, *arguments) as server:
        yield server


def post(server: Served, body: bytes, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", "/mcp", body, {**HEADERS, **names})
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def message(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_answer_over_http(server: Served, mode: str) -> None:
    with start_blocking_portal() as portal:
        client = Client(f"http://127.0.0.1:{server.port}/mcp", mode=mode, read_timeout_seconds=60)
        with portal.wrap_async_context_manager(client):
            tools = portal.call(client.list_tools).tools
            found = portal.call(
                partial(client.call_tool, "find_machine_for_model", {"model": "llama3.1:70b"})
            )
            unknown = portal.call(
                partial(client.call_tool, "find_machine_for_model", {"model": "lama3.1:70b"})
            )
    assert len(tools) == 7
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
    assert not found.is_error
    told = server.json("/api/route", model="llama3.1:70b")["chosen"]
    assert (found.structured_content["chosen"]["machine"], found.structured_content["chosen"]["url"]) == (
        told["name"], told["url"],
    )  # fmt: skip
    assert unknown.is_error
    assert "llama3.1:70b" in unknown.structured_content["nearest_names"]


def test_each_post_is_answered_by_itself(server: Served) -> None:
    """No session is kept, so a server that was started anew goes on."""
    answer = post(server, message(id=1, method="tools/list"))
    assert answer.status == 200
    assert len(answer.json["result"]["tools"]) == 7
    assert "mcp-session-id" not in {name.lower() for name in answer.headers}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "wrong_host"),
        ({"Origin": "http://evil.example"}, "wrong_origin"),
        ({"Authorization": "Bearer " + "x" * 43}, "wrong_token"),
    ],
)
def test_who_may_not_ask_the_api_may_not_ask_here(server: Served, headers: dict[str, str], code: str) -> None:
    answer = post(server, message(id=1, method="tools/list"), **headers)
    assert answer.status in (401, 403)
    assert answer.json["error"]["code"] == code


def test_whoever_may_ask_the_api_may_ask_here_however_the_host_is_written(server: Served) -> None:
    for host in (f"127.0.0.2:{server.port}", "LOCALHOST", "[0:0:0:0:0:0:0:1]:9"):
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert server.ask("/api/access", headers=headers).status == 200
        answer = post(server, message(id=1, method="tools/list"), **headers)
        assert (answer.status, len(answer.json["result"]["tools"])) == (200, 7)


def test_what_is_no_question_is_refused(server: Served) -> None:
    assert server.ask("/mcp").status == 405
    assert server.ask("/mcp", "DELETE").status == 405
    assert post(server, b"no json").status == 400
    assert post(server, message(id=1, method="tools/list"), Content_Type="text/plain").status == 400
    assert post(server, message(id=1, method="x" * 70_000)).status == 413


def test_it_is_off_unless_it_is_asked_for(served: Served) -> None:
    assert served.ask("/mcp").status == 404
    assert post(served, message(id=1, method="tools/list")).status == 404
