"""Limits of cgroups (cgroup v1 and v2): memory and processors, as the facts loop reports them.

`Limit: <bytes> <bytes used> <path>` stands behind meminfo; `cache <bytes> <path>` and
`cpu <quota> <period> <path>` (v2 `cpu.max`, v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`) come on their own.
"""

from __future__ import annotations

from fleettui.model.readings import MemoryLimit
from fleettui.model.unknown import Maybe, Unknown

_NO_LIMIT_BYTES = 1 << 60
"""v1 says "none" by the largest number its counter holds, rounded down to a page."""
_CONTAINER_SCOPES = ("docker-", "libpod-", "crio-", "cri-containerd-", "lxc.payload", "nerdctl-")


def parse_memory_limits(payload: bytes, total_kib: int | None) -> tuple[MemoryLimit, ...]:
    """The limits below `total_kib`, innermost first. Lines that are none are passed over."""
    limits = []
    for line in payload.split(b"\n"):
        words = line.split(None, 3)
        if len(words) < 3 or words[0] != b"Limit:":
            continue
        limit, used = _count(words[1]), _count(words[2])
        if limit is None or used is None or limit >= _NO_LIMIT_BYTES:
            continue
        if total_kib is None or limit // 1024 < total_kib:
            path = words[3] if len(words) > 3 else b""
            limits.append(MemoryLimit(limit // 1024, used // 1024, binds_sessions_only(path)))
    return tuple(limits)


def parse_limit_cache_kib(payload: bytes) -> Maybe[int]:
    """Page cache that can go (inactive_file) below the innermost limit that binds engines."""
    for line in payload.split(b"\n"):
        words = line.split(None, 2)
        if len(words) < 2 or words[0] != b"cache" or (len(words) > 2 and binds_sessions_only(words[2])):
            continue
        count = _count(words[1])
        return Unknown("not in memory.stat") if count is None else count // 1024
    return Unknown("no memory limit")


def parse_core_limit(payload: bytes) -> float | None:
    """Processors that the smallest CPU quota allows; None without one."""
    limits = []
    for line in payload.split(b"\n"):
        words = line.split(None, 3)
        if len(words) < 3 or words[0] != b"cpu" or (len(words) > 3 and binds_sessions_only(words[3])):
            continue
        quota, period = _count(words[1]), _count(words[2])
        if quota and period:
            limits.append(round(quota / period, 2))
    return min(limits, default=None)


def binds_sessions_only(path: bytes) -> bool:
    """True for a cgroup around logins: below user.slice, or the SSH service itself.

    Engines that run as services or in containers are outside of it. A container that a user or service
    started (`docker-….scope`) is no login.
    """
    parts = path.decode("utf-8", "replace").split("/")
    if any(part.startswith(_CONTAINER_SCOPES) for part in parts):
        return False
    return "user.slice" in parts or parts[-1].endswith(".service")


def _count(word: bytes) -> int | None:
    return int(word) if word.isdigit() and len(word) < 20 else None
