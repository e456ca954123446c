"""The question where a model fits, and the answer: a verdict for each machine. Sizes in bytes."""

from __future__ import annotations

from fleettui.model.fit_verdict import FitVerdict
from fleettui.model.model_shape import ModelShape
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe

CACHE_TYPES = ("f16", "q8_0", "q4_0")
"""Of the KV cache, as a server can be set."""
MAX_PARALLEL = 1024
"""Requests at once that may be asked for."""


@dataclass(frozen=True, slots=True)
class FitQuery:
    """What is asked of the fleet."""

    model: str
    context: int | None = None
    """Tokens of one request; None: each server's own default."""
    parallel: int | None = None
    """Requests at once; None: as the server is set up."""
    cache_type: str | None = None
    """Of keys and values; None: as the server is set up."""
    machines: tuple[str, ...] = ()
    """Names; empty: all."""
    tags: tuple[str, ...] = ()
    """All of them must stand in the machine's file."""
    max_age_s: float | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class FitNeed:
    """VRAM that the model takes there, lying on GPUs whole."""

    basis: str
    """`measured`, `other machine`, `tensors`, `catalog`, `file size`."""
    text: str
    """The figures it is made of."""
    shared_bytes: int
    """Weights and cache: what cards can divide among them."""
    per_gpu_bytes: int
    """Compute buffer and the engine's context: on each card."""
    kv_bytes: Maybe[int] = NOT_READ
    is_upper_bound: bool = False


@dataclass(frozen=True, slots=True)
class FitUse:
    """How it would be loaded there."""

    context: int
    """Tokens of one sequence."""
    context_basis: str
    """`asked for`, `as it is resident`, `num_ctx of the model`, `OLLAMA_CONTEXT_LENGTH`, `default by VRAM`,
    `assumed`."""
    parallel: int = 1
    is_parallel_known: bool = False
    cache_key: str = "f16"
    cache_value: str = "f16"
    has_flash_attention: bool = True
    spreads: bool = False
    """OLLAMA_SCHED_SPREAD is set."""


@dataclass(frozen=True, slots=True)
class FitForecast:
    """What Ollama predicts, and what it does by that."""

    predicted_bytes: int
    kv_bytes: int
    batch: int
    surcharge_bytes: int
    gpus: tuple[int, ...]
    evicts: bool


@dataclass(frozen=True, slots=True)
class MachineFit:
    """The verdict for one machine."""

    machine: str
    verdict: FitVerdict
    text: str
    """The numbers behind it, or why it is not known."""
    gpus: tuple[int, ...] = ()
    """Cards it would lie on."""
    evicted: tuple[str, ...] = ()
    """Idle copies that have to go, in that order."""
    ram_bytes: int = 0
    """What would lie in main memory."""
    needed_bytes: int = 0
    """VRAM on those cards."""
    free_bytes: int = 0
    """Free on those cards, once the evicted copies are gone."""
    need: FitNeed | None = None
    use: FitUse | None = None
    """None where nothing is known of the machine."""
    forecast: FitForecast | None = None
    """None where there is no Ollama, or no GPU."""
    is_installed: bool = False
    resident_context: Maybe[int] | None = None
    """Tokens of the copy that is resident there; None: none is."""
    has_gpu: bool = True
    has_data: bool = True
    """False: the machine could not be judged."""
    age_s: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FitReport:
    """The answer."""

    query: FitQuery
    canonical: str
    machines: tuple[MachineFit, ...]
    """Best first."""
    exit_code: int
    """As of routing: 0 it fits somewhere, 1 nowhere, 3 unknown model, 4 no data."""
    taken_at: float
    decided_at: float
    digest: Maybe[str] = NOT_READ
    """Of the weights; of most machines, where they differ."""
    shape: Maybe[ModelShape] = NOT_READ
    file_bytes: Maybe[int] = NOT_READ
    nearest: tuple[str, ...] = ()
    """Known names most like an unknown one."""
    has_drift: bool = False
    """Machines hold different weights under this name; each is judged with its own."""
