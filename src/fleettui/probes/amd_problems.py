"""What amd-smi and rocm-smi say instead of cards, in the operator's words."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.gpu import GpuProblem, GpuProblemCode
from fleettui.probes.clean import clean_text

AMD_TOOLS = ("amd-smi", "rocm-smi")
_DETAIL_LIMIT = 300

NOT_LOADED = "amdgpu driver not loaded: load it (modprobe amdgpu) or install the driver for this kernel"
NO_PERMISSION = "no permission for /dev/kfd: add the user to the groups render and video"

# Parts of sentences; the first that fits decides. Sources: amdsmi_cli and rocm_smi.py of ROCm 5.7 to 7.
_SENTENCES: tuple[tuple[str, GpuProblemCode, str], ...] = (
    ("/dev/kfd: Permission denied", "no_permission", NO_PERMISSION),
    ("Unable to open /dev/kfd", "no_permission", NO_PERMISSION),
    ("missing the following required groups", "no_permission", NO_PERMISSION),
    ("is not member of", "no_permission", NO_PERMISSION),
    ("AMDSMI_STATUS_NO_PERM", "no_permission", NO_PERMISSION),
    ("Permission denied", "no_permission", NO_PERMISSION),
    ("amdgpu not found in modules", "driver_not_running", NOT_LOADED),
    ("ROCk module is NOT loaded", "driver_not_running", NOT_LOADED),
    ("Unable to detect any GPU devices", "no_devices", "finds no AMD card"),
    ("No AMD GPUs specified", "no_devices", "finds no AMD card"),
    ("unrecognized arguments", "usage_error", "does not understand our query"),
    ("invalid choice", "usage_error", "does not understand our query"),
    ("AmdSmiInvalidParameterException", "usage_error", "does not understand our query"),
    ("Traceback (most recent call last)", "cannot_run", "is there and cannot run; see its own text"),
    ("ModuleNotFoundError", "cannot_run", "is there and cannot run; see its own text"),
)

_EXIT_CODES: dict[int, tuple[GpuProblemCode, str]] = {
    75: ("hung", "hangs since an earlier call; no second one is started"),
    76: ("asleep", "would wake a card that sleeps"),
    124: ("timed_out", "did not answer within its time limit"),
    126: ("cannot_run", "is there and cannot run"),
    127: ("no_tool", "is not there"),
    137: ("killed", "was killed (SIGKILL)"),
    143: ("killed", "was killed (SIGTERM)"),
}


def split_tool(payload: bytes) -> tuple[str, bytes]:
    """Name of the tool in the first line of a section, and the rest; no tool: an empty name."""
    first, _, rest = payload.partition(b"\n")
    name = first.decode("ascii", "replace").strip()
    return (name, rest) if name in AMD_TOOLS else ("", payload)


def read_amd_problem(tool: str, lines: Sequence[str], exit_code: int) -> GpuProblem:
    """Why there is no list. `lines`: what was printed outside the JSON."""
    tool = tool or "amd-smi"
    detail = clean_text(" / ".join(lines[:8]), _DETAIL_LIMIT)
    if exit_code in (75, 76):
        code, words = _EXIT_CODES[exit_code]
        return GpuProblem(code, f"{tool} {words}", detail)
    for sentence, code, words in _SENTENCES:
        if any(sentence in line for line in lines):
            return GpuProblem(
                code, words if words in (NOT_LOADED, NO_PERMISSION) else f"{tool} {words}", detail
            )
    code, words = _EXIT_CODES.get(
        exit_code, ("unreadable", f"printed nothing we can read (exit code {exit_code})")
    )
    return GpuProblem(code, f"{tool} {words}", detail)
