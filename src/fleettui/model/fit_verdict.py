"""How a model fits on a machine, in one word."""

from __future__ import annotations

from fleettui.model.literal import Literal

FitVerdict = Literal["one_gpu", "several_gpus", "evictions", "cpu_offload", "unknown", "no"]

VERDICTS: tuple[FitVerdict, ...] = (
    "one_gpu",
    "several_gpus",
    "evictions",
    "cpu_offload",
    "unknown",
    "no",
)
"""Best first."""
VERDICT_WORDS: dict[FitVerdict, str] = {
    "one_gpu": "fits on one GPU",
    "several_gpus": "fits on several GPUs",
    "evictions": "fits with evictions",
    "cpu_offload": "fits with CPU offload",
    "unknown": "not known",
    "no": "does not fit",
}
