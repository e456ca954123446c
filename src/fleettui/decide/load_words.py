"""How a copy would be loaded, in words; they are put together where somebody reads them."""

from __future__ import annotations

from fleettui.decide.candidates import gib
from fleettui.decide.eta import Eta
from fleettui.decide.load_plan import LoadPlan
from fleettui.model.route import VramNeed
from fleettui.model.unknown import Unknown

_KIB_IN_GIB = 1 << 20


def say_load(plan: LoadPlan, need: VramNeed, eta: Eta) -> str:
    """`~27 s cold (1.5 GB/s assumed), needs 43.9 GiB = tensors and cache`."""
    return f"{say_cold(eta)}, {_say_place(plan, need)}"


def say_cold(eta: Eta) -> str:
    """`~27 s cold (1.5 GB/s assumed)`."""
    if isinstance(eta.seconds, Unknown):
        return f"cold, {eta.words}"
    return f"~{eta.seconds:.0f} s cold ({eta.text})"


def _say_place(plan: LoadPlan, need: VramNeed) -> str:
    """What it takes and where it would lie."""
    needs = f"needs {gib(need.mib)} GiB = {need.basis}"
    if not plan.is_offload:
        spans = f" on GPUs {', '.join(map(str, plan.gpus))}" if len(plan.gpus) > 1 else ""
        likely = plan.likely[0].name if plan.likely and not plan.victims else ""
        return needs + spans + (f"; Ollama may evict {likely} though it fits" if likely else "")
    if plan.is_cpu_only:
        return f"CPU only, {needs}"
    rest = f", {plan.ram_bytes / 1024 / _KIB_IN_GIB:.1f} GiB of it in main memory" if plan.ram_bytes else ""
    return f"partly in RAM: {needs}{rest}"
