"""JSON documents: the documented shape, null for unknown, files kept as written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW,
    judged,
    make_card,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_machine,
    make_offline,
    make_pending,
    make_process,
    make_snapshot,
)
from fleettui.model.gpu import GpuCard, GpuProblem, GpuReading, MigInstance
from fleettui.model.machine import ConfigProblem
from fleettui.model.readings import MemoryReading
from fleettui.model.snapshot import DrainFlag, MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import Unknown
from fleettui.view.document import infrastructure_document, machine_document, machines_document
from sample_fleet import sample_fleet


def document_of(snapshot: MachineSnapshot) -> dict[str, Any]:
    """The document of one machine, through JSON and back."""
    whole = infrastructure_document(make_fleet(snapshot), NOW)
    machine: dict[str, Any] = json.loads(json.dumps(whole, allow_nan=False))["machines"][0]
    return machine


def test_the_whole_document_of_a_busy_machine() -> None:
    written = {
        "name": "ada",
        "role": "gpu-host",
        "network": {"hostname": "ada.lan", "mtu": 9000},
        "status": "mine",
        "note": "rack 7",
        "priority": 1.5,
    }
    machine = make_machine("ada", document=written)
    snapshot = make_snapshot(
        machine=machine,
        cards=[
            make_card(0, free_gib=0.8, utilisation_percent=97, temperature_c=41, power_w=212.04, pstate="P2"),
        ],
        loaded=[make_copy(context=32768)],
        processes=[make_process(gib=22.1)],
    )
    whole = json.loads(json.dumps(infrastructure_document(make_fleet(snapshot), NOW), allow_nan=False))
    assert {key: value for key, value in whole.items() if key != "machines"} == {
        "schema": 1,
        "taken_at": "2026-11-30T14:03:12Z",
        "interval_s": 2,
        "errors": [],
    }
    assert whole["machines"] == [
        {
            "name": "ada",
            "role": "gpu-host",
            "status": "online",
            "health": "healthy",
            "trust": "approved",
            "reasons": [],
            "network": {"hostname": "ada.lan", "mtu": 9000, "port": 11434},
            "tags": ["gpu"],
            "file": machine.document,
            "note": "rack 7",
            "priority": 1.5,
            "telemetry": {
                "cpu_percent": 12.4,
                "load": [1.2, 1, 0.8],
                "uptime_s": 864000.0,
                "ram_used_gb": 38.0,
                "ram_total_gb": 128.0,
                "ram_available_gb": 90.0,
                "ram_free_gb": 90.0,
                "ram_free_up_to_gb": None,
                "ram_limit_gb": None,
                "swap_used_gb": 0.0,
                "swap_total_gb": 0.0,
                "zfs_arc_gb": None,
                "memory_stalled_percent": None,
                "disks": [{"mount": "/", "used_gb": 212.0, "free_gb": 670.4, "total_gb": 929.8}],
                "net": [{"name": "eno1", "rx_mb_s": 0.4, "tx_mb_s": 1.1, "counted": True}],
                "gpu": [
                    {
                        "index": 0,
                        "uuid": "GPU-000000a0-0000-4000-8000-0000000000a0",
                        "vendor": "nvidia",
                        "bus_id": "00000000:01:00.0",
                        "name": "NVIDIA GeForce RTX 4090",
                        "vram_total_gb": 24.0,
                        "vram_used_gb": 23.2,
                        "vram_free_gb": 0.8,
                        "utilisation": 97,
                        "temperature_c": 41,
                        "power_w": 212.0,
                        "power_limit_w": 450.0,
                        "fan_percent": 30,
                        "pstate": "P2",
                        "unified": False,
                        "disabled": False,
                        "fault": None,
                        "stale": False,
                        "implausible": [],
                        "mig": [],
                        "persistence": None,
                        "pcie": None,
                        "ecc": None,
                        "throttle": None,
                        "compute_cap": None,
                        "xid": None,
                        "processes": [
                            {
                                "pid": 4242,
                                "name": "ollama",
                                "user": "ollama",
                                "command": "/usr/local/bin/ollama runner --model "
                                "/var/lib/ollama/blobs/sha256-00 --port 41234",
                                "vram_gb": 22.1,
                            }
                        ],
                    }
                ],
                "gpu_faults": [],
                "vram_unexplained_gb": 0.0,
            },
            "loaded_models": ["llama3.1:70b"],
            "loaded": [
                {
                    "name": "llama3.1:70b",
                    "engine": "ollama",
                    "digest": "6c6c616d61332e313a3730620000000000000000000000000000000000000000",
                    "size_gb": 39.6,
                    "vram_gb": 39.6,
                    "gpu_percent": 100,
                    "context": 32768,
                    "max_context": None,
                    "aliases": [],
                    "adapters": [],
                    "capabilities": [],
                    "expires_at": "2026-11-30T14:07:12Z",
                    "pinned": False,
                    "state": "loaded",
                    "gpus": [0],
                    "busy": [],
                    "idle_s": None,
                }
            ],
            "installed": [
                {
                    "name": "llama3.1:70b",
                    "engine": "ollama",
                    "digest": "6c6c616d61332e313a3730620000000000000000000000000000000000000000",
                    "size_gb": 39.6,
                    "max_context": None,
                    "aliases": [],
                    "adapters": [],
                    "capabilities": [],
                    "remote": False,
                }
            ],
            "engines": [
                {
                    "kind": "ollama",
                    "port": 11434,
                    "state": "ok",
                    "version": "0.33.0",
                    "running": None,
                    "waiting": None,
                    "kv_percent": None,
                    "sleeping": None,
                    "in_flight": None,
                    "prompt_tokens_s": None,
                    "generated_tokens_s": None,
                    "slots": None,
                    "cache_tokens": None,
                    "router": False,
                    "needs_key": False,
                    "connections": None,
                    "loopback": None,
                    "error": None,
                }
            ],
            "found_engines": None,
            "system": {
                "os": "Ubuntu 24.04.2 LTS",
                "kernel": "6.8.0-60-generic",
                "arch": "x86_64",
                "cpu": "AMD Ryzen 9 7950X",
                "cores": 32,
                "core_limit": None,
                "container": None,
                "container_runtime": None,
                "boot_id": None,
                "clock_skew_s": None,
                "block_devices": None,
                "driver": "580.126.09",
                "cuda": None,
                "interfaces": ["eno1"],
            },
            "maintenance": {"on": False, "reason": None, "by": None, "since": None, "until": None},
            "drain": dict.fromkeys(("reason", "by", "since", "until", "text")) | {"state": "off"},
            "last_seen": "2026-11-30T14:03:11Z",
            "age_s": 1.0,
            "sources": {
                name: {"state": "ok", "age_s": 1.0, "error": None}
                for name in ("gpu", "processes", "cpu", "memory", "disks", "net", "system", "ollama")
            },
            "error": None,
        }
    ]


def test_gpu_is_absent_on_cpu_only_machines() -> None:
    assert "gpu" not in document_of(make_snapshot(gpus=0))["telemetry"]
    problem = GpuProblem("no_tool", "no nvidia-smi found")
    undeclared = replace(make_snapshot(gpus=None, cards=[]), gpu=GpuReading(problem=problem))
    assert "gpu" not in document_of(undeclared)["telemetry"]
    broken = replace(make_snapshot(), gpu=GpuReading(problem=problem))
    assert document_of(broken)["telemetry"]["gpu"] == []


def test_a_pinned_copy() -> None:
    copy = document_of(make_snapshot(loaded=[make_copy(is_pinned=True, expires_at=9.2e9)]))["loaded"][0]
    assert (copy["expires_at"], copy["pinned"]) == (None, True)


def test_a_stopping_copy_is_listed_and_not_offered() -> None:
    document = document_of(make_snapshot(loaded=[make_copy(state="stopping"), make_copy("qwen3:8b")]))
    assert document["loaded_models"] == ["qwen3:8b"]
    assert [copy["state"] for copy in document["loaded"]] == ["stopping", "loaded"]


def test_who_is_not_online() -> None:
    pending, offline = document_of(judged(make_pending())), document_of(make_offline())
    changed = document_of(judged(make_pending(trust="key_changed")))
    never = document_of(MachineSnapshot(make_machine()))
    assert [(d["status"], d["health"], d["trust"]) for d in (pending, changed, offline, never)] == [
        ("offline", "pending", "pending"),
        ("offline", "key_changed", "key_changed"),
        ("offline", "offline", "approved"),
        ("offline", "unknown", "approved"),
    ]
    telemetry = never["telemetry"]
    assert set(telemetry.values()) == {None}
    assert {"cpu_percent", "ram_used_gb", "gpu"} < set(telemetry)
    assert (never["loaded_models"], never["loaded"], never["installed"], never["system"]) == (None,) * 4
    assert (never["last_seen"], never["age_s"], never["sources"]) == (None, None, {})
    assert never["network"] == {"hostname": "ada.lan", "port": 11434}
    assert offline["error"] == "no answer on port 22 (timeout)"
    assert offline["reasons"] == ["no answer on port 22 (timeout)"]


def test_an_offline_machine_keeps_its_last_telemetry() -> None:
    gone = judged(replace(make_snapshot(loaded=[make_copy()]), link=make_offline().link))
    document = document_of(gone)
    assert document["status"] == "offline"
    assert document["telemetry"]["gpu"][0]["vram_free_gb"] == 24.0
    assert document["loaded_models"] == ["llama3.1:70b"]


def test_unknown_is_null_and_never_zero() -> None:
    bare = document_of(make_snapshot(gpus=1, cards=[GpuCard(0)], memory=MemoryReading(), processes=()))
    card = bare["telemetry"]["gpu"][0]
    assert {key for key, value in card.items() if value is None} == {
        "uuid", "name", "vram_total_gb", "vram_used_gb", "vram_free_gb", "utilisation", "temperature_c",
        "power_w", "power_limit_w", "fan_percent", "pstate", "fault", "bus_id", "persistence", "pcie", "ecc",
        "throttle", "compute_cap", "xid",
    }  # fmt: skip
    assert (bare["telemetry"]["ram_used_gb"], bare["telemetry"]["ram_total_gb"]) == (None, None)
    engine = replace(
        make_engine(state="down", error="connection refused"), loaded=Unknown(), installed=Unknown()
    )
    down = document_of(judged(make_snapshot(engines=(engine,))))
    assert (down["loaded_models"], down["engines"][0]["error"]) == ([], "connection refused")


def test_unified_memory_comes_from_meminfo() -> None:
    spark = next(m for m in sample_fleet().machines if m.name == "spark")
    card = document_of(spark)["telemetry"]["gpu"][0]
    assert card["unified"] is True
    assert (card["vram_total_gb"], card["vram_used_gb"], card["vram_free_gb"]) == (121.7, 38.1, 78.7)


def test_mig_flags_and_disabled_cards() -> None:
    part = MigInstance("1g.10gb", "MIG-0", 9856, 25, Unknown("[N/A]"))
    snapshot = make_snapshot(
        machine=make_machine(gpus=1, disabled_gpus=(0,)),
        cards=[make_card(mig=(part,))],
        maintenance=MaintenanceFlag("fan swap", "mia", NOW - 60, NOW + 60),
        drain=DrainFlag("blocked", "new card", "tom", NOW, NOW + 60, "vllm stays"),
    )
    document = document_of(snapshot)
    assert document["telemetry"]["gpu"][0]["disabled"] is True
    assert document["telemetry"]["gpu"][0]["mig"] == [
        {
            "profile": "1g.10gb",
            "uuid": "MIG-0",
            "vram_total_gb": 9.6,
            "vram_used_gb": 0.0,
            "vram_free_gb": None,
        }
    ]
    assert document["maintenance"] == {
        "on": True,
        "reason": "fan swap",
        "by": "mia",
        "since": "2026-11-30T14:02:12Z",
        "until": "2026-11-30T14:04:12Z",
    }
    assert document["drain"] == {
        "text": "vllm stays",
        "until": "2026-11-30T14:04:12Z",
        "state": "blocked",
        "reason": "new card",
        "by": "tom",
        "since": "2026-11-30T14:03:12Z",
    }


def test_cloud_models_are_marked() -> None:
    cloud = make_installed("gpt-oss:120b-cloud", remote_host="https://ollama.com:443")
    assert document_of(make_snapshot(installed=[cloud]))["installed"][0]["remote"] is True


def test_machines_document_returns_files_unmodified() -> None:
    written = {"name": "ada", "zz": [1, {"on": "off"}], "hardware": {}}
    machine = make_machine(document=written)
    problem = ConfigProblem("machines/x.yaml", 7, "role", "required key is missing")
    assert machines_document([machine], [problem]) == {
        "schema": 1,
        "machines": [{**written, "_config_file": "machines/ada.yaml"}],
        "total": 1,
        "errors": [
            {"file": "machines/x.yaml", "line": 7, "key": "role", "message": "required key is missing"}
        ],
    }
    assert list(machines_document([machine])["machines"][0]) == ["name", "zz", "hardware", "_config_file"]


figures = st.one_of(st.integers(0, 10**7), st.just(Unknown("[N/A]")))


@st.composite
def cards(draw: st.DrawFn) -> GpuCard:
    """A card of which anything may be unknown."""
    return GpuCard(
        index=draw(st.integers(0, 15)),
        uuid=draw(st.one_of(st.just(Unknown()), st.sampled_from(["GPU-a", "GPU-b"]))),
        total_mib=draw(figures),
        used_mib=draw(figures),
        free_mib=draw(figures),
        utilisation_percent=draw(figures),
        power_w=draw(st.one_of(st.just(Unknown()), st.floats(0, 1e4))),
        is_unified=draw(st.booleans()),
    )


@given(st.lists(cards(), max_size=4), figures, figures, st.booleans())
def test_any_readings_give_valid_json(
    found: list[GpuCard], total: Any, available: Any, is_read: bool
) -> None:
    snapshot = make_snapshot(
        cards=found,
        memory=MemoryReading(total, available) if is_read else None,
        loaded=[make_copy(size_bytes=total, vram_bytes=available)],
    )
    document = machine_document(judged(snapshot), NOW)
    text = json.dumps(document, allow_nan=False)
    assert json.loads(text) == document
