"""What nvidia-smi says when it does not print cards: its sentences and exit codes.

The sentences come on stdout or stderr, whatever the exit code, so the text decides and the code is asked
only where the text says nothing. Exit codes: nvidia-smi(1), section RETURN VALUE.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.gpu import GpuFault, GpuFaultCode, GpuProblem, GpuProblemCode
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text

HUNG_EXIT = 75
ASLEEP_EXIT = 76
_DETAIL_LIMIT = 300

_WORDS: dict[GpuProblemCode, str] = {
    "no_tool": "no nvidia-smi found",
    "cannot_run": "nvidia-smi is there and cannot run; see its own text",
    "no_devices": "the NVIDIA driver runs and sees no GPU",
    "version_mismatch": "NVIDIA driver/library version mismatch: reboot or reload the driver",
    "driver_not_running": "NVIDIA driver not running: check that it is installed and loaded",
    "library_missing": "NVML library (libnvidia-ml.so) missing: reinstall the driver's user space",
    "no_permission": "no permission for the GPU devices: add the user to their group",
    "nvml_failed": "nvidia-smi cannot initialise NVML",
    "usage_error": "this nvidia-smi does not understand our query",
    "hung": "an earlier nvidia-smi still hangs; no second one is started",
    "timed_out": "nvidia-smi did not answer within its time limit",
    "killed": "nvidia-smi was killed (SIGKILL)",
    "asleep": "GPU asleep: every card is suspended, nvidia-smi would wake it",
    "unreadable": "nvidia-smi printed nothing we can read",
}

# Beginnings of sentences; the first that fits decides.
_SENTENCES: tuple[tuple[str, GpuProblemCode], ...] = (
    ("No devices were found", "no_devices"),
    ("No devices found", "no_devices"),
    ("Failed to initialize NVML: Driver/library version mismatch", "version_mismatch"),
    ("Failed to initialize NVML: Insufficient Permissions", "no_permission"),
    ("Failed to initialize NVML: Driver Not Loaded", "driver_not_running"),
    ("Failed to initialize NVML: Driver not loaded", "driver_not_running"),
    ("Failed to initialize NVML:", "nvml_failed"),
    ("NVIDIA-SMI has failed because it couldn't communicate", "driver_not_running"),
    ("NVIDIA-SMI couldn't find libnvidia-ml", "library_missing"),
    ("NVIDIA-SMI has failed", "nvml_failed"),
    ("ERROR: Option", "usage_error"),
    ("Invalid combination of input arguments", "usage_error"),
    ('Field "', "usage_error"),  # a field that we did not ask, or cannot do without
)

_EXIT_CODES: dict[int, GpuProblemCode] = {
    2: "usage_error",
    4: "no_permission",
    6: "no_devices",
    9: "driver_not_running",
    12: "library_missing",
    18: "version_mismatch",
    HUNG_EXIT: "hung",
    ASLEEP_EXIT: "asleep",
    124: "timed_out",
    126: "cannot_run",
    137: "killed",
    143: "killed",
}


def read_problem(lines: Sequence[str], exit_code: int) -> GpuProblem:
    """Why an answer without a row has none. `lines`: what was printed, blank lines left out."""
    detail = clean_text(" / ".join(lines[:8]), _DETAIL_LIMIT)
    if exit_code in (HUNG_EXIT, ASLEEP_EXIT):
        return GpuProblem(_EXIT_CODES[exit_code], _WORDS[_EXIT_CODES[exit_code]], detail)
    for line in lines:
        for start, code in _SENTENCES:
            if line.startswith(start):
                return GpuProblem(code, _describe(code, line, lines), detail)
    if exit_code == 127:
        # A missing loader or library gives 127 too, but names the path of a tool that exists.
        code_127: GpuProblemCode = "cannot_run" if "/nvidia-smi" in detail else "no_tool"
        return GpuProblem(code_127, _WORDS[code_127], detail)
    code = _EXIT_CODES.get(exit_code, "unreadable")
    text = _WORDS[code]
    if code == "unreadable":
        text = f"{text} (exit code {exit_code}{'' if lines else ', no output'})"
    return GpuProblem(code, text, detail)


def _describe(code: GpuProblemCode, line: str, lines: Sequence[str]) -> str:
    text = _WORDS[code]
    if code == "version_mismatch":
        for other in lines:
            label, _, version = other.partition("NVML library version:")
            if not label and version.strip():
                return f"{text} (library {clean_text(version, 20)})"
    if code == "nvml_failed":
        return f"{text}: {clean_text(line.partition(':')[2] or line, 100)}"
    if code == "usage_error":
        return f"{text}: {clean_text(line, 100)}"
    return text


def read_refused_field(line: str) -> str | None:
    """The field in `Field "x" is not a valid field to query.`"""
    if line.startswith('Field "') and "not a valid field" in line:
        name = line[7:].partition('"')[0]
        if name and name.isascii() and all(char.isalnum() or char in "._-" for char in name):
            return name[:60]
    return None


def read_fault(line: str) -> GpuFault | None:
    """The card in `Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  …`"""
    if not line.startswith("Unable to determine the device handle"):
        return None
    bus_id = find_bus_id(line)
    code = fault_code(line) or "unknown_error"
    where = "a GPU" if isinstance(bus_id, Unknown) else f"GPU {bus_id}"
    return GpuFault(bus_id, code, f"{where}: {FAULT_WORDS[code]}")


FAULT_WORDS: dict[GpuFaultCode, str] = {
    "lost": "lost, reboot needed",
    "reset": "needs reset",
    "unknown_error": "unknown error",
}


def fault_code(text: str) -> GpuFaultCode | None:
    """The fault that a sentence or a field's reason names."""
    if "GPU is lost" in text:
        return "lost"
    if "requires reset" in text or "GPU reset" in text:
        return "reset"
    return None


def find_bus_id(line: str) -> Maybe[str]:
    """The PCI bus id in a sentence, as printed; some drivers glue it to the word GPU."""
    for word in line.split():
        text = word.strip(".,;:()")
        if text[:3].upper() == "GPU":
            text = text[3:]
        if read_bus_id(text) is not None:
            return text
    return Unknown("no bus id in the text")


def read_bus_id(text: str) -> tuple[int, int, int, int] | None:
    """Domain, bus, device and function of `00000000:0B:00.0`; None when it is no bus id."""
    parts = text.split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    if len(parts) != 3 or not all(0 < len(part) <= 8 for part in parts):
        return None
    device, _, function = parts[2].partition(".")
    if len(function) != 1:
        return None
    try:
        numbers = [int(part, 16) for part in (parts[0], parts[1], device, function)]
    except ValueError:
        return None
    digits = "".join(parts).replace(".", "")
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if digits.isalnum() else None
