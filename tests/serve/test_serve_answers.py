"""Every address, beside what the command line says of the same fleet."""

from __future__ import annotations

import re
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from served import Command, Served

from fleettui.cli.options import ROUTE_OPTIONS
from fleettui.serve.actions import ACTIONS
from fleettui.serve.app import ENDPOINTS
from fleettui.serve.endpoint import Endpoint
from fleettui.serve.route_routes import ENDPOINTS as ROUTE_ENDPOINTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"
ATTEMPTS = 12
"""The fleet works: between two questions a copy may be used, or be idle by now."""
MOVING = {"age_s", "generated_at", "took_ms", "idle_s"}
"""Of a routed answer."""


def pick_machine_for(base: str, model: str, min_free_vram_gb: float = 0) -> tuple[str, str]:
    """The client of the operator's guide: it knows `/api/infrastructure` and nothing else."""
    import json

    with urllib.request.urlopen(f"{base}/api/infrastructure", timeout=60) as answer:  # noqa: S310
        machines = json.load(answer)["machines"]
    found = []
    for machine in machines:
        if machine["status"] != "online" or model not in machine["loaded_models"]:
            continue
        free = max((gpu["vram_free_gb"] for gpu in machine["telemetry"].get("gpu", [])), default=0)
        if free >= min_free_vram_gb:
            found.append((-free, machine["name"], machine["network"]["hostname"]))
    if not found:
        raise LookupError(f"no machine has {model} loaded with {min_free_vram_gb} GB free")
    _, name, hostname = min(found)
    return name, hostname


def test_health(served: Served) -> None:
    health = served.json("/health")
    assert health["status"] == "ok"
    assert health["machines"] == {"total": 8, "online": 8}
    assert 0 <= health["snapshot"]["age_s"] < 60
    assert health["notices"] == []


def test_machines_are_the_files_unmodified(served: Served, command: Command) -> None:
    document = served.json("/api/machines")
    assert document == command(0, "machines", "list", "--json")
    assert document["total"] == 8
    assert all(item["_config_file"].endswith(".yaml") for item in document["machines"])


def still(machine: dict[str, Any]) -> dict[str, Any]:
    """What time does not move on a frozen fleet."""
    kept = {key: machine[key] for key in ("name", "role", "status", "health", "trust", "network", "file")}
    gpus = [(gpu["uuid"], gpu["vram_free_gb"]) for gpu in machine["telemetry"].get("gpu") or []]
    return kept | {"loaded_models": machine["loaded_models"], "gpus": gpus}


def test_infrastructure_is_the_status_document(served: Served, command: Command) -> None:
    document = served.json("/api/infrastructure")
    told = command(0, "status", "--json")
    assert document.keys() == told.keys()
    assert [still(item) for item in document["machines"]] == [still(item) for item in told["machines"]]
    assert [item.keys() for item in document["machines"]] == [item.keys() for item in told["machines"]]
    assert all("gpu" not in m["telemetry"] for m in document["machines"] if m["name"] == "app-host")


def test_one_machine(served: Served) -> None:
    for machine in served.json("/api/infrastructure")["machines"]:
        document = served.json(f"/api/machines/{machine['name']}")
        assert still(document) == still(machine)
        assert document["schema"] == 1


def test_an_unknown_machine_names_those_that_are_like_it(served: Served) -> None:
    answer = served.ask("/api/machines/boro")
    assert answer.status == 404
    assert answer.json["error"]["code"] == "unknown_machine"
    assert "bora" in answer.json["error"]["next"]


def standing(value: Any) -> Any:
    """A routed answer without what the seconds between two questions move."""
    if isinstance(value, dict):
        return {key: standing(item) for key, item in value.items() if key not in MOVING}
    if isinstance(value, list):
        return [standing(item) for item in value]
    return re.sub(r"idle [\d.]+ \w+", "idle", value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("query", "options", "exit_code", "status"),
    [
        ({"model": "llama3.1:70b"}, [], 0, 200),
        ({"model": "LLAMA3.1:70B", "require-loaded": ""}, ["--require-loaded"], 0, 200),
        ({"model": "llama3.1:8b", "min_free_vram": "4GiB"}, ["--min-free-vram", "4GiB"], 0, 200),
        ({"model": "llama3.1:70b", "exclude": "ada"}, ["--exclude=ada"], 0, 200),
        ({"model": "llama3.1:8b", "min_free_vram": "900"}, ["--min-free-vram=900"], 1, 503),
        ({"model": "no-such-model"}, [], 3, 404),
    ],
)  # fmt: skip
def test_a_route_is_that_of_the_command_line(
    served: Served,
    command: Command,
    query: dict[str, str],
    options: list[str],
    exit_code: int,
    status: int,
) -> None:
    for attempt in range(ATTEMPTS):
        answer = served.ask("/api/route", **query)
        told = command(exit_code, "route", query["model"], "--json", "--no-lease", *options)
        assert answer.status == status
        document = answer.json
        error = document.pop("error", None)
        if told["chosen"] is not None:
            assert told["chosen"].pop("lease") is document["chosen"].pop("lease") is None
        if standing(document) == standing(told):
            break
        assert attempt < ATTEMPTS - 1, (standing(document), standing(told))
        time.sleep(1.0)
    if status != 200:
        assert all(error[key] for key in ("code", "what", "where", "why", "next"))
        assert ("retry-after" in answer.headers) == (status == 503)
    else:
        assert error is None


def test_an_address_for_the_shell(served: Served) -> None:
    answer = served.ask("/api/route", model="llama3.1:70b", format="address")
    assert answer.body.decode() == served.json("/api/route", model="llama3.1:70b")["chosen"]["address"] + "\n"
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("/api/route", {}, "model is required"),
        ("/api/route", {"model": " "}, "empty"),
        ("/api/route", {"model": "x", "models": "y"}, "did you mean model?"),
        ("/api/route", {"model": "x", "require_loaded": "maybe"}, "neither true nor false"),
        ("/api/route", {"model": "x", "min_free_vram": "lots"}, "no memory size"),
        ("/api/route", {"model": "x", "free_scope": "rack"}, "none of gpu, host"),
        ("/api/route", {"model": "x", "top": "0"}, "from 1 on"),
        ("/api/route", {"model": "x", "hold": "5m"}, "a GET changes nothing"),
        ("/api/route", {"model": "x", "wait": "5m"}, "Retry-After"),
        ("/api/plan", {"disable": "ada"}, "ada:1"),
        ("/api/events", {"kind": "party"}, "none of health"),
        ("/api/events", {"since": "yore"}, "no moment"),
        ("/api/infrastructure", {"pretty": "1"}, "no parameter"),
    ],
)
def test_usage(served: Served, path: str, query: dict[str, str], said: str) -> None:
    answer = served.ask(path, **query)
    assert answer.status == 400
    error = answer.json["error"]
    assert error["code"] == "usage"
    assert said in error["what"]
    assert error["where"] == path
    assert "/api/openapi.json" in error["next"]


def test_every_option_of_the_command_line_is_a_parameter_or_refused_with_a_reason() -> None:
    (endpoint,) = ROUTE_ENDPOINTS
    options = {names[-1].lstrip("-").replace("-", "_") for names, _ in ROUTE_OPTIONS}
    parameters = {parameter.name for parameter in endpoint.parameters} - {"model"}
    assert parameters | endpoint.refused.keys() == options
    assert not parameters & endpoint.refused.keys()


def test_a_plan_is_that_of_the_command_line(served: Served, command: Command) -> None:
    plan = served.json("/api/plan")
    assert plan == command(0, "placement", "plan", "--json")
    assert plan["assignments"]
    node = plan["assignments"][0]["node"]
    assert served.json("/api/plan", without=node, optimal="yes") == command(
        0, "placement", "plan", "--json", "--without", node, "--optimal"
    )
    assert served.json("/api/plan", n_1="1") == command(0, "placement", "plan", "--json", "--n-1")
    assert served.ask("/api/plan", without="nobody").status == 404


def test_events(served: Served, command: Command) -> None:
    document, told = served.json("/api/events", since="1h"), command(0, "events", "--json", "--since", "1h")
    assert document["recorded_by"] == told["recorded_by"] == "serve"
    assert document["events"] == told["events"][: len(document["events"])]  # more may have come
    assert served.ask("/api/events", machine="nobody").status == 404
    assert served.ask("/api/events", machine="ada", kind="loaded", limit="5").status == 200


def test_the_machine_that_it_runs_on(served: Served) -> None:
    system = served.json("/api/system")
    assert (system["name"], system["status"]) == (socket.gethostname(), "online")
    assert system["telemetry"]["ram_total_gb"] > 0
    assert served.json("/api/system")["name"] == system["name"]


# -- the description -------------------------------------------------------------------------------------


def test_the_description_has_every_address_with_its_parameters(served: Served) -> None:
    described = served.json("/api/openapi.json")
    assert described["openapi"] == "3.1.0"
    paths = {re.sub(r":\w+}", "}", endpoint.path): endpoint for endpoint in ENDPOINTS}
    changes = {re.sub(r":\w+}", "}", action.path): action for action in ACTIONS}
    assert described["paths"].keys() == paths.keys() | changes.keys()
    for path, action in changes.items():
        operation = described["paths"][path]["post" if action.method == "POST" else "delete"]
        assert {str(status) for status in action.answers} <= operation["responses"].keys()
        if action.method == "POST":
            body = operation["requestBody"]["content"]["application/json"]["schema"]
            assert list(body["properties"]) == [parameter.name for parameter in action.parameters]
    for path, endpoint in paths.items():
        operation = described["paths"][path]["get"]
        names = [item["name"] for item in operation["parameters"] if item["in"] == "query"]
        assert names == [parameter.name for parameter in endpoint.parameters]
        assert {str(status) for status in endpoint.answers} <= operation["responses"].keys()


QUERIES = {path: {"model": "llama3.1:70b"} for path in ("/api/route", "/api/attach/route")}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_every_described_address_answers(served: Served, endpoint: Endpoint) -> None:
    path = endpoint.path.replace("{name:path}", "ada")
    head = served.ask(path, "HEAD", **QUERIES.get(path, {}))
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"].startswith(endpoint.media_type)
    if endpoint.media_type == "text/event-stream":
        return  # it never ends: test_serve_stream.py
    answer = served.ask(path, **QUERIES.get(path, {}))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(endpoint.media_type)
    if endpoint.media_type == "application/json":
        assert answer.json["schema" if path != "/api/openapi.json" else "openapi"]


def test_the_page_names_every_address_and_parameter() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for endpoint in ENDPOINTS:
        shown = endpoint.path.replace("{name:path}", "NAME")
        (line,) = (line for line in text.splitlines() if line.startswith(f"| `{shown}` |"))
        for parameter in endpoint.parameters:
            assert f"`{parameter.name}`" in line, f"{shown}: {parameter.name}"
    for action in ACTIONS:
        shown = action.path.replace("{name:path}", "NAME").replace("{name}", "ID")
        line = next(line for line in text.splitlines() if line.startswith("|") and f"`{shown}`" in line)
        for parameter in action.parameters:
            told = f"{parameter.name}[]" if parameter.is_repeatable else parameter.name
            assert f"`{told}`" in line, f"{shown}: {told}"


# -- the guide -------------------------------------------------------------------------------------------


def test_the_client_of_the_guide_gets_what_route_says(served: Served, command: Command) -> None:
    base = f"http://127.0.0.1:{served.port}"
    infrastructure = served.json("/api/infrastructure")
    models = sorted({name for machine in infrastructure["machines"] for name in machine["loaded_models"]})
    assert len(models) > 3
    for model in models:
        name, hostname = pick_machine_for(base, model)
        routed = served.json("/api/route", model=model, require_loaded="1", no_lease="1")["chosen"]
        assert (routed["name"], routed["hostname"]) == (name, hostname)
    told = command(0, "route", models[0], "--json", "--require-loaded", "--no-lease")["chosen"]
    assert (told["name"], told["hostname"]) == pick_machine_for(base, models[0])


def test_the_client_of_the_guide_and_route_refuse_alike(served: Served) -> None:
    with pytest.raises(LookupError, match=r"llama3\.1:70b.*900"):
        pick_machine_for(f"http://127.0.0.1:{served.port}", "llama3.1:70b", 900)
    answer = served.ask(
        "/api/route", model="llama3.1:70b", require_loaded="", no_lease="", min_free_vram="900"
    )
    assert answer.status == 503
    assert "llama3.1:70b" in answer.json["error"]["what"]
