"""Machines with OpenSSH for Windows: the command lines they are sent, and how their answers are cleaned.

Their shell is cmd.exe or PowerShell, nobody tells which. Both run a line without quotes, operators and
variables unchanged. A path with blanks needs quotes, which PowerShell would only print; so the old folder of
NVIDIA is named by its short names, which Windows makes for it unless that was turned off.
"""

from __future__ import annotations

from typing import Final

from fleettui.probes.loops_gpu import APPS_FIELDS, FAST_FIELDS
from fleettui.probes.nvidia import parse_gpus

SERVER_WORD: Final = "OpenSSH_for_Windows"
NOT_SUPPORTED: Final = "not supported on Windows"

NVIDIA_SMI_PLACES: Final = (
    "nvidia-smi.exe",
    r"C:\Windows\System32\nvidia-smi.exe",
    r"C:\PROGRA~1\NVIDIA~1\NVSMI\nvidia-smi.exe",
)
"""Where it is looked for, in this order; the last is where drivers before 2019 put it."""

TASK_LIST: Final = "tasklist.exe"
_WORD_BYTES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._")
_FORMAT = "--format=csv,noheader,nounits"


def is_windows_server(server_version: str | None) -> bool:
    """True for the version line of OpenSSH for Windows, which comes before any command."""
    return server_version is not None and SERVER_WORD in server_version


def nvidia_smi_command(place: str, section: str) -> str | None:
    """The command line for a section of the GPU loop; None for one that Windows is not asked."""
    name, _, argument = section.partition(":")
    if name in ("gpu", "condition"):
        fields = tuple(argument.split(":")) if argument else FAST_FIELDS
        if not all(field and set(field) <= _WORD_BYTES for field in fields):
            return None
        return f"{place} --query-gpu={','.join(fields)} {_FORMAT}"
    if name == "apps":
        return f"{place} --query-compute-apps={','.join(APPS_FIELDS)} {_FORMAT}"
    return {"list": f"{place} -L", "version": f"{place} --version"}.get(name)


def clean_output(stdout: bytes, stderr: bytes = b"") -> bytes:
    """What the tool printed, as lines of UTF-8; what the shell says of itself is left out.

    PowerShell puts its progress on stderr as `#< CLIXML` and XML. Of stderr only sentences of NVIDIA count:
    that a command is not found is said there in the language of the machine.
    """
    lines = [line for line in _lines(stdout) if not line.startswith(("#< CLIXML", "<Objs"))]
    lines += [line for line in _lines(stderr) if line.startswith(("NVIDIA-SMI", "Failed to initialize NVML"))]
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(text: bytes) -> list[str]:
    encoding = "utf-16" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return [line.strip("\r") for line in text.decode(encoding, "replace").split("\n") if line.strip("\r\0 ")]


def is_answer(section: str, payload: bytes, exit_code: int) -> bool:
    """True when nvidia-smi spoke; False when a shell did, because there is no such command."""
    fields = tuple(section.split(":")[1:]) or FAST_FIELDS
    reading = parse_gpus(payload, exit_code, fields)
    if reading.problem is None:
        return bool(reading.cards or reading.faults or reading.unsupported_fields)
    return reading.problem.code not in ("unreadable", "no_tool", "cannot_run")


def names_running(listing: bytes) -> bool:
    """True when the list of tasks has an nvidia-smi."""
    return b"nvidia-smi.exe" in listing.lower()
