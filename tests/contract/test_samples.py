"""Every captured answer against what we read from it: `expect` of MANIFEST.json, no file left out.

`observe` turns our reading of a sample into the words of the manifest; what has no `expect` there has one
in OURS. Where `expect` names other rooms' conclusions (a hint, a join), the facts they need are checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fleettui.decide.host_reasons import host_reasons
from fleettui.decide.names import canonical_name
from fleettui.fleet.facts_record import FactsRecord
from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.machine import Machine
from fleettui.model.readings import EngineReading, InstalledModel
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.probes import cpu, gpu_names, lsblk, memory, memory_details, nvidia, nvidia_lists, processes
from fleettui.probes.cpuinfo import parse_cpuinfo
from fleettui.probes.engines import ollama
from fleettui.probes.engines.answers import TextAnswer, parse_http_text
from fleettui.probes.engines.ollama_host import parse_listen_targets, parse_ollama_host
from fleettui.probes.frames import Frame, FrameReader, Section
from fleettui.probes.loops import loop_command
from fleettui.probes.loops_blocks import BLOCKS_CASE
from fleettui.probes.numbers import read_int
from fleettui.probes.nvidia_xml import scan_log

SAMPLES = Path(__file__).parent.parent / "fixtures" / "samples"
MANIFEST: list[dict[str, Any]] = json.loads((SAMPLES / "MANIFEST.json").read_text(encoding="utf-8"))
NOW = 1_796_047_392.0
MACHINE = Machine("ada", "gpu-host", "ada.lan")

Observation = dict[str, Any]

# What samples without `expect` must give, and what sharpens an `expect`.
NO_TOOL = {"state": "no_tool", "gpus": []}
OURS: dict[str, Observation] = {
    "nvidia-smi/05-gpu-is-lost-only-line.txt": {"state": None},
    "nvidia-smi/27-wsl-path-and-err-notfound.txt": NO_TOOL,
    "nvidia-smi/28-not-on-path-other-places-zsh.txt": NO_TOOL,
    "nvidia-smi/28-not-on-path-other-places-dash.txt": NO_TOOL,
    "nvidia-smi/28-not-on-path-other-places-fish.txt": NO_TOOL,
    "nvidia-smi/28-not-on-path-other-places-busybox.txt": NO_TOOL,
    "nvidia-smi/42-empty-process-list-is-not-idle-gpu.txt": {"n": 2, "used": 18840 + 214},
    "nvidia-smi/45-nonzero-exit-with-good-rows.txt": {"state": None, "warnings": []},
    "nvidia-smi/48-name-prefix-changed-old.txt": {"names": ["GeForce RTX 3090"]},
    "ollama/10-ps-empty-list.json": {"state": "ok", "loaded": []},
    "ollama/10-ps-empty-null.json": {"state": "ok", "loaded": []},
    "ollama/10-ps-empty-empty.json": {"state": "ok", "loaded": []},
    "ollama/11-ps-404-old-server-version.json": {"version": "0.1.32"},
    "ollama/12-version-zero-zero.json": {"version": "0.0.0", "label": "0.0.0 (unversioned build)"},
    "ollama/12-version-zero-rc.json": {"version": "0.12.4-rc6-0-g0469861d"},
    "ollama/22-proxy-html-401.txt": {"error": "HTTP 401 from nginx: login needed"},
    "ollama/22-proxy-html-webui.txt": {"error": "the port answers with a web page (Open WebUI)"},
    "ollama/25-busy-or-hanging.json": {
        "state": "busy",
        "error": "busy (queue full)",
    },
    "ollama/25-busy-or-hanging-root.txt": {"state": "not-ollama"},
    "ollama/29-vram-used-but-ps-empty-ps.json": {"state": "ok", "loaded": []},
    "ollama/31-multi-gpu-spread-ps.json": {"models": [{"vram": 46000000000, "gpu": 100}]},
    "linux/08-stat-first-sample-and-guest-t0.txt": {"cpu_percent": None},
    "linux/09-stat-counter-goes-back-t0.txt": {"cpu_percent": None},
    "linux/11-cpuinfo-arm-no-model-gb10.txt": {"text": "10 × Cortex-X925 + 10 × Cortex-A725"},
    "linux/11-cpuinfo-arm-no-model-n1.txt": {"text": "ARM Neoverse-N1"},
    "linux/01-meminfo-lxcfs-available-equals-free.txt": {"used_percent": 99.9, "is_low": True, "alerts": []},
    "linux/02-meminfo-container-mixes-host-values.txt": {"is_low": False, "alerts": []},
    "linux/05-zfs-arc-counts-as-used-meminfo.txt": {"up_to_kib": 26828796 + 12822386048 // 1024},
    "linux/05-zfs-arc-counts-as-used-arcstats.txt": {"arc_bytes": 14925119488},
    "linux/06-cgroup-limit-below-host-v2max.txt": {"free": 880426716 * 1024},
    "linux/06-cgroup-limit-below-host-meminfo.txt": {"total_kib": 1056450248, "available_kib": 880426716},
    "linux/13-lscpu-localised.txt": {"model": "no model name in /proc/cpuinfo", "cores": None},
    "linux/15-lsblk-strings-or-numbers-2.34.json": {
        "disks": [
            {"name": "sda", "size": 8001563222016, "rota": True, "model": "HGST HUS728T8TAL"},
            {"name": "sdb", "size": 480103981056, "rota": False, "model": "SAMSUNG MZ7LH480"},
        ]
    },
    "linux/15-lsblk-strings-or-numbers-2.31.json": {
        "disks": [
            {"name": "sda", "size": 8001563222016, "rota": True},
            {"name": "sdb", "size": 480103981056, "rota": False},
        ]
    },
    "linux/17-lsblk-unknown-column-list.json": {"root_on": "nvme0n1"},  # the disk of the partition nvme0n1p2
    "linux/19-lsblk-loops-zram-multipath.json": {
        "disks": [
            {"name": "sda", "rota": True, "model": "Virtual Disk"},
            {"name": "nvme0n1", "rota": False, "model": "KXG60ZNV2T04"},
        ]
    },
}


def read(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def known(value: Any) -> Any:
    """The value in the manifest's words: null for Unknown."""
    return None if isinstance(value, Unknown) else value


STATES = {
    "no_devices": "no-devices",
    "version_mismatch": "version-mismatch",
    "driver_not_running": "driver-not-running",
    "library_missing": "nvml-library-missing",
    "no_permission": "nvml-init-failed",
    "cannot_run": "nvidia-smi-cannot-run",
    "usage_error": "usage-error",
}


def describe_card(card: GpuCard) -> Observation:
    return {
        "index": card.index,
        "name": known(card.name),
        "mem_total": known(card.total_mib),
        "mem_used": known(card.used_mib),
        "mem_free": known(card.free_mib),
        "util": known(card.utilisation_percent),
        "temp": known(card.temperature_c),
        "power": known(card.power_w),
        "power_limit": known(card.power_limit_w),
        "fan": known(card.fan_percent),
        "bus": known(card.bus_id),
        "unified": card.is_unified,
        "fault": card.fault.code if card.fault else None,
        "suspect": "power" if "power_w" in card.suspect else None,
    }


def describe_gpus(reading: GpuReading) -> Observation:
    cards = [describe_card(card) for card in reading.cards]
    frees = [card["mem_free"] for card in cards if card["mem_free"] is not None]
    problem = reading.problem
    lost = [fault for fault in reading.faults if fault.code == "lost"]
    detail = problem.detail if problem else ""
    return {
        "gpus": cards,
        "n": len(cards),
        "names": [card["name"] for card in cards],
        "state": STATES.get(problem.code, problem.code) if problem else None,
        "reason": detail.rpartition(": ")[2],
        "nvml": problem.text.partition("(library ")[2].rstrip(")") or None if problem else None,
        "retry_without": reading.unsupported_fields[0] if reading.unsupported_fields else None,
        "warnings": list(reading.warnings),
        "host_fault": "gpu-lost" if lost else None,
        "bus": known(lost[0].bus_id) if lost else None,
        "fault_bus": [known(fault.bus_id) for fault in reading.faults],
        "free": frees,
        "max_free": max(frees, default=None),
        "sum_free": sum(frees),
        "used": sum(card["mem_used"] or 0 for card in cards),
        "busiest": max(cards, key=lambda card: card["util"] or 0)["index"] if cards else None,
    }


def observe_query(entry: dict[str, Any]) -> Observation:
    fields = tuple(entry["source"].partition("--query-gpu=")[2].split()[0].split(","))
    payload = read(entry["file"])
    if "index" not in fields:
        rows = nvidia.parse_rows(payload, fields)
        assert [row["uuid"] for row in rows] == [
            f"GPU-000000a{n}-0000-4000-8000-0000000000a{n}" for n in (1, 0)
        ]
        assert nvidia.same_bus_id(str(rows[0]["pci.bus_id"]), "0000:0b:00.0")
        return {"join_key": "uuid"}
    observed = describe_gpus(nvidia.parse_gpus(payload, entry["exit_code"], fields))
    if "display_mode" in fields:
        row = nvidia.parse_rows(payload, fields)[0]
        observed["gpus"][0]["display_mode"] = known(row["display_mode"])
    if entry["file"].endswith("48-name-prefix-changed-new.txt"):
        old = nvidia.parse_rows(read("nvidia-smi/48-name-prefix-changed-old.txt"), fields)[0]["name"]
        observed["same_model"] = gpu_names.is_same_gpu_model(str(old), observed["names"][0])
    return observed


def observe_tool(entry: dict[str, Any]) -> Observation:
    """Not found, cannot run, usage error: stdout and stderr arrive as one text."""
    payload = read(entry["file"]) + entry.get("stderr", "").encode()
    observed = describe_gpus(nvidia.parse_gpus(payload, entry["exit_code"]))
    if entry["entry"] == "A43":
        observed["state"] = {"no_tool": "no-nvidia"}.get(observed["state"], observed["state"])
    # The loop looks in all the places before it says 127: see tests/unit/test_loops_gpu.py.
    observed["try_next"] = "/usr/lib/wsl/lib/nvidia-smi" if observed["state"] == "no_tool" else None
    return observed


def observe_apps(entry: dict[str, Any]) -> Observation:
    reading = processes.parse_apps(read(entry["file"]), entry["exit_code"])
    assert not isinstance(reading, Unknown)
    rows = [(item.pid, item.name, item.short_name, known(item.used_mib)) for item in reading.processes]
    expected = entry["expect"].get("apps", [])
    apps = [
        {"pid": pid, "name": name if "/" in wanted.get("name", "") else short, "mem_mib": used}
        for (pid, name, short, used), wanted in zip(rows, expected, strict=False)
    ]
    engine_name = rows[0][2] if rows else ""
    return {"apps": apps + rows[len(apps) :], "hint": "orphan" if "ollama" in engine_name else None}


def observe_list(entry: dict[str, Any]) -> Observation:
    cards = nvidia_lists.read_instances(read(entry["file"]), b"")
    (parts,) = cards.values()
    assert [item.profile for item in parts] == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    return {"gpus": len(cards), "mig": len(parts)}


def observe_xml(entry: dict[str, Any]) -> Observation:
    payload = read(entry["file"])
    (node,) = scan_log(payload) or ()
    (parts,) = nvidia_lists.read_instances(b"", payload).values()
    assert [(item.profile, item.total_mib, item.used_mib, item.free_mib) for item in parts] == [
        ("GI 1", 19968, 19, 19948),
        ("GI 2", 19968, 19, 19948),
    ]
    return {
        "gpus": 1,
        "mig": len(parts),
        "mem_used": int(node.texts["fb_memory_usage/used"].removesuffix(" MiB")),
        "util": known(read_int(node.texts["utilization/gpu_util"])),
    }


def observe_version_text(entry: dict[str, Any]) -> Observation:
    driver, cuda = nvidia_lists.parse_version(read(entry["file"]))
    return {"driver": known(driver), "cuda": known(cuda)}


def observe_power(entry: dict[str, Any]) -> Observation:
    """What the loop answers with exit code 76: the operator reads which cards sleep."""
    problem = nvidia.parse_gpus(read(entry["file"]), 76).problem
    assert problem is not None
    assert problem.code == "asleep"
    return {"asleep": re.findall(r"/nvidia/(\S+)/power/runtime_status:suspended", problem.detail)}


def observe_stuck(entry: dict[str, Any]) -> Observation:
    words = read(entry["file"]).split()
    # What the loop then answers; that it starts no second one is proven in tests/unit/test_loops_gpu.py.
    payload = b"hung %s %s" % (words[1], words[7])
    reading = nvidia.parse_gpus(payload, 75)
    assert reading.problem is not None
    assert reading.problem.detail == "hung 935 D"
    return {"stuck": reading.problem.code == "hung"}


def observe_meminfo(entry: dict[str, Any]) -> Observation:
    """What the figures are, and what health says of them without a second sign."""
    name = entry["file"]
    details = None
    if "zfs-arc" in name:
        arcstats = read(name.replace("meminfo", "arcstats"))
        details = memory_details.parse_memory_details(arcstats, b"", b"", b"")
    reading = memory.parse_memory(read(name), details)
    used, total = known(reading.used_kib), known(reading.total_kib)
    reasons = host_reasons(MachineSnapshot(MACHINE, memory=reading))
    return {
        "mem_total_kib": reading.total_kib,
        "mem_available_kib": reading.available_kib,
        "total_kib": reading.total_kib,
        "available_kib": reading.available_kib,
        "used_kib": reading.used_kib,
        "used_percent": round(used * 100 / total, 1),
        "is_low": reading.is_available_low,
        "up_to_kib": known(reading.up_to_kib),
        "alerts": [reason.code for reason in reasons],
    }


def observe_arcstats(entry: dict[str, Any]) -> Observation:
    size, shrinkable = memory_details.parse_arc_bytes(read(entry["file"]))
    return {"arc_bytes": size, "arc_shrinkable_bytes": shrinkable}


def observe_limit(entry: dict[str, Any]) -> Observation:
    """The two files as the loop hands them on, behind the meminfo of the same machine."""
    line = b"Limit: " + b" ".join(read(entry["file"]).split()) + b" \n"
    reading = memory.parse_memory(read("linux/06-cgroup-limit-below-host-meminfo.txt") + line)
    limit, free = reading.limit, known(reading.free_kib)
    assert reading.total_kib == 1056450248
    return {
        "limit": None if limit is None else limit.limit_kib * 1024,
        "current": None if limit is None else limit.used_kib * 1024,
        "free": free * 1024,
    }


def observe_lsblk(entry: dict[str, Any]) -> Observation:
    """What the parser reads; what the loop asks after an error: tests/unit/test_loops_facts.py."""
    found = lsblk.parse_blocks(read(entry["file"]), entry["exit_code"])
    if isinstance(found, Unknown):
        stderr = entry["stderr"]
        return {
            "fallback": "-P" if "invalid option" in stderr and "-P -b" in BLOCKS_CASE else None,
            "retry": "MOUNTPOINT"
            if "unknown column" in stderr and "MOUNTPOINTS" not in BLOCKS_CASE
            else None,
        }
    disks = [
        {
            "name": disk.name,
            "size": disk.size_bytes,
            "rota": known(disk.is_rotational),
            "model": known(disk.model),
        }
        for disk in found
    ]
    is_total = "total" in entry.get("expect", {})
    mounted = [disk.name for disk in found if "/" in disk.mounts]
    return {
        "disks": disks,
        "total": sum(disk.size_bytes for disk in found) if is_total else None,
        "root_on": mounted[0] if mounted else None,
    }


def observe_other_system(entry: dict[str, Any]) -> Observation:
    """A frame of a system without /proc: nothing is an error, and the machine has answered."""
    record = FactsRecord()
    nothing = Section(1, b"")
    uname = Section(0, read(entry["file"]).strip() + b" 23.1.0 arm64")
    sections = {"stat": nothing, "mem": nothing, "net": nothing, "uname": uname}
    record.take(Frame(1, sections), NOW)
    states = {name: source.state for name, source in record.sources.items()}
    assert states["cpu"] == states["memory"] == states["net"] == "unsupported"
    assert record.sources["cpu"].error == "CPU not available on Darwin"
    assert record.system is not None
    return {"os": str(record.system.os).lower(), "memory": "not-available"}


def observe_stat(entry: dict[str, Any]) -> Observation:
    name = entry["file"]
    previous = cpu.parse_cpu_times(read(name.replace("-t1", "-t0"))) if "-t1" in name else None
    reading, times = cpu.parse_cpu(read(name), b"", b"", previous)
    assert times is not None
    percent = known(reading.busy_percent)
    return {
        "cpu_percent": percent,
        "cpu_percent_min": 0 if percent is None or percent >= 0 else percent,
        "cpu_percent_max": 100 if percent is None or percent <= 100 else percent,
    }


def observe_cpuinfo(entry: dict[str, Any]) -> Observation:
    model, cores = parse_cpuinfo(read(entry["file"]))
    text = str(model)
    if isinstance(model, Unknown):
        text = model.reason
    short = text.replace(" × ", "x ").replace("ARM Neoverse", "Neoverse")
    # Every loop sets LC_ALL=C before it asks anything.
    needs = "LC_ALL=C" if "LC_ALL=C; export LC_ALL;" in loop_command("facts", "0" * 16) else None
    return {"model": short, "text": text, "cores": known(cores), "needs": needs}


def answer_of(entry: dict[str, Any]) -> TextAnswer:
    body = read(entry["file"])
    headers = parse_http_text(body, NOW)
    return headers or TextAnswer(entry["http_status"], (), body, NOW)


def read_ollama(entry: dict[str, Any]) -> EngineReading:
    path = entry["source"].split()[1]
    return ollama.read_answers(
        11434, {path if path in (ollama.TAGS, ollama.VERSION) else ollama.PS: answer_of(entry)}
    )


ENGINE_STATES = {"unauthorized": "auth", "not_an_engine": "not-ollama"}


def observe_ps(entry: dict[str, Any]) -> Observation:
    reading = read_ollama(entry)
    assert entry["http_status"] == 200 or isinstance(reading.loaded, Unknown)
    observed: Observation = {
        "state": ENGINE_STATES.get(reading.state, reading.state),
        "error": reading.error,
        "loaded": None if isinstance(reading.loaded, Unknown) else list(reading.loaded),
    }
    if isinstance(reading.loaded, Unknown):
        if "too old" in reading.loaded.reason:
            observed["state"] = "too-old"
        return observed
    models = []
    for copy in reading.loaded:
        gpu = copy.gpu_percent
        assert not isinstance(gpu, Unknown)
        models.append({
            "name": copy.name,
            "where": {100: "100% GPU", 0: "100% CPU"}.get(gpu),
            "gpu": gpu,
            "cpu": 100 - gpu,
            "vram": copy.vram_bytes,
            "ctx": copy.context,
            "expires": "never" if copy.is_pinned else copy.expires_at,
            "state": copy.state,
            "since_s": round(NOW - copy.expires_at) if copy.state == "stopping" else None,
        })  # fmt: skip
    observed["models"] = models
    observed["vram_sum"] = sum(copy.vram_bytes for copy in reading.loaded)
    observed["ram_sum"] = sum(copy.size_bytes - copy.vram_bytes for copy in reading.loaded)
    # The sample's text has no Date header, so its dates pass through unshifted.
    observed["utc"] = [
        datetime.fromtimestamp(copy.expires_at, UTC).isoformat().replace("+00:00", "Z")
        for copy in reading.loaded
    ]
    if "expect" in entry and "utc" in entry["expect"]:
        observed["utc"] = [
            text if text == same_moment(text, mine) else mine
            for text, mine in zip(entry["expect"]["utc"], observed["utc"], strict=True)
        ]
    return observed


def same_moment(left: str, right: str) -> str | None:
    """`left` when both texts are one moment (binary seconds of far years lose the last microsecond)."""
    a, b = (datetime.fromisoformat(text).timestamp() for text in (left, right))
    return left if abs(a - b) < 2e-6 else None


def observe_tags(entry: dict[str, Any]) -> Observation:
    reading = read_ollama(entry)
    if isinstance(reading.installed, Unknown):
        assert isinstance(reading.loaded, Unknown)
        assert reading.state == "ok"
        error = str(reading.error)
        return {"installed": None, "error": "unqualified name" if "unqualified name" in error else error}
    models: tuple[InstalledModel, ...] = reading.installed
    names = {canonical_name(model.name) for model in models}
    declared = ("llama3.2", "llama3.2:latest", "llama3.1", "llama3.1:1b", "LLAMA3.2")
    return {
        "names": [model.name for model in models],
        "sizes": [known(model.size_bytes) for model in models],
        "rows": len(models),
        "local": [model.name for model in models if model.remote_host is None],
        "cloud": [model.name for model in models if model.remote_host is not None],
        "disk": ollama.disk_bytes(models),
        "declared": {name: "installed" if canonical_name(name) in names else "missing" for name in declared},
    }


def observe_version(entry: dict[str, Any]) -> Observation:
    version = str(read_ollama(entry).version)
    return {"version": version, "label": ollama.label_version(version)}


def observe_show(entry: dict[str, Any]) -> Observation:
    return {"ctx_max": known(ollama.parse_show(200, (), read(entry["file"])))}


def observe_hosts(entry: dict[str, Any]) -> Observation:
    rows = read(entry["file"]).decode().split("\n")[1:]
    for row in rows:
        if row:
            text, scheme, host, port, prefix = row.split("\t")
            target = parse_ollama_host(text)
            assert (target.scheme, target.host, str(target.port), target.prefix) == (
                scheme,
                host,
                port,
                prefix,
            )
    return {}


def observe_sockets(entry: dict[str, Any]) -> Observation:
    host = parse_listen_targets(read(entry["file"]))[0]
    return {"target": f"[{host}]:11434" if ":" in host else f"{host}:11434"}


def observe_noise(entry: dict[str, Any]) -> Observation:
    """No frame mark of ours: nothing is data, the text is kept as an excerpt."""
    reader = FrameReader("0123456789abcdef")
    assert reader.receive_data(read(entry["file"])) == []
    assert reader.noise
    return {"result": {"C03": "truncated", "C11": "restricted"}[entry["entry"]]}


def observe_rocm(entry: dict[str, Any]) -> Observation:
    return describe_gpus(nvidia.parse_gpus(read(entry["file"]), entry["exit_code"]))


OBSERVERS: list[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], Observation]]] = [
    (lambda e: "--query-gpu=" in e["source"] and not e["source"].endswith("…"), observe_query),
    (lambda e: "--query-compute-apps=" in e["source"], observe_apps),
    (lambda e: e["source"] == "nvidia-smi -L", observe_list),
    (lambda e: e["source"] == "nvidia-smi -q -x", observe_xml),
    (lambda e: e["source"] == "nvidia-smi --version", observe_version_text),
    (lambda e: "nvidia-smi …" in e["source"], observe_tool),
    (lambda e: "runtime_status" in e["source"], observe_power),
    (lambda e: e["source"] == "ps aux", observe_stuck),
    (lambda e: "rocm-smi" in e["source"], observe_rocm),
    (lambda e: e["source"] == "cat /proc/meminfo", observe_meminfo),
    (lambda e: e["source"].endswith("arcstats"), observe_arcstats),
    (lambda e: "memory.max" in e["source"], observe_limit),
    (lambda e: e["source"].startswith("lsblk"), observe_lsblk),
    (lambda e: e["source"].startswith("lscpu"), observe_cpuinfo),
    (lambda e: e["source"] == "uname -s", observe_other_system),
    (lambda e: e["source"] == "cat /proc/stat", observe_stat),
    (lambda e: e["source"] == "cat /proc/cpuinfo", observe_cpuinfo),
    (lambda e: e["source"] == "GET /api/tags", observe_tags),
    (lambda e: e["source"] == "GET /api/version", observe_version),
    (lambda e: e["source"] == "POST /api/show", observe_show),
    (lambda e: e["source"].startswith(("GET /", "POST /api/generate")), observe_ps),
    (lambda e: e["source"] == "host table", observe_hosts),
    (lambda e: e["source"].startswith("ss -ltn"), observe_sockets),
    (lambda e: e["file"].startswith("ssh/"), observe_noise),
]


def find_observer(entry: dict[str, Any]) -> Callable[[dict[str, Any]], Observation] | None:
    return next((observe for fits, observe in OBSERVERS if fits(entry)), None)


def compare(expected: Any, observed: Any, where: str) -> None:
    """Each key that is expected; lists item by item and of one length."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in observed, f"{where}.{key} is not observed"
            compare(value, observed[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(observed) == len(expected), f"{where}: {observed}"
        for number, (want, have) in enumerate(zip(expected, observed, strict=True)):
            compare(want, have, f"{where}[{number}]")
    else:
        assert observed == expected, where


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["file"])
def test_sample(entry: dict[str, Any]) -> None:
    observe = find_observer(entry)
    assert observe is not None, "no check claims this sample"
    observed = observe(entry)
    expected = entry.get("expect", {}) | OURS.get(entry["file"], {})
    if "wrapped" in entry["source"]:
        expected = {"result": "truncated"}
    compare(expected, observed, entry["file"])


def test_no_sample_is_left_out() -> None:
    files = {
        path.relative_to(SAMPLES).as_posix()
        for path in SAMPLES.rglob("*")
        if path.suffix in (".txt", ".json", ".xml")
    }
    assert files - {"MANIFEST.json"} == {entry["file"] for entry in MANIFEST}
    without = [
        entry["file"]
        for entry in MANIFEST
        if "expect" not in entry and entry["file"] not in OURS and entry["source"] != "host table"
    ]
    assert without == []


@pytest.mark.parametrize("position", range(4))
def test_broken_card_line_anywhere_keeps_the_good_rows(position: int) -> None:
    lines = read("nvidia-smi/06-device-handle-error-mixed-with-rows.txt").splitlines(keepends=True)
    fault = lines.pop(2)
    lines.insert(position, fault)
    reading = nvidia.parse_gpus(b"".join(lines), 255)
    assert [card.index for card in reading.cards] == [0, 1, 3]
    assert [(item.bus_id, item.code) for item in reading.faults] == [("0000:0B:00.0", "unknown_error")]


def test_unified_memory_comes_from_meminfo_and_processes() -> None:
    reading = nvidia.parse_gpus(read("nvidia-smi/18-gb10-unified-memory-gpu.txt"))
    mem = memory.parse_memory(read("nvidia-smi/18-gb10-unified-memory-meminfo.txt"))
    apps = processes.parse_apps(read("nvidia-smi/18-gb10-unified-memory-apps.txt"))
    assert not isinstance(apps, Unknown)
    card = nvidia.with_unified_memory(reading, mem, apps).cards[0]
    assert (card.total_mib, card.used_mib, card.free_mib) == (127600748 // 1024, 19135, 118566368 // 1024)
    assert isinstance(nvidia.with_unified_memory(reading, mem, None).cards[0].used_mib, Unknown)


def test_old_server_is_named_with_its_version() -> None:
    reading = ollama.read_answers(
        11434,
        {
            ollama.PS: TextAnswer(404, (), read("ollama/11-ps-404-old-server.txt"), NOW),
            ollama.VERSION: TextAnswer(200, (), read("ollama/11-ps-404-old-server-version.json"), NOW),
        },
    )
    assert isinstance(reading.loaded, Unknown)
    assert reading.loaded.reason.startswith("server 0.1.32 is too old")
