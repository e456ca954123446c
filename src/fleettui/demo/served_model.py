"""What an engine beside Ollama works on: requests that come, wait for a slot and go."""

from __future__ import annotations

import math
from random import Random

from fleettui.demo.fleet_plan import SideEngine

TOKENS_S = 42.0
"""Of one request."""
PROMPT_TOKENS = 640


class ServedModel:
    """One model of one server; `step` moves it on."""

    def __init__(self, plan: SideEngine, rng: Random, pid: int):
        self.plan = plan
        self.pid = pid
        self.port = 0
        """Where it listens; known once its server has one."""
        self.is_up = True
        """Its process runs."""
        self.waiting = 0
        self.prompt_tokens = 184_320
        self.generated_tokens = 512_004.0
        self._rng = rng
        self._ends_at: list[float] = []

    @property
    def mib(self) -> int:
        """What it holds of its card now."""
        return self.plan.mib if self.is_up else 0

    @property
    def user(self) -> str:
        return "vllm" if self.plan.kind == "vllm" else "llama"

    @property
    def program(self) -> str:
        """As nvidia-smi names it."""
        return "/opt/vllm/bin/python" if self.plan.kind == "vllm" else "/usr/local/bin/llama-server"

    def lose_everything(self) -> None:
        """Its process ended: requests with it."""
        self.waiting = 0
        self._ends_at.clear()

    @property
    def running(self) -> int:
        """Requests in work."""
        return len(self._ends_at)

    @property
    def kv_share(self) -> float:
        """Use of the KV cache, 0 to 1: a request fills a slot by a third on average."""
        return min(1.0, self.running * 0.31 / self.plan.slots)

    @property
    def command(self) -> str:
        """Its command line."""
        plan = self.plan
        if plan.kind == "vllm":
            return (
                f"/opt/vllm/bin/python /opt/vllm/bin/vllm serve {plan.model} --port {self.port} "
                f"--max-model-len {plan.context} --gpu-memory-utilization 0.35"
            )
        return (
            f"/usr/local/bin/llama-server -m {model_path(plan)} --alias {plan.model} --metrics "
            f"-c {plan.context * plan.slots} -np {plan.slots} --port {self.port}"
        )

    def step(self, now: float, step_s: float, has_clients: bool) -> None:
        """Requests end, waiting ones begin, new ones come."""
        plan = self.plan
        self.generated_tokens += self.running * TOKENS_S * step_s
        self._ends_at = [end for end in self._ends_at if end > now]
        if has_clients and self.is_up and self._rng.random() < 1 - math.exp(-step_s / plan.mean_gap_s):
            self.waiting += 1
        while self.waiting and self.running < plan.slots:
            self.waiting -= 1
            self.prompt_tokens += PROMPT_TOKENS
            self._ends_at.append(now + 1 + self._rng.expovariate(1 / plan.mean_work_s))


def model_path(plan: SideEngine) -> str:
    """Where llama-server finds it."""
    return f"/srv/models/{plan.model}-q4_k_m.gguf"
