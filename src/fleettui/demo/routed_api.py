"""Answers of llama.cpp's router and of llama-swap, as captured in 2026 and by their sources."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any
from urllib.parse import parse_qs, unquote

from fleettui.demo.clock import DemoClock
from fleettui.demo.engine_requests import read_document
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.replies import TEXT_TYPE, Answer, Reply, json_reply
from fleettui.demo.routed_models import Routed, RoutedModels
from fleettui.demo.served_model import TOKENS_S, ServedModel
from fleettui.demo.side_api import CREATED, METRICS_TYPE, SideApi

WAIT_SLICE_S = 0.25
RUNNING_WORDS = {"loading": "starting", "loaded": "ready"}
"""llama-swap's words for the states."""


class RoutedApi(SideApi):
    """One server with several models; `answer` is called for each request."""

    def __init__(self, machine: SimulatedMachine, served: RoutedModels, clock: DemoClock):
        super().__init__(machine, served, clock)
        self.routed = served

    def answer(self, method: str, path: str, body: bytes) -> Reply | Awaitable[Answer]:
        self._follow()
        name = path.partition("?")[0]
        if method == "GET" and self.routed.plan.kind == "llamaswap" and name.startswith("/upstream/"):
            return self._ask_upstream(name)
        if method in ("GET", "HEAD"):
            return self.read(path)
        if method != "POST":
            return self._not_found()
        if name == "/v1/chat/completions":
            return self._complete(read_document(body))
        if self.routed.plan.kind == "llamaswap":
            return self._post_to_swap(name)
        return self._post_to_router(name, read_document(body))

    def read(self, path: str) -> Reply:
        name, _, query = path.partition("?")
        if self.routed.plan.kind == "llamaswap":
            return self._read_swap(name)
        return self._read_router(name, {key: values[0] for key, values in parse_qs(query).items()})

    def _follow(self) -> None:
        self.machine.advance_to(self.clock.now())
        self.routed.follow(self.machine.now)
        self.machine.take_sides_memory()

    def _find(self, name: object) -> Routed | None:
        return self.routed.models.get(name) if isinstance(name, str) else None

    def _load(self, name: str) -> None:
        self.routed.load(name)
        self.machine.take_sides_memory()

    # --- llama.cpp

    def _read_router(self, path: str, query: dict[str, str]) -> Reply:
        if path in ("/health", "/v1/health"):
            return json_reply({"status": "ok"})
        if path == "/props" and "model" not in query:
            return json_reply(router_props(self.routed))
        if path in ("/models", "/v1/models"):
            return json_reply({"data": [self._router_row(one) for one in self.routed.models.values()],
                               "object": "list"})  # fmt: skip
        if path in ("/metrics", "/slots", "/props"):
            return self._of_model(path, query)
        return self._not_found()

    def _of_model(self, path: str, query: dict[str, str]) -> Reply:
        if "model" not in query:
            return _refusal(400, "model name is missing from the request", "invalid_request_error")
        one = self._find(query["model"])
        if one is None or one.state != "loaded":
            return _refusal(400, "model is not loaded", "invalid_request_error")
        if path == "/slots":
            slots = [{"id": at, "n_ctx": one.plan.context, "is_processing": at < len(one.ends_at)}
                     for at in range(self.routed.plan.slots)]  # fmt: skip
            return json_reply(slots)
        text = (
            f"llamacpp:requests_processing {len(one.ends_at)}\nllamacpp:requests_deferred 0\n"
            "llamacpp:prompt_tokens_total 640\nllamacpp:tokens_predicted_total 1280\n"
        )
        return Reply(text.encode(), 200, METRICS_TYPE)

    def _router_row(self, one: Routed) -> dict[str, Any]:
        status: dict[str, Any] = {"value": one.state, "args": ["/usr/local/bin/llama-server"], "preset": ""}
        if one.exit_code is not None:
            status |= {"exit_code": one.exit_code, "failed": True}
        row: dict[str, Any] = {
            "id": one.plan.name, "aliases": [], "tags": [], "object": "model", "owned_by": "llamacpp",
            "created": CREATED, "status": status,
            "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
            "source": "models_dir", "can_remove": False,
        }  # fmt: skip
        if one.state == "loaded":
            row["meta"] = {
                "vocab_type": 2, "n_vocab": 151936, "n_ctx": one.plan.context, "n_ctx_train": 131072,
                "n_embd": 1536, "n_params": 1543714304, "size": one.plan.mib << 20, "ftype": "Q4_K - Medium",
            }  # fmt: skip
        return row

    def _post_to_router(self, path: str, asked: dict[str, Any]) -> Reply:
        if path not in ("/models/load", "/models/unload"):
            return self._not_found()
        one = self._find(asked.get("model"))
        if one is None:
            return self._not_found()
        if path == "/models/load":
            if one.state != "unloaded":
                return _refusal(400, "model is already running", "invalid_request_error")
            self._load(one.plan.name)
            return json_reply({"success": True})
        if one.state == "unloaded":
            return _refusal(400, "model is not running", "invalid_request_error")
        self.routed.unload(one.plan.name)
        self.machine.take_sides_memory()
        return json_reply({"success": True})

    # --- llama-swap

    def _read_swap(self, path: str) -> Reply:
        if path == "/health":
            return Reply(b"OK", 200, TEXT_TYPE)
        if path == "/api/version":
            return json_reply({"version": self.routed.plan.version, "commit": "c0ffee1", "build_date": ""})
        if path == "/running":
            running = [
                {"model": one.plan.name, "state": RUNNING_WORDS[one.state], "cmd": "", "proxy": "", "ttl": 0,
                 "name": "", "description": ""}
                for one in self.routed.models.values() if one.state != "unloaded"
            ]  # fmt: skip
            return json_reply({"running": running})
        if path == "/v1/models":
            data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "llama-swap"}
                    for name in self.routed.models]  # fmt: skip
            return json_reply({"data": data, "object": "list"})
        return Reply(b"404 page not found", 404, TEXT_TYPE)

    async def _ask_upstream(self, path: str) -> Answer:
        """Goes on to the model's own server, which is started for it."""
        name = unquote(path.removeprefix("/upstream/").partition("/")[0])
        if name not in self.routed.models:
            return Reply(b"model not found", 404, TEXT_TYPE)
        is_there = await self._until_loaded(name)
        return json_reply({"status": "ok"}) if is_there else Reply(b"unable to start process", 502, TEXT_TYPE)

    def _post_to_swap(self, path: str) -> Reply:
        if path == "/api/models/unload":
            for name in list(self.routed.models):
                self.routed.unload(name)
        elif path.startswith("/api/models/unload/"):
            name = unquote(path.removeprefix("/api/models/unload/"))
            if name not in self.routed.models:
                return Reply(b"Model not found", 404, TEXT_TYPE)
            self.routed.unload(name)
        else:
            return Reply(b"404 page not found", 404, TEXT_TYPE)
        self.machine.take_sides_memory()
        return Reply(b"OK", 200, TEXT_TYPE)

    # --- both

    async def _complete(self, asked: dict[str, Any]) -> Answer:
        """A completion of `max_tokens` words; it loads its model first and dies with it."""
        one = self._find(asked.get("model"))
        if one is None:
            return self._not_found()
        name = one.plan.name
        if not await self._until_loaded(name):
            return _refusal(500, "model failed to load", "server_error")
        one = self.routed.models[name]
        tokens = asked.get("max_tokens")
        count = tokens if isinstance(tokens, int) and tokens > 0 else 16
        end = self.machine.now + count / TOKENS_S
        one.ends_at.append(end)
        while self.machine.now < end:
            if end not in self.routed.models[name].ends_at:
                return Reply(b"proxy error: Failed to read connection", 500, TEXT_TYPE)
            await self._one_wait()
        choice = {"index": 0, "message": {"role": "assistant", "content": "word " * count},
                  "finish_reason": "stop"}  # fmt: skip
        return json_reply({"object": "chat.completion", "model": name, "choices": [choice]})

    async def _until_loaded(self, name: str) -> bool:
        self._load(name)
        while self.routed.models[name].state == "loading":
            await self._one_wait()
        return self.routed.models[name].state == "loaded"

    async def _one_wait(self) -> None:
        await self.clock.wait_until(self.clock.now() + WAIT_SLICE_S)
        self._follow()


def router_props(served: RoutedModels) -> dict[str, Any]:
    """`/props` of a router."""
    return {
        "role": "router", "max_instances": 4, "models_autoload": False, "model_alias": "llama-server",
        "model_path": "none", "default_generation_settings": {"params": None, "n_ctx": 0}, "ui_settings": {},
        "build_info": served.plan.version, "cors_proxy_enabled": False,
    }  # fmt: skip


def _refusal(status: int, text: str, kind: str) -> Reply:
    return json_reply({"error": {"code": status, "message": text, "type": kind}}, status)


def side_api(machine: SimulatedMachine, served: ServedModel, clock: DemoClock) -> SideApi:
    """The API of an engine beside Ollama."""
    if isinstance(served, RoutedModels):
        return RoutedApi(machine, served, clock)
    return SideApi(machine, served, clock)
