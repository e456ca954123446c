"""Seconds until a machine takes a request, as far as it can be told beforehand. Each figure has its basis."""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.route import EtaBasis
from fleettui.model.unknown import Maybe, Unknown

DISK_BYTES_S = 1.5e9
"""From a disk: 1.7 GB/s were measured on one that reads 6 GB/s."""
CACHE_BYTES_S = 4e9
"""From the page cache, where a model that was just loaded still lies: 3.9 GiB/s measured."""
START_S = 2.0
"""Until the engine has started a process for the model."""
RECOVERY_S = 5.0
"""How long Ollama waits, at most, for the VRAM of what it evicted."""
WAKE_S = 0.4
"""vLLM's first level of sleep ends within 0.1 to 0.4 s."""
RECENT_USE = 0.6
"""Likelihood that a copy used this moment is wanted again before long."""
HALF_LIFE_S = 600.0
"""After so long without use it is half as likely."""


@dataclass(frozen=True, slots=True)
class Eta:
    """When a machine is ready."""

    seconds: Maybe[float]
    basis: EtaBasis
    text: str = ""
    """The figures behind it: `1.5 GB/s assumed`; of an unknown one, why."""

    @property
    def words(self) -> str:
        """`~27 s (1.5 GB/s assumed)`."""
        if isinstance(self.seconds, Unknown):
            return f"seconds not known ({self.seconds.reason})"
        shown = f"{self.seconds:.1f}" if self.seconds < 1 else f"{self.seconds:.0f}"
        return f"~{shown} s ({self.text})" if self.text else f"~{shown} s"


READY = Eta(0.0, "resident")


def not_known(why: str) -> Eta:
    """Nobody can tell."""
    return Eta(Unknown(why), "not known", why)


def estimate_load(
    size_bytes: Maybe[int],
    rate_bytes_s: float | None,
    *,
    is_cached: bool = False,
    has_evictions: bool = False,
) -> Eta:
    """A load from disk, or from the page cache where the model was in use until now.

    `rate_bytes_s`: what loads on that machine were measured at; None: assumed.
    """
    if isinstance(size_bytes, Unknown) or size_bytes <= 0:
        return not_known("size not reported")
    if rate_bytes_s is not None and rate_bytes_s > 0 and not (is_cached and rate_bytes_s < CACHE_BYTES_S):
        basis: EtaBasis = "measured"
        rate, words = rate_bytes_s, f"{rate_bytes_s / 1e9:.1f} GB/s measured"
    elif is_cached:
        basis, rate, words = "assumed", CACHE_BYTES_S, f"{CACHE_BYTES_S / 1e9:.0f} GB/s page cache assumed"
    else:
        basis, rate, words = "assumed", DISK_BYTES_S, f"{DISK_BYTES_S / 1e9:.1f} GB/s assumed"
    seconds = size_bytes / rate + START_S
    if has_evictions:
        seconds += RECOVERY_S
    return Eta(round(seconds, 1), basis, words)


def evict_cost_s(vram_bytes: Maybe[int], idle_s: Maybe[float], rate_bytes_s: float | None) -> float:
    """Seconds that others will wait for a copy once it is gone: its load, as likely as it is wanted again.

    Not known when it was used: as if this moment.
    """
    load_s = START_S
    if type(vram_bytes) is not Unknown:
        load_s += vram_bytes / (rate_bytes_s or DISK_BYTES_S)
    unused_s = 0.0 if type(idle_s) is Unknown else idle_s
    likelihood: float = 2.0 ** (-unused_s / HALF_LIFE_S)
    return RECENT_USE * load_s * likelihood
