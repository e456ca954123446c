"""Which machines the simulated fleet has, and what each is for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fleettui.demo import hardware as hw
from fleettui.demo.hardware import CardKind, HostKind

MAX_MACHINES = 300
FOREVER = -1.0
"""keep_alive of a pinned model, as a client writes it."""


@dataclass(frozen=True, slots=True)
class ForeignProcess:
    """A GPU process that is no engine of ours: a training run, a speech server."""

    user: str
    command: str
    card: int
    mib: int
    activity_percent: float
    """Utilisation it causes while it computes."""
    period_s: float = 0.0
    """Computes for the first two thirds of every period; 0: always idle."""

    @property
    def name(self) -> str:
        return self.command.split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What clients ask of a machine's engine."""

    mean_gap_s: float = 0.0
    """Mean time between requests; 0: nobody asks."""
    models: tuple[tuple[str, float], ...] = ()
    """Model and weight."""
    mean_work_s: float = 9.0
    keep_alives_s: tuple[float | None, ...] = (None,)
    """None: the machine's default."""


@dataclass(frozen=True, slots=True)
class StartModel:
    """A copy that is resident when the simulation starts."""

    name: str
    keep_alive_s: float | None = None
    idle_s: float = 0.0
    """Seconds since its last request."""


@dataclass(frozen=True, slots=True)
class Absence:
    """When a machine is gone: switched off at `first_s`, and then every `period_s`."""

    first_s: float
    length_s: float
    period_s: float


@dataclass(frozen=True, slots=True)
class RoutedModel:
    """One model of a server that starts another one for each."""

    name: str
    mib: int
    load_s: float
    context: int = 8192


@dataclass(frozen=True, slots=True)
class SideEngine:
    """A server beside Ollama. It serves one model, given at its start, or those of `models` by turns."""

    kind: Literal["vllm", "llamacpp", "llamaswap"]
    model: str
    """As its clients call it; empty where there are `models`."""
    context: int
    slots: int
    """Requests it works on at once."""
    mean_gap_s: float
    mean_work_s: float
    version: str
    card: int | None = None
    """None: it runs on the CPU."""
    mib: int = 0
    """Of the card."""
    ram_mib: int = 2048
    models: tuple[RoutedModel, ...] = ()
    """Of llama.cpp's router and of llama-swap."""


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """One machine of the simulated fleet."""

    name: str
    role: str
    host: HostKind
    cards: tuple[CardKind, ...] = ()
    user: str = "ops"
    installed: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    """`models:` of the machine file."""
    resident: tuple[StartModel, ...] = ()
    traffic: Traffic = Traffic()
    foreign: tuple[ForeignProcess, ...] = ()
    sides: tuple[SideEngine, ...] = ()
    """Engines beside Ollama."""
    tags: tuple[str, ...] = ()
    note: str = ""
    context: int | None = None
    """OLLAMA_CONTEXT_LENGTH; None: Ollama's own choice by VRAM."""
    keep_alive_s: float = 300.0
    """OLLAMA_KEEP_ALIVE."""
    version: str = "0.33.0"
    utc_offset_h: int = 1
    """Of the machine's clock: Ollama prints local times."""
    has_driver_failure: bool = False
    """Driver and library differ in version; the engine then runs on the CPU."""
    refuses_forwarding: bool = False
    absence: Absence | None = None

    @property
    def is_unified(self) -> bool:
        return any(card.is_unified for card in self.cards)


def _ada() -> MachinePlan:
    return MachinePlan(
        "ada", "gpu-host", hw.WORKSTATION, (hw.RTX_4090, hw.RTX_4090),
        installed=("llama3.1:70b", "llama3.1:8b", "qwen3:8b", "nomic-embed-text:latest",
                   "deepseek-v3.2:cloud"),
        declared=("llama3.1:70b", "nomic-embed-text"),
        resident=(StartModel("llama3.1:70b", idle_s=4),
                  StartModel("nomic-embed-text:latest", FOREVER, idle_s=31)),
        traffic=Traffic(15, (("llama3.1:70b", 6), ("nomic-embed-text:latest", 2)), 11),
        tags=("primary", "gpu"), context=8192,
    )  # fmt: skip


def _bora() -> MachinePlan:
    return MachinePlan(
        "bora", "gpu-host", hw.OFFICE_TOWER, (hw.RTX_A5000, hw.RTX_A5000), user="mia",
        installed=("qwen2.5:32b", "llama3.1:8b", "mistral-small:24b", "phi4:14b", "llama3.1:70b"),
        declared=("qwen2.5:32b", "llama3.1:8b"),
        resident=(StartModel("qwen2.5:32b", idle_s=12), StartModel("llama3.1:8b", idle_s=70)),
        traffic=Traffic(22, (("qwen2.5:32b", 5), ("llama3.1:8b", 4), ("mistral-small:24b", 2),
                             ("phi4:14b", 2)), 8, (None, 60.0, 120.0)),
        tags=("secondary", "gpu", "office"), context=8192, keep_alive_s=180,
        note="switched off from time to time", absence=Absence(150, 40, 420),
    )  # fmt: skip


def _cleo() -> MachinePlan:
    return MachinePlan(
        "cleo", "gpu-host", hw.SMALL_SERVER, (hw.L40S,),
        installed=("qwen2.5-coder:32b", "qwen3-coder:30b", "gemma3:27b", "nomic-embed-text:latest"),
        declared=("qwen2.5-coder:32b", "nomic-embed-text"),
        resident=(StartModel("qwen2.5-coder:32b", idle_s=2),
                  StartModel("nomic-embed-text:latest", idle_s=20)),
        traffic=Traffic(14, (("qwen2.5-coder:32b", 6), ("qwen3-coder:30b", 2), ("gemma3:27b", 2),
                             ("nomic-embed-text:latest", 3)), 7, (None, None, 90.0)),
        foreign=(ForeignProcess("whisper", "/opt/whisper/bin/python -m whisper_server --port 9000",
                                0, 3214, 22, 90),),
        tags=("gpu", "code"), context=16384, keep_alive_s=240,
    )  # fmt: skip


def _dora() -> MachinePlan:
    return MachinePlan(
        "dora", "gpu-host", hw.DGX, (hw.A100_80,) * 4,
        installed=("gpt-oss:120b", "llama3.3:70b", "qwen3:32b", "gemma3:27b", "mxbai-embed-large:latest"),
        declared=("gpt-oss:120b", "llama3.3:70b", "mxbai-embed-large"),
        resident=(StartModel("gpt-oss:120b", FOREVER, idle_s=3),
                  StartModel("llama3.3:70b", 1800.0, idle_s=45),
                  StartModel("mxbai-embed-large:latest", FOREVER, idle_s=240)),
        traffic=Traffic(9, (("gpt-oss:120b", 7), ("llama3.3:70b", 3), ("qwen3:32b", 1), ("gemma3:27b", 1)),
                        10, (None, 900.0)),
        foreign=(ForeignProcess("jonas", "/home/jonas/venv/bin/python train_lora.py --base qwen3-8b --bf16",
                                3, 41876, 97, 600),),
        sides=(SideEngine("vllm", "Qwen/Qwen3-8B", 32768, 64, 7, 12, "0.32.0", 2, 28462, 6144),),
        tags=("primary", "gpu", "training"), context=32768, keep_alive_s=900,
    )  # fmt: skip


def _spark() -> MachinePlan:
    return MachinePlan(
        "spark", "gpu-host", hw.SPARK, (hw.GB10,), user="nvidia",
        installed=("gpt-oss:120b", "gpt-oss:20b", "llama3.1:8b"), declared=("gpt-oss:120b",),
        resident=(StartModel("gpt-oss:120b", 1800.0, idle_s=100),),
        traffic=Traffic(35, (("gpt-oss:120b", 4), ("gpt-oss:20b", 1)), 14, (1800.0, 600.0)),
        tags=("gpu", "unified", "desk"), utc_offset_h=0, context=32768, note="one memory for CPU and GPU",
    )  # fmt: skip


def _app_host() -> MachinePlan:
    return MachinePlan(
        "app-host", "cpu-host", hw.APP_SERVER, installed=("phi3:mini", "qwen2.5:3b"),
        declared=("phi3:mini", "qwen2.5:3b"),
        resident=(StartModel("phi3:mini", idle_s=9),),
        traffic=Traffic(30, (("phi3:mini", 3), ("qwen2.5:3b", 2)), 6, (None, 120.0)),
        sides=(SideEngine("llamacpp", "qwen2.5-coder-1.5b", 8192, 2, 14, 6, "b9812-c1f3e04"),),
        tags=("secondary", "cpu"), context=4096,
    )  # fmt: skip


def _enno() -> MachinePlan:
    return MachinePlan(
        "enno", "gpu-host", hw.GAMING_PC, (hw.RTX_3090,), user="enno",
        installed=("qwen3:32b", "llama3.2:3b", "gpt-oss:20b"), declared=("qwen3:32b",),
        resident=(StartModel("qwen3:32b", 3600.0, idle_s=17),),
        traffic=Traffic(40, (("qwen3:32b", 1),), 25, (3600.0,)),
        tags=("gpu", "home"), utc_offset_h=-5, context=32768,
        note="too large a context: the model lies partly in RAM",
    )  # fmt: skip


def _fips() -> MachinePlan:
    return MachinePlan(
        "fips", "gpu-host", hw.OLD_TOWER, (hw.RTX_A6000,),
        installed=("llama3.1:8b", "qwen2.5:14b"), declared=("qwen2.5:14b",),
        resident=(StartModel("llama3.1:8b", idle_s=40),),
        traffic=Traffic(45, (("llama3.1:8b", 1),), 20, (600.0,)),
        tags=("gpu", "lab"), context=8192, version="0.31.2", has_driver_failure=True,
        note="driver updated, not rebooted yet",
    )  # fmt: skip


FIRST_MACHINES = (_ada, _bora, _cleo, _dora, _spark, _app_host, _enno, _fips)

ROUTED = (
    RoutedModel("qwen2.5-coder-1.5b", 2210, 2.4),
    RoutedModel("phi-4-mini", 4630, 3.1, 16384),
    RoutedModel("gemma-3-4b", 5120, 3.6),
)
SIDES: dict[str, SideEngine] = {
    "vllm": SideEngine("vllm", "Qwen/Qwen3-8B", 32768, 64, 7, 12, "0.32.0", 0, 11_000, 6144),
    "router": SideEngine("llamacpp", "", 8192, 2, 14, 6, "b9812-c1f3e04", 0, models=ROUTED),
    "swap": SideEngine("llamaswap", "", 8192, 2, 14, 6, "v201", 0, models=ROUTED),
}
"""Engines that a test can put beside those of a machine."""

RACKS: tuple[tuple[HostKind, CardKind, int, tuple[str, ...]], ...] = (
    (hw.RACK_SERVER, hw.H100_80, 8, ("gpt-oss:120b", "llama3.3:70b", "qwen3:32b", "qwen3-coder:30b")),
    (
        hw.RACK_SERVER,
        hw.L40S,
        4,
        ("qwen2.5-coder:32b", "gemma3:27b", "llama3.1:8b", "nomic-embed-text:latest"),
    ),
    (hw.DGX, hw.A100_80, 8, ("gpt-oss:120b", "llama3.1:70b", "gemma3:27b", "mxbai-embed-large:latest")),
    (hw.SMALL_SERVER, hw.RTX_6000_ADA, 4, ("qwen3:32b", "qwen2.5-coder:32b", "phi4:14b", "gpt-oss:20b")),
    (hw.SMALL_SERVER, hw.T4, 2, ("llama3.1:8b", "qwen3:8b", "nomic-embed-text:latest", "llama3.2:3b")),
    (hw.OFFICE_TOWER, hw.RTX_4090, 2, ("qwen2.5:32b", "mistral-small:24b", "phi4:14b", "gpt-oss:20b")),
)


def _rack_machine(number: int, seed: int) -> MachinePlan:
    """Generated machine `gpu-09`, `gpu-10`, …: the same for the same number and seed."""
    rng = random.Random(f"plan {seed} {number}")
    host, card, count, menu = RACKS[number % len(RACKS)]
    models = tuple(rng.sample(menu, 3))
    resident = tuple(StartModel(name, idle_s=rng.uniform(1, 200)) for name in models[: rng.randint(1, 2)])
    weights = tuple((name, float(3 - place)) for place, name in enumerate(models))
    return MachinePlan(
        f"gpu-{number:02d}", "gpu-host", host, (card,) * count,
        installed=models, declared=models[:2], resident=resident,
        traffic=Traffic(rng.uniform(12, 60), weights, rng.uniform(5, 14), (None, 120.0, 900.0)),
        tags=("gpu", "rack", f"row-{number // 12 + 1}"), context=rng.choice((8192, 16384, 32768)),
    )  # fmt: skip


def plan_fleet(
    machines: int, seed: int, cards_each: int | None = None, beside: Sequence[tuple[str, str]] = ()
) -> tuple[MachinePlan, ...]:
    """Plans of the first `machines` machines; `cards_each` gives every machine with cards that many.

    `beside`: machine and key of SIDES, for engines that the fleet has not by itself.
    """
    if not 1 <= machines <= MAX_MACHINES:
        raise ValueError(f"the demo fleet has 1 to {MAX_MACHINES} machines, not {machines}")
    plans = [make() for make in FIRST_MACHINES[:machines]]
    plans += [_rack_machine(number, seed) for number in range(len(plans) + 1, machines + 1)]
    if cards_each is not None:
        plans = [
            plan if not plan.cards or plan.is_unified else replace(plan, cards=(plan.cards[0],) * cards_each)
            for plan in plans
        ]
    for name, _ in beside:
        if name not in {plan.name for plan in plans}:
            raise ValueError(f"no machine named {name} in this fleet")
    more = {name: tuple(SIDES[side] for named, side in beside if named == name) for name, _ in beside}
    return tuple(replace(plan, sides=(*plan.sides, *more.get(plan.name, ()))) for plan in plans)
