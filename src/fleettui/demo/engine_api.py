"""The Ollama stand-in's calls: what each path answers and what it sets going."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from fleettui.demo.clock import DemoClock
from fleettui.demo.engine_requests import (
    context_of,
    keep_alive_seconds,
    options_of,
    vector_for,
    words_for,
)
from fleettui.demo.engine_texts import (
    find_model,
    go_time,
    installed_models,
    loaded_models,
    model_document,
)
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.models import ModelSpec
from fleettui.demo.pulling import Pulls
from fleettui.demo.replies import (
    TEXT_TYPE,
    Answer,
    Reply,
    StreamedReply,
    error_reply,
    json_reply,
)
from fleettui.demo.scheduler import BUSY_TEXT, Request

WAIT_SLICE_S = 0.5


class EngineApi:
    """One machine's engine; `answer` is called for each request."""

    def __init__(self, machine: SimulatedMachine, clock: DemoClock):
        self.machine = machine
        self.clock = clock
        self._pulls = Pulls(machine, clock)

    def answer(self, method: str, path: str, body: bytes) -> Answer | Awaitable[Answer]:
        """The answer, or an awaitable of it where a model must be loaded first."""
        self.machine.advance_to(self.clock.now())
        path = path.partition("?")[0]
        if method in ("GET", "HEAD"):
            return self.read(path)
        if method == "POST" and path == "/api/pull":
            return self._pulls.answer(body)
        if method == "DELETE" and path == "/api/delete":
            return self._pulls.delete(body)
        if method == "POST" and path in (
            "/api/show",
            "/api/generate",
            "/api/chat",
            "/api/embed",
            "/api/embeddings",
        ):
            return self._act(path, body)
        return Reply(b"404 page not found", 404, TEXT_TYPE)

    def read(self, path: str) -> Reply:
        """The answers to GET."""
        machine = self.machine
        if path == "/api/ps":
            return json_reply(loaded_models(machine, self.clock.wall_at))
        if path == "/api/tags":
            return json_reply(installed_models(machine))
        if path == "/api/version":
            return json_reply({"version": machine.plan.version})
        if path == "/":
            return Reply(b"Ollama is running", 200, TEXT_TYPE)
        if path == "/v1/models":
            models = [{"id": name, "object": "model", "created": 1_790_000_000, "owned_by": "library"}
                      for name in machine.plan.installed]  # fmt: skip
            return json_reply({"object": "list", "data": models})
        return Reply(b"404 page not found", 404, TEXT_TYPE)

    def _act(self, path: str, body: bytes) -> Reply | Awaitable[Answer]:
        try:
            asked = json.loads(body)
        except ValueError:
            return error_reply(
                400, "missing request body" if not body else "invalid character in request body"
            )
        name = (asked.get("model") or asked.get("name")) if isinstance(asked, dict) else None
        if not isinstance(name, str):
            return error_reply(400, "model is required")
        model = find_model(self.machine, name)
        if model is None:
            return error_reply(404, f"model '{name}' not found")
        if path == "/api/show":
            return json_reply(model_document(model, self.machine, asked.get("verbose") is True))
        keep_alive = keep_alive_seconds(asked["keep_alive"]) if "keep_alive" in asked else None
        if "keep_alive" in asked and keep_alive is None:
            return error_reply(400, f'time: invalid duration "{asked["keep_alive"]}"')
        if model.remote_host:
            return error_reply(502, "cloud models are not reachable from the simulated fleet")
        if path in ("/api/generate", "/api/chat"):
            return self._generate(path, name, model, asked, keep_alive)
        return self._embed(path, name, model, asked, keep_alive)

    def _generate(
        self, path: str, name: str, model: ModelSpec, asked: dict[str, Any], keep_alive: float | None
    ) -> Reply | Awaitable[Answer]:
        """generate and chat: unload, load or answer."""
        is_chat = path == "/api/chat"
        is_empty = not asked.get("messages") if is_chat else not asked.get("prompt")
        if is_empty and keep_alive == 0:
            self._later(model)
            return json_reply(self._line(name, is_chat, "", "unload"))
        if model.is_embedding:
            return error_reply(400, f'"{name}" does not support {"chat" if is_chat else "generate"}')
        if self.machine.is_busy_forced:
            return error_reply(503, BUSY_TEXT)
        options = options_of(asked)
        words = [] if is_empty else words_for(options.get("num_predict"))
        request = Request(model, context_of(options), keep_alive, self._work_s(len(words)))
        if is_empty:
            return self._load(request, self._line(name, is_chat, "", "load"))
        return self._talk(request, name, is_chat, words, asked.get("stream") is not False)

    def _work_s(self, words: int) -> float:
        return 0.0 if self.machine.scheduler.is_instant else words / self.machine.tokens_s

    def _later(self, model: ModelSpec) -> None:
        """The reply comes before the unload: the runner ends with the next event."""
        self.machine.scheduler.expire_soon(model)

    async def _load(self, request: Request, line: dict[str, Any]) -> Answer:
        failure = await self._until(request, is_over=True)
        return failure or json_reply(line | {"created_at": self._created_at()})

    async def _talk(
        self, request: Request, name: str, is_chat: bool, words: list[str], is_streamed: bool
    ) -> Answer:
        """Answers with words, at once or in lines."""
        failure = await self._until(request, is_over=not is_streamed)
        if failure is not None:
            return failure
        if is_streamed:
            return StreamedReply(self._lines(request, name, is_chat, words))
        return json_reply(self._line(name, is_chat, " ".join(words), "stop") | self._counts(request, words))

    async def _lines(
        self, request: Request, name: str, is_chat: bool, words: list[str]
    ) -> AsyncIterator[bytes]:
        """One line a word, paced over the request's work; then the line with the counts."""
        try:
            for place, word in enumerate(words):
                due = request.loaded_at + request.work_s * (place + 1) / len(words)
                while self.clock.now() < due and not request.is_over:
                    await self.clock.wait_until(due)
                    self.machine.advance_to(self.clock.now())
                text = word if place == 0 else " " + word
                yield json_reply(self._line(name, is_chat, text, None)).body + b"\n"
            await self._until_over(request)
            last = self._line(name, is_chat, "", "stop") | self._counts(request, words)
            yield json_reply(last).body + b"\n"
        finally:
            self.machine.scheduler.cancel(request, self.machine.now)

    async def _embed(
        self, path: str, name: str, model: ModelSpec, asked: dict[str, Any], keep_alive: float | None
    ) -> Answer:
        """embed and the older embeddings."""
        if self.machine.is_busy_forced:
            return error_reply(503, BUSY_TEXT)
        options = options_of(asked)
        given = asked.get("input", asked.get("prompt"))
        texts = [] if not given else given if isinstance(given, list) else [given]
        request = Request(model, context_of(options), keep_alive, self._work_s(len(texts)))
        failure = await self._until(request, is_over=True)
        if failure is not None:
            return failure
        vectors = [vector_for(str(text), model.embedding) for text in texts]
        if path == "/api/embeddings":
            return json_reply({"embedding": vectors[0] if vectors else []})
        counts = {
            "total_duration": 41_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": 4 * len(texts),
        }
        return json_reply({"model": name, "embeddings": vectors} | (counts if vectors else {}))

    async def _until(self, request: Request, is_over: bool) -> Reply | None:
        """Submits and waits: until it is over, or only until its model is there. None is success.

        Cancelled (the connection was closed), it takes the request back, and the load with it.
        """
        scheduler = self.machine.scheduler
        scheduler.submit(request, self.machine.now)
        self.machine.advance_to(self.clock.now())
        try:
            while request.state in ("queued", "loading") or (is_over and not request.is_over):
                await self._one_wait()
        except BaseException:
            scheduler.cancel(request, self.machine.now)
            raise
        if request.state == "failed":
            return error_reply(503 if request.error == BUSY_TEXT else 500, request.error)
        return None

    async def _until_over(self, request: Request) -> None:
        while not request.is_over:
            await self._one_wait()

    async def _one_wait(self) -> None:
        soon = self.clock.now() + WAIT_SLICE_S * self.clock.speed
        await self.clock.wait_until(min(soon, self.machine.next_event_at()))
        self.machine.advance_to(self.clock.now())

    def _created_at(self) -> str:
        return go_time(self.clock.wall_at(self.machine.now), 0, self.machine.new_salt())

    def _line(self, name: str, is_chat: bool, text: str, done_reason: str | None) -> dict[str, Any]:
        line: dict[str, Any] = {"model": name, "created_at": self._created_at()}
        if is_chat:
            line["message"] = {"role": "assistant", "content": text}
        else:
            line["response"] = text
        line["done"] = done_reason is not None
        return line if done_reason is None else line | {"done_reason": done_reason}

    def _counts(self, request: Request, words: list[str]) -> dict[str, Any]:
        """Durations in nanoseconds."""
        load = max(0.0, request.loaded_at - request.started_at)
        return {
            "total_duration": int((load + request.work_s) * 1e9),
            "load_duration": int(load * 1e9),
            "prompt_eval_count": 26,
            "prompt_eval_duration": 91_000_000,
            "eval_count": len(words),
            "eval_duration": int(request.work_s * 1e9),
        }
