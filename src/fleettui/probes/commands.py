"""What runs on a machine, one entry for each section of the loops: docs/remote-commands.md is made from it.

Tests compare the entries with the loops (each section has one, each program is named) and with what pollers
really ask (how often).
"""

from __future__ import annotations

import hashlib
from typing import Final, get_args

from fleettui.probes.commands_logs import LOGS_COMMANDS
from fleettui.probes.engines.ollama_environment import NAMES
from fleettui.probes.loops import LoopKind, loop_command
from fleettui.probes.loops_amd import AMD_TOOL_LIMIT_S, HWMON_FILES, SYSFS_FILES
from fleettui.probes.loops_df import DF_LIMIT_S
from fleettui.probes.loops_gpu import APPS_FIELDS, CONDITION_FIELDS, FAST_FIELDS, TOOL_LIMIT_S, XIDS_KEPT
from fleettui.probes.loops_sockets import COMMAND_KEPT, LISTENING_KEPT, SERVERS_KEPT
from fleettui.probes.remote_command import RemoteCommand, When

__all__ = ["COMMANDS", "LOOP_KINDS", "STARTING", "RemoteCommand", "When", "loop_digest"]

LOOP_KINDS: Final[tuple[LoopKind, ...]] = get_args(LoopKind)


def _smi(fields: tuple[str, ...], query: str = "gpu") -> str:
    return f"nvidia-smi --query-{query}={','.join(fields)} --format=csv,noheader,nounits"


_OTHERS = "only of process ids that the list before named"

COMMANDS: Final[tuple[RemoteCommand, ...]] = (
    # -- facts
    RemoteCommand("facts", "stat", "tick", reads=("/proc/stat",), note="first line"),
    RemoteCommand("facts", "load", "tick", reads=("/proc/loadavg",)),
    RemoteCommand("facts", "uptime", "tick", reads=("/proc/uptime",)),
    RemoteCommand(
        "facts",
        "mem",
        "tick",
        reads=(
            "/proc/meminfo",
            "memory.max and memory.current of this shell's cgroups, where one has a limit",
        ),
        note="the first dozen lines",
    ),
    RemoteCommand("facts", "net", "tick", reads=("/proc/net/dev",)),
    RemoteCommand(
        "facts",
        "cgroup",
        "memory",
        reads=(
            "/proc/self/cgroup",
            "memory.max, memory.stat and cpu.max of this shell's cgroups (v1: the same)",
        ),
    ),
    RemoteCommand("facts", "arc", "memory", reads=("/proc/spl/kstat/zfs/arcstats",)),
    RemoteCommand("facts", "psi", "memory", reads=("/proc/pressure/memory",)),
    RemoteCommand("facts", "swaps", "memory", reads=("/proc/swaps",)),
    RemoteCommand(
        "facts",
        "disks",
        "disks",
        ("df -lPkT",),
        limit_s=DF_LIMIT_S,
        note="local file systems only; with fewer options where an option is unknown",
    ),
    RemoteCommand("facts", "links", "minute", reads=("names in /sys/class/net",)),
    RemoteCommand("facts", "clock", "minute", ("date +%s.%N",)),
    RemoteCommand(
        "facts",
        "sockets",
        "sockets",
        ("awk … /proc/net/tcp /proc/net/tcp6",),
        limit_s=2,
        reads=("the same files, where there is no awk",),
        note=f"ports that are listened on, at most {LISTENING_KEPT}, with how many connections each has; no "
        "address of anybody who is connected is sent",
    ),
    RemoteCommand(
        "facts",
        "servers",
        "minute",
        (
            "ps -ww -o pid= -o ppid= -o args= -p PIDS",
            "grep -i -E ollama|llama.server|llama.swap|vllm|sglang|lm.?studio",
            f"cut -c 1-{COMMAND_KEPT}",
            f"head -n {SERVERS_KEPT}",
        ),
        reads=("/proc/*/comm",),
        limit_s=2,
        note="servers of models that no machine file names: command lines of processes whose name is that of "
        "one, or python",
    ),
    RemoteCommand(
        "facts",
        "ollama",
        "settings",
        (
            "tr \\000 \\n",
            "systemctl show ollama.service -p LoadState -p Environment -p EnvironmentFiles",
        ),
        reads=("/proc/*/comm", "/proc/PID/environ of an ollama of this account", "its EnvironmentFiles"),
        limit_s=2,
        note="systemctl only where no such environment can be read; of all that only "
        f"{', '.join('OLLAMA_' + name for name in NAMES)} are sent",
    ),
    RemoteCommand(
        "facts",
        "uname",
        "connection",
        ("uname -srm",),
        reads=("/proc/sys/kernel/ostype, osrelease and arch, where there is no uname",),
    ),
    RemoteCommand("facts", "os", "connection", reads=("/etc/os-release, else /usr/lib/os-release",)),
    RemoteCommand(
        "facts",
        "cpu",
        "connection",
        ("grep -E … /proc/cpuinfo",),
        limit_s=3,
        reads=("/proc/cpuinfo, where there is no grep",),
    ),
    RemoteCommand(
        "facts",
        "host",
        "connection",
        reads=(
            "/proc/sys/kernel/random/boot_id",
            "/sys/devices/system/cpu/online",
            "/proc/self/status",
            "/proc/1/cgroup",
            "/proc/self/mountinfo",
            "/run/systemd/container",
            "whether /.dockerenv and /run/.containerenv exist",
        ),
    ),
    RemoteCommand(
        "facts",
        "blocks",
        "connection",
        ("lsblk -J -b -o NAME,TYPE,SIZE,ROTA,MODEL,TRAN,MOUNTPOINT",),
        reads=("/sys/block, where there is no lsblk",),
        limit_s=2,
        note="up to three more calls with fewer columns, or with `-P`, where lsblk is too old for this one",
    ),
    RemoteCommand(
        "facts",
        "runtime",
        "connection",
        ("docker --version", "podman --version", "containerd --version"),
        limit_s=2,
        note="the first of them that is there and answers",
    ),
    RemoteCommand(
        "facts",
        "cores",
        "inventory",
        ("lscpu", "grep -E … /proc/cpuinfo"),
        limit_s=3,
        note="grep only where there is no lscpu",
    ),
    RemoteCommand("facts", "drives", "inventory", ("lsblk -J -b -d -o NAME,SIZE,ROTA",), limit_s=2),
    # -- gpu
    RemoteCommand(
        "gpu",
        "gpu",
        "tick",
        (_smi(FAST_FIELDS),),
        limit_s=TOOL_LIMIT_S,
        reads=("/sys/bus/pci/drivers/nvidia/*/power/runtime_status",),
        note="not while every card sleeps, unless the machine's file says `wake: true`; without a field that "
        "this driver refused",
    ),
    RemoteCommand(
        "gpu", "tool", "tick", note="only with `nvidia_smi:` in the machine's file: looks whether it is there"
    ),
    RemoteCommand(
        "gpu",
        "wake",
        "tick",
        note="only with `wake: true` in the machine's file, and in `inventory collect`; runs nothing itself",
    ),
    RemoteCommand(
        "gpu",
        "apps",
        "processes",
        (_smi(APPS_FIELDS, "compute-apps"),),
        limit_s=TOOL_LIMIT_S,
        note="not on WSL",
    ),
    RemoteCommand(
        "gpu",
        "ps",
        "processes",
        ("ps -ww -o pid= -o user:32= -o args= -p PIDS",),
        limit_s=3,
        note=f"{_OTHERS}; other options where this ps has not these",
    ),
    RemoteCommand("gpu", "condition", "condition", (_smi(CONDITION_FIELDS),), limit_s=TOOL_LIMIT_S),
    RemoteCommand("gpu", "list", "condition", ("nvidia-smi -L",), limit_s=TOOL_LIMIT_S, note="only with MIG"),
    RemoteCommand(
        "gpu", "xml", "condition", ("nvidia-smi -q -x",), limit_s=TOOL_LIMIT_S, note="only with MIG"
    ),
    RemoteCommand(
        "gpu",
        "xid",
        "condition",
        (
            "dmesg",
            "grep -e NVRM: Xid",
            f"tail -n {XIDS_KEPT}",
            "journalctl -kqn 3000 --no-pager -o short-monotonic",
        ),
        limit_s=3,
        note="journalctl only where dmesg is refused; both may need rights that the account does not have, "
        "then there are no Xids; only lines with `NVRM: Xid` are sent",
    ),
    RemoteCommand("gpu", "version", "driver", ("nvidia-smi --version",), limit_s=TOOL_LIMIT_S),
    RemoteCommand("gpu", "find", "asked", note="looks into the folders where nvidia-smi is found"),
    RemoteCommand(
        "gpu",
        "amd",
        "tick",
        reads=(
            "/sys/class/drm/card*: device/vendor, uevent, power/runtime_status, "
            f"{', '.join(SYSFS_FILES)}; hwmon: {', '.join(HWMON_FILES)}",
            "/sys/bus/pci/devices/*/class and vendor, where no AMD card has a driver",
        ),
        note="after the first answer only where there is an AMD card",
    ),
    RemoteCommand(
        "gpu",
        "amd-kind",
        "connection",
        ("od -An -tu1 -N4 …",),
        limit_s=3,
        note="gpu_metrics below /sys/bus/pci/drivers/amdgpu; one call for each card",
    ),
    RemoteCommand(
        "gpu",
        "amd-static",
        "connection",
        (
            "amd-smi static --json",
            "rocm-smi --showproductname --showbus --showuniqueid --showdriverversion --showmaxpower --json",
        ),
        limit_s=AMD_TOOL_LIMIT_S,
        note="one of the two; only with an AMD card, and not while one sleeps",
    ),
    RemoteCommand(
        "gpu",
        "amd-list",
        "connection",
        ("amd-smi list --json",),
        limit_s=AMD_TOOL_LIMIT_S,
        note="only with an AMD card",
    ),
    RemoteCommand(
        "gpu",
        "amd-metric",
        "amd tool",
        (
            "amd-smi metric --json",
            "rocm-smi --showmeminfo vram gtt --showuse --showtemp --showpower --showfan --json",
        ),
        limit_s=AMD_TOOL_LIMIT_S,
        note="one of the two; only where sysfs leaves a figure open",
    ),
    RemoteCommand(
        "gpu",
        "amd-process",
        "amd tool",
        ("amd-smi process --json", "rocm-smi --showpids --json"),
        limit_s=AMD_TOOL_LIMIT_S,
        note="one of the two; only with an AMD card",
    ),
    RemoteCommand(
        "gpu", "amd-ps", "amd tool", ("ps -ww -o pid= -o user:32= -o args= -p PIDS",), limit_s=3, note=_OTHERS
    ),
    RemoteCommand(
        "gpu", "amd-find", "doctor", note="looks into the folders where amd-smi and rocm-smi are found"
    ),
    # -- engine
    RemoteCommand(
        "engine",
        "get",
        "engine",
        (
            "curl -q -s -i -m 3 http://127.0.0.1:PORT/PATH",
            "wget -q -T 3 -O - http://127.0.0.1:PORT/PATH",
            "grep -e …",
        ),
        limit_s=5,
        note="wget only where there is no curl; [::1] where nothing listens on 127.0.0.1; PATH is one of the "
        "paths below; grep leaves of metrics the lines that are read; an API key is never given to these "
        "tools",
    ),
    # -- doctor
    RemoteCommand("doctor", "who", "doctor", ("id -un", "id -Gn"), limit_s=3),
    RemoteCommand("doctor", "clock", "doctor", ("date +%s.%N",), limit_s=3),
    RemoteCommand(
        "doctor",
        "journal",
        "doctor",
        ("journalctl -n 1 -k -o short-iso --no-pager",),
        limit_s=3,
        note="to tell whether this account may read it",
    ),
    RemoteCommand(
        "doctor",
        "journal_ollama",
        "doctor",
        ("journalctl -n 1 -u ollama -o short-iso --no-pager",),
        limit_s=3,
    ),
    RemoteCommand("doctor", "root", "doctor", reads=("/proc/mounts",)),
    RemoteCommand("doctor", "listen", "doctor", ("grep -h … /proc/net/tcp /proc/net/tcp6",), limit_s=3),
    RemoteCommand("doctor", "disks", "doctor", ("df -lPkT",), limit_s=DF_LIMIT_S),
    *LOGS_COMMANDS,
)

STARTING: Final[tuple[RemoteCommand, ...]] = tuple(
    RemoteCommand(
        kind,
        "",
        "connection",
        ("timeout 5 true",),
        limit_s=5,
        note="when the loop starts: which form of timeout(1) works here; up to three calls, and `printf` "
        "where the shell has none of its own (then with each answer)",
    )
    for kind in LOOP_KINDS
)
"""What each loop does before the first question."""


def loop_digest(kind: LoopKind) -> str:
    """SHA-256 of a loop's command without its token, the last word: the same on every connection."""
    token = "0" * 16
    return hashlib.sha256(loop_command(kind, token).removesuffix(token).encode("ascii")).hexdigest()
