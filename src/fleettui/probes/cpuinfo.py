"""Processor model and count: /proc/cpuinfo of x86, ARM, POWER, RISC-V, s390 and LoongArch, and cpu lists."""

from __future__ import annotations

import re
from collections import Counter

from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.arm_cores import IMPLEMENTERS, PARTS
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits

_MODEL_KEYS = frozenset(("model name", "Model Name", "cpu model", "cpu", "uarch"))
"""x86 and vendors' ARM kernels; LoongArch; MIPS; POWER; RISC-V."""
_S390_MACHINE = re.compile(r"^processor (\d{1,4}):.*machine = ([0-9A-Fa-f]{4})\b")
_MAX_CORES = 65536


def parse_cpuinfo(payload: bytes) -> tuple[Maybe[str], Maybe[int]]:
    """Model and number of logical processors; mixed ARM cores as `10 × Cortex-X925 + 10 × Cortex-A725`."""
    models: Counter[str] = Counter()
    parts: Counter[tuple[str, str]] = Counter()
    processors = 0
    implementer, isa, vendor, declared = "", "", "", 0
    for line in payload.decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            continue
        if key == "processor":
            # Old ARM kernels print the model's name here once.
            processors += is_digits(value)
        elif key in _MODEL_KEYS and value:
            models[clean_text(value.partition(",")[0] if key == "cpu" else value, 100)] += 1
        elif key == "CPU implementer":
            implementer = value.lower()
        elif key == "CPU part":
            parts[implementer, value.lower()] += 1
        elif key == "isa":
            isa = isa or value.partition("_")[0]
        elif key == "# processors" and is_digits(value):
            declared = int(value)
        elif (found := _S390_MACHINE.match(line)) is not None:
            vendor = f"IBM/S390 {found[2]}"
            processors += 1
    cores: Maybe[int] = declared or processors or Unknown("no /proc/cpuinfo")
    return _name(models, parts, vendor, isa), cores


def count_cpus(cpu_list: str) -> int | None:
    """How many processors a list such as `0-63,128-191` names; None for anything else."""
    count = 0
    for part in cpu_list.strip().split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not is_digits(first) or not is_digits(last) or not int(first) <= int(last) < _MAX_CORES:
            return None
        count += int(last) - int(first) + 1
    return count if count <= _MAX_CORES else None


def _name(models: Counter[str], parts: Counter[tuple[str, str]], vendor: str, isa: str) -> Maybe[str]:
    """The maker's name of the processor; ARM kernels print `ARMv8 Processor rev 1 (v8l)` or nothing."""
    real = [model for model, _ in models.most_common(1) if not (parts and model.startswith("ARMv"))]
    if real:
        return real[0]
    if parts:
        return _name_arm(parts)
    if vendor:
        return vendor
    return f"RISC-V {clean_text(isa, 40)}" if isa else Unknown("no model name in /proc/cpuinfo")


def _name_arm(parts: Counter[tuple[str, str]]) -> str:
    if len(parts) == 1:
        implementer, part = next(iter(parts))
        return f"{IMPLEMENTERS.get(_hex(implementer), 'ARM')} {_core_name(implementer, part)}"
    # Larger cores first: Cortex-X925 before Cortex-A725.
    labels = sorted(((_core_name(*pair), count) for pair, count in parts.items()), reverse=True)
    return clean_text(" + ".join(f"{count} × {label}" for label, count in labels))


def _core_name(implementer: str, part: str) -> str:
    known = PARTS.get(_hex(implementer), {}).get(_hex(part))
    return known or clean_text(f"{implementer}/{part}", 20)


def _hex(text: str) -> int:
    """Value of `0xd0c`; -1 for anything else."""
    is_hex = (
        text.startswith("0x") and 2 < len(text) <= 6 and all(char in "0123456789abcdef" for char in text[2:])
    )
    return int(text, 16) if is_hex else -1
