"""The journal of a simulated machine: lines that follow from the seed, and one more every few seconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from hashlib import sha256

from fleettui.demo.doctor_answers import PERMISSION_HINT, Answer, may_read_journal
from fleettui.demo.machine import SimulatedMachine

LOG_SECTIONS = ("log", "follow", "dmesg", "logfiles")
PERIOD_S = 20
"""Seconds between two lines of the engine."""
XID_AGE_S = 60
"""How long ago at least the ailing machine's card fell ill."""
_PATHS = ("/api/chat", "/api/generate", "/api/embed", "/api/ps", "/v1/chat/completions")


def log_answer(machine: SimulatedMachine, section: str, now_s: float | None = None) -> Answer:
    """Exit code and text of one of LOG_SECTIONS."""
    now_s = time.time() if now_s is None else now_s
    name, _, argument = section.partition(":")
    seconds, _, unit = argument.partition(":")
    since_s = int(seconds) if seconds.isdigit() else 0
    if name == "logfiles":
        return 0, ""
    if name == "dmesg":
        uptime_s = 1_000_000.0
        lines = [
            f"[{uptime_s - (now_s - at):.6f}] {text}"
            for at, source, text in _entries(machine, now_s - 3600, now_s)
            if source == "kernel"
        ]
        return 0, "\n".join([f"{uptime_s:.2f}", *lines])
    if not may_read_journal(machine):
        return 0, f"{PERMISSION_HINT}\nrc 0"
    return 0, "\n".join([*journal_lines(machine, now_s - since_s, now_s, unit), "rc 0"])


def journal_lines(machine: SimulatedMachine, start_s: float, end_s: float, unit: str = "") -> list[str]:
    """journalctl's lines (`-o short-iso`) after start, up to end."""
    wanted = unit.removesuffix(".service")
    return [
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S+0000} {machine.plan.name} "
        f"{source if source == 'kernel' else f'{source}[{_pid(machine, source)}]'}: {text}"
        for at, source, text in _entries(machine, start_s, end_s)
        if wanted in ("", source)
    ]


def _entries(machine: SimulatedMachine, start_s: float, end_s: float) -> list[tuple[float, str, str]]:
    """Epoch seconds, who, what; in order of time."""
    found: list[tuple[float, str, str]] = []
    for step in range(int(start_s // PERIOD_S) + 1, int(end_s // PERIOD_S) + 1):
        at = float(step * PERIOD_S)
        chance = _number(machine, step)
        if chance % 37 == 0 and machine.plan.cards:
            found.append((at, "nvidia-persistenced", "Verbose syslog connection opened"))
        if chance % 31 == 0:
            found.append((at, "kernel", "perf: interrupt took too long (2514 > 2500), lowering rate"))
        path = _PATHS[chance % len(_PATHS)]
        clock = datetime.fromtimestamp(at, UTC).strftime("%Y/%m/%d - %H:%M:%S")
        took_ms = 3 + chance % 900
        text = f'[GIN] {clock} | 200 | {took_ms:>9}ms |       127.0.0.1 | POST     "{path}"'
        found.append((at, "ollama", text))
    if machine.plan.has_driver_failure:
        library = ".".join(machine.plan.host.driver.split(".")[:2])
        at = machine_fell_ill_at(end_s)
        if at > start_s:
            found += [
                (
                    at,
                    "kernel",
                    "NVRM: Xid (PCI:0000:01:00): 79, pid=4711, name=ollama, GPU fell off the bus.",
                ),
                (at + 1, "kernel", "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus."),
                (
                    at + 2,
                    "kernel",
                    f"NVRM: API mismatch: the client has the version {library}, the module another",
                ),
            ]
    return sorted(found)


def machine_fell_ill_at(now_s: float) -> float:
    """Within the last minutes whenever one looks, and the same moment for minutes."""
    return (now_s - XID_AGE_S) // 300 * 300


def _number(machine: SimulatedMachine, step: int) -> int:
    return int.from_bytes(sha256(f"log {machine.plan.name} {step}".encode()).digest()[:4], "big")


def _pid(machine: SimulatedMachine, source: str) -> int:
    return 700 + _number(machine, len(source)) % 4000
