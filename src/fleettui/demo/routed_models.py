"""A server that starts another one for each model: llama.cpp's router, or llama-swap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from fleettui.demo.fleet_plan import RoutedModel, SideEngine
from fleettui.demo.load_faults import EngineFaults
from fleettui.demo.served_model import ServedModel

KILL_AFTER_S = 10.0
"""llama.cpp's router ends a model that is still at work so long after its unload."""
RoutedState = Literal["unloaded", "loading", "loaded"]


@dataclass(slots=True)
class Routed:
    """One model and its server, if it has one."""

    plan: RoutedModel
    state: RoutedState = "unloaded"
    ready_at: float = math.inf
    """Simulated seconds, while it loads."""
    exit_code: int | None = None
    """Of a server that failed."""
    is_doomed: bool = False
    """Its load will fail."""
    ends_at: list[float] = field(default_factory=list)
    """When each request in work is done."""
    killed_at: float = math.inf
    """When what is still in work is ended, after an unload."""


class RoutedModels(ServedModel):
    """All models of one such server."""

    def __init__(self, plan: SideEngine, rng: Random, pid: int):
        super().__init__(plan, rng, pid)
        self.models = {model.name: Routed(model) for model in plan.models}
        self.faults = EngineFaults()
        self.now = 0.0

    @property
    def mib(self) -> int:
        resident = [one for one in self.models.values() if one.state != "unloaded"]
        return sum(one.plan.mib for one in resident) if self.is_up else 0

    @property
    def running(self) -> int:
        return sum(len(one.ends_at) for one in self.models.values())

    @property
    def command(self) -> str:
        if self.plan.kind == "llamaswap":
            return f"/usr/local/bin/llama-swap --config /etc/llama-swap.yaml --listen 0.0.0.0:{self.port}"
        return f"/usr/local/bin/llama-server --models-dir /srv/models --models-max 4 --port {self.port}"

    def lose_everything(self) -> None:
        for name, one in self.models.items():
            self.models[name] = Routed(one.plan)

    def step(self, now: float, step_s: float, has_clients: bool) -> None:
        """Nobody asks but over HTTP."""
        self.follow(now)

    def follow(self, now: float) -> None:
        """Loads and requests that are due."""
        self.now = now
        for one in self.models.values():
            if one.state == "loading" and one.ready_at <= now:
                one.state, one.exit_code = ("unloaded", 1) if one.is_doomed else ("loaded", None)
            one.ends_at = [end for end in one.ends_at if end > now]
            if one.killed_at <= now or (not math.isinf(one.killed_at) and not one.ends_at):
                self.models[one.plan.name] = Routed(one.plan)

    def load(self, name: str) -> Routed:
        """Begins to load it, unless it is there. KeyError: no such model."""
        one = self.models[name]
        if one.state == "unloaded":
            fault = self.faults.take(name, "oom", "stall")
            one.state, one.exit_code, one.is_doomed = "loading", None, fault == "oom"
            one.ready_at = math.inf if fault == "stall" else self.now + one.plan.load_s
        return one

    def unload(self, name: str) -> None:
        """At once where nothing is in work, else when that is done or after KILL_AFTER_S."""
        one = self.models[name]
        if one.ends_at:
            one.killed_at = self.now + KILL_AFTER_S
        else:
            self.models[name] = Routed(one.plan)


def make_served(plan: SideEngine, rng: Random, pid: int) -> ServedModel:
    """What an engine beside Ollama works on."""
    return RoutedModels(plan, rng, pid) if plan.models else ServedModel(plan, rng, pid)
