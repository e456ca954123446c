"""What changes rarely: `uname -srm`, /etc/os-release (os-release(5)), the processor, containers."""

from __future__ import annotations

import re

from fleettui.model.readings import SystemReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.cpuinfo import count_cpus, parse_cpuinfo

_CUT = Unknown("/proc/cpuinfo was cut")
_CONTAINER_PATHS = (("kubepods", "kubernetes"), ("libpod", "podman"), ("docker", "docker"), ("lxc", "lxc"))
_VERSION = re.compile(r"\b\d{1,4}(?:\.\d{1,4}){1,3}(?:[-+~][0-9A-Za-z.]{1,20})?")
_RUNTIMES = {"docker": "Docker", "podman": "podman", "containerd": "containerd"}


def parse_system(
    uname: bytes, os_release: bytes, cpuinfo: bytes, host: bytes = b"", *, is_cpuinfo_cut: bool = False
) -> SystemReading:
    """The reading of sections `uname`, `os`, `cpu`, `host`; each may be empty."""
    kernel, arch, system = _read_uname(uname)
    model, counted = parse_cpuinfo(cpuinfo)
    facts = _host_lines(host)
    online = count_cpus(facts.get("online", ""))
    cores = online or (_CUT if is_cpuinfo_cut else counted)
    name: Maybe[str] = parse_os_name(os_release)
    if isinstance(name, Unknown) and system != "Linux" and system:
        name = system
    container = facts.get("container") or None
    allowed = count_cpus(facts.get("allowed", "")) if container else None
    is_limited = allowed is not None and not isinstance(cores, Unknown) and allowed < cores
    boot_id: Maybe[str] = facts.get("boot") or Unknown("no boot_id")
    limit = float(allowed) if is_limited and allowed else None
    return SystemReading(name, kernel, arch, model, cores, limit, container, boot_id=boot_id)


def read_system_name(uname: bytes) -> str:
    """`Linux`, `Darwin`, `FreeBSD`, …; empty when uname gave nothing."""
    words = uname.split(None, 1)
    return clean_text(words[0], 20) if words else ""


def _read_uname(payload: bytes) -> tuple[Maybe[str], Maybe[str], str]:
    """Kernel, architecture and system name; `Linux` is left out of the kernel.

    Without a `uname` the kernel's own files give name and release, and the architecture only since Linux 6.1.
    """
    words = clean_text(payload.split(b"\n", 1)[0]).split()
    if len(words) < 2:
        missing = Unknown("uname gave nothing")
        return missing, missing, words[0] if words else ""
    arch: Maybe[str] = words[-1] if len(words) > 2 else Unknown("no uname on the machine")
    release = " ".join(words[1:-1] if len(words) > 2 else words[1:])
    return (release if words[0] == "Linux" else f"{words[0]} {release}"), arch, words[0]


def parse_os_name(payload: bytes) -> Maybe[str]:
    """PRETTY_NAME, else NAME, of os-release."""
    found: dict[str, str] = {}
    for line in payload.decode("utf-8", "replace").split("\n"):
        key, _, value = line.strip().partition("=")
        if value[:1] in ("'", '"') and value[-1:] == value[:1]:
            value = value[1:-1]
        found[key] = clean_text(value.replace("\\", ""), 100)
    return found.get("PRETTY_NAME") or found.get("NAME") or Unknown("no os-release")


def parse_runtime(payload: bytes, exit_code: int = 0) -> Maybe[str]:
    """`Docker 27.3.1` of `docker --version`, `podman --version` or `containerd --version`."""
    text = clean_text(payload.split(b"\n", 1)[0])
    kind = _RUNTIMES.get(text.partition(" ")[0].lower())
    version = _VERSION.search(text)
    if exit_code or kind is None or version is None:
        return Unknown(
            "no container runtime" if exit_code in (0, 127) else "container runtime did not answer"
        )
    return f"{kind} {version[0]}"


def _host_lines(payload: bytes) -> dict[str, str]:
    """First value of each kind of line of section `host`; `container` from the surest sign.

    systemd tells in /run/systemd/container; runtimes leave files; the cgroup of process 1 names them where
    the container has no namespace of its own; lxcfs mounted over /proc is LXC.
    """
    found: dict[str, str] = {}
    signs: list[str] = []
    for line in payload.decode("utf-8", "replace").split("\n"):
        kind, _, value = line.partition(" ")
        value = clean_text(value, 400)
        if kind == "container" and value:
            signs.append("lxc" if value == "lxcfs" else value[:40])
        elif kind == "cgroup":
            path = value.rpartition(":")[2]
            signs += [name for word, name in _CONTAINER_PATHS if word in path]
        elif value:
            found.setdefault(kind, value)
    if signs:
        found["container"] = "kubernetes" if "kubernetes" in signs else signs[0]
    return found
