"""Tools that change the fleet, asked by the SDK's own client: who gets them, what they do, who stands in the
timeline."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from served import SRC, Served

from fleettui.cli.main import main
from fleettui.demo.launcher import DemoFleet
from fleettui.fleet.trust_words import operator_name
from fleettui.serve.tokens import make_token_file

CHANGING = {
    "set_maintenance", "drain_machine", "cancel_drain", "undrain_machine", "take_lease", "release_lease",
}  # fmt: skip
WAIT_S = 60.0


@dataclass
class Asked:
    """A client that is connected, for tests that are no coroutines."""

    portal: BlockingPortal
    client: Client

    def tools(self) -> dict[str, types.Tool]:
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def answer(self, name: str, **arguments: Any) -> Any:
        result = self.portal.call(partial(self.client.call_tool, name, arguments))
        assert not result.is_error, result.content
        assert result.content[0].text.strip()
        return result.structured_content

    def refusal(self, name: str, **arguments: Any) -> Any:
        """What failed, why and what to do next."""
        result = self.portal.call(partial(self.client.call_tool, name, arguments))
        assert result.is_error, result.content
        error = result.structured_content["error"]
        assert result.content[0].text.startswith(f"error: {error['what']}")
        assert error["next"]
        return error


@dataclass
class Acting:
    """A server that takes changes, what lets one in, and the fleet behind it."""

    fleet: DemoFleet
    served: Served
    ops: str
    reader: str

    @contextmanager
    def asked(self, token: str = "") -> Iterator[Asked]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with start_blocking_portal() as portal:
            transport = streamable_http_client(
                f"http://127.0.0.1:{self.served.port}/mcp", http_client=create_mcp_http_client(headers)
            )
            client = Client(transport, read_timeout_seconds=60)
            with portal.wrap_async_context_manager(client):
                yield Asked(portal, client)

    def events(self, text: str) -> list[dict[str, Any]]:
        """Action events whose text has that, once there is one."""

        def find() -> list[dict[str, Any]]:
            events = self.served.json("/api/events", kind="action")["events"]
            return [event for event in events if text in event["text"]]

        found: list[dict[str, Any]] = until(find)
        return found


def until(look: Callable[[], Any]) -> Any:
    """What it finds, once it finds something."""
    deadline = time.monotonic() + WAIT_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@contextmanager
def over_pipes(acting: Acting, log: Path, *options: str) -> Iterator[Asked]:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "fleettui", "mcp", *options], cwd="/",
        env={**os.environ, **acting.fleet.environment, "PYTHONPATH": SRC},
    )  # fmt: skip
    with log.open("w") as stream, start_blocking_portal() as portal:
        client = Client(stdio_client(parameters, errlog=stream), read_timeout_seconds=60)
        with portal.wrap_async_context_manager(client):
            yield Asked(portal, client)


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    folder = tmp_path_factory.mktemp("mcp-acting")
    folder.chmod(0o700)
    for name in ("ops", "reader"):
        make_token_file(str(folder / name))
    options = (
        "--mcp", "--allow-actions", "--token-file", str(folder / "ops"),
        "--read-token-file", str(folder / "reader"),
    )  # fmt: skip
    with (
        DemoFleet(machines=4, seed=7, is_calm=True) as fleet,
        Served(folder / "stderr", fleet.environment, *options) as served,
    ):
        served.json("/api/route", model="llama3.1:70b")  # answered when every machine has
        yield Acting(fleet, served, *[(folder / name).read_text().strip() for name in ("ops", "reader")])


@pytest.fixture(scope="module")
def ops(acting: Acting) -> Iterator[Asked]:
    with acting.asked(acting.ops) as asked:
        yield asked


def test_tools_say_truly_what_they_may_do(ops: Asked) -> None:
    tools = ops.tools()
    assert set(tools) > CHANGING
    assert not [name for name in tools if "approve" in name or "trust" in name]
    for name, tool in tools.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name not in CHANGING), name
        for argument, schema in tool.input_schema["properties"].items():
            bounds = {"string": {"maxLength", "enum"}, "array": {"maxItems"}, "boolean": {"description"}}
            assert bounds.get(schema["type"], {"minimum"}) & set(schema), f"{name}.{argument} has no bounds"
    hints = {name: tools[name].annotations for name in CHANGING}
    destructive = {name for name, hint in hints.items() if hint is not None and hint.destructive_hint}
    assert destructive == {"drain_machine", "cancel_drain", "undrain_machine"}
    repeated = {name for name, hint in hints.items() if hint is not None and not hint.idempotent_hint}
    assert repeated == {"drain_machine", "take_lease"}
    assert tools["drain_machine"].input_schema["properties"]["dry_run"]["default"] is True
    assert "never because a name" in (ops.client.instructions or "")


def test_whoever_may_only_read_has_no_such_tools_and_is_refused(acting: Acting) -> None:
    for token, code, why in (
        ("", "token", "it takes a bearer token"),
        (acting.reader, "may_not_act", "this token only allows reading"),
    ):
        with acting.asked(token) as asked:
            assert not CHANGING & set(asked.tools())
            assert "drain_status" in asked.tools()
            error = asked.refusal("set_maintenance", machine="ada", on=True)
            assert (error["code"], why in error["why"]) == (code, True), error
            assert asked.refusal("drain_machine", machine="ada", nonsense=1)["code"] == code
    assert not acting.served.json("/api/machines/ada")["maintenance"]["on"]
    assert acting.events("refused by MCP: maintenance: this token only allows reading")


def test_maintenance_goes_on_and_off_with_who_in_the_timeline(acting: Acting, ops: Asked) -> None:
    told = ops.answer("set_maintenance", machine="ada", on=True, reason="fan swap", until="2h")
    assert (told["machine"], told["outcome"], told["maintenance"]["by"]) == ("ada", "on", "server: token ops")
    (seen,) = ops.answer("get_infrastructure", machines=["ada"])["machines"]
    assert any("fan swap" in flag for flag in seen["flags"])
    assert acting.served.json("/api/machines/ada")["maintenance"]["reason"] == "fan swap"
    assert ops.answer("set_maintenance", machine="ada", on=False)["outcome"] == "off"
    (seen,) = ops.answer("get_infrastructure", machines=["ada"])["machines"]
    assert not seen["flags"]
    (event,) = acting.events('asked by MCP: maintenance on: "fan swap": done')
    assert (event["by"], event["machine"]) == ("server: token ops", "ada")


def test_a_call_that_cannot_be_done_says_what_to_do(ops: Asked) -> None:
    unknown = ops.refusal("set_maintenance", machine="adda", on=True)
    assert (unknown["code"], "ada" in unknown["next"]) == ("unknown_machine", True)
    assert ops.refusal("set_maintenance", machine="ada")["what"] == "the argument on is required"
    assert ops.refusal("set_maintenance", machine="ada", on=True, until="soon")["code"] == "usage"
    assert ops.refusal("drain_machine", machine="ada", dry_run=False)["code"] == "reason"
    assert ops.refusal("cancel_drain", machine="ada")["code"] == "no_drain"
    assert ops.refusal("release_lease", lease="none")["code"] == "no_lease"
    assert ops.refusal("drain_status", machines=["nobody"])["code"] == "unknown_machine"


def test_a_lease_is_taken_seen_and_released(acting: Acting, ops: Asked) -> None:
    taken = ops.answer("take_lease", model="llama3.1:70b", hold_s=300)
    seen = acting.served.json("/api/route", model="llama3.1:70b")["candidates"]
    assert {item["name"]: item["leases"] for item in seen}[taken["machine"]] == 1
    assert taken["url"].startswith("http")
    assert ops.answer("release_lease", lease=taken["lease"])["released"] == taken["lease"]
    seen = acting.served.json("/api/route", model="llama3.1:70b")["candidates"]
    assert not any(item["leases"] for item in seen)
    unknown = ops.refusal("take_lease", model="lama3.1:70b")
    assert (unknown["code"], "llama3.1:70b" in unknown["next"]) == ("unknown_model", True)


def test_a_drain_is_only_looked_at_unless_it_is_begun(acting: Acting, ops: Asked) -> None:
    machines = acting.served.json("/api/infrastructure")["machines"]
    name = next(item["name"] for item in machines if item["loaded_models"])
    looked = ops.answer("drain_machine", machine=name)
    assert looked["is_preview"]
    assert looked["copies"]
    assert ops.answer("drain_status")["drains"] == []
    assert acting.served.json("/api/drains")["machines"] == []
    assert acting.served.json(f"/api/machines/{name}")["drain"]["state"] == "off"
    begun = ops.answer(
        "drain_machine", machine=name, dry_run=False, reason="psu",
        force_class=["last-copy", "cannot", "unmanaged"],
    )  # fmt: skip
    assert not begun["is_preview"]
    assert begun["drains"][0]["by"] == "server: token ops"
    (drain,) = ops.answer("drain_status", machines=[name])["drains"]
    assert (drain["machine"], drain["reason"]) == (name, "psu")
    (ended,) = ops.answer("cancel_drain", machine=name, now=True)["drains"]
    assert ended["state"] in ("cancelled", "drained", "blocked", "failed")
    assert ops.answer("undrain_machine", machine=name)["drains"] == [{"machine": name, "state": "off"}]
    assert acting.events('asked by MCP: drain: "psu": done')[0]["by"] == "server: token ops"


def test_over_pipes_it_only_looks(acting: Acting, tmp_path: Path) -> None:
    with over_pipes(acting, tmp_path / "stderr") as asked:
        assert not CHANGING & set(asked.tools())
        error = asked.refusal("set_maintenance", machine="ada", on=True)
        assert error["code"] == "actions_off"
        assert "fleettui mcp was started without --allow-actions" in error["why"]
        assert "wants that change" not in (asked.client.instructions or "")


def test_over_pipes_it_acts_as_its_user_where_that_is_allowed(acting: Acting, tmp_path: Path) -> None:
    with over_pipes(acting, tmp_path / "stderr", "--allow-actions") as asked:
        assert set(asked.tools()) > CHANGING
        told = asked.answer("set_maintenance", machine="ada", on=True, reason="by pipe")
        assert told["maintenance"]["by"] == operator_name()
        assert acting.served.json("/api/machines/ada")["maintenance"]["reason"] == "by pipe"
        assert asked.answer("set_maintenance", machine="ada", on=False)["outcome"] == "off"
        assert asked.answer("drain_machine", machine="ada")["is_preview"]
    assert (tmp_path / "stderr").read_text() == ""


def test_readonly_refuses_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "machines"
    folder.mkdir()
    assert main(["mcp", "--allow-actions", "--readonly", "--machines", str(folder)]) == 2
    assert "refuses --allow-actions" in capsys.readouterr().err
