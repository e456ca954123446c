"""The Models tab: what differs, in words; who is on the GPUs; nothing invented where nothing was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders import (
    NOW,
    digest_of,
    make_copy,
    make_engine,
    make_installed,
    make_machine,
    make_pending,
    make_process,
    make_snapshot,
)
from fleettui.model.gpu import GpuProcess
from fleettui.model.gpu_users import engine_kind_of, other_processes, undeclared_engines
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import CopyUse, ModelTraits
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.sockets import FoundEngine
from fleettui.model.unknown import Unknown
from fleettui.view.cells import text_of
from fleettui.view.layout import make_layout
from fleettui.view.machine_page import models_page
from fleettui.view.model_drift import Drift, find_drift, find_other_digests


def page(snapshot: MachineSnapshot, others: Sequence[Drift] = (), width: int = 100) -> dict[str, list[str]]:
    return {
        section.title: [text_of(line).rstrip() for line in section.lines]
        for section in models_page(snapshot, NOW, make_layout(width), others)
    }


def declaring(*names: str, **changes: Any) -> MachineSnapshot:
    return make_snapshot(machine=make_machine(models=names), **changes)


def test_each_difference_in_words() -> None:
    snapshot = declaring(
        "llama3.1:70b",
        "qwen2.5:32b",
        loaded=[make_copy(), make_copy("phi3:mini", gib=2.2), make_copy("gone:1b", gib=1)],
        installed=[
            make_installed(),
            make_installed("phi3:mini", gib=2.2),
            make_installed("qwen3:8b", gib=5.2),
        ],
    )
    assert page(snapshot)["Differences"] == [
        "qwen2.5:32b  declared, not installed",
        "phi3:mini    loaded, not declared            2.2 GiB",
        "gone:1b      loaded, not installed any more  1.0 GiB",
        "qwen3:8b     installed, not declared         5.2 GiB",
    ]


def test_names_are_compared_as_engines_do() -> None:
    snapshot = declaring("Phi3", loaded=[make_copy("phi3:latest")])
    assert find_drift(snapshot) == ()
    assert page(snapshot)["Differences"] == ["none: what is declared is installed, and nothing else"]
    vllm = make_snapshot(
        machine=make_machine(models=("Org/M",), engines=(EngineEndpoint("vllm", 8000),)),
        engines=(make_engine(kind="vllm", port=8000, loaded=[make_copy("org/m", engine="vllm")]),),
    )
    assert [(drift.kind, drift.model) for drift in find_drift(vllm) or ()] == [
        ("not_installed", "Org/M"),
        ("loaded_not_declared", "org/m"),
    ]


def test_a_file_without_models_has_nothing_to_differ_from() -> None:
    assert page(declaring(loaded=[make_copy()]))["Differences"] == ["the file declares no models"]


def test_cloud_entries_are_on_nobody_s_disk() -> None:
    cloud = make_installed("gpt-oss:120b-cloud", remote_host="ollama.com")
    assert find_drift(declaring("phi3:mini", installed=[cloud, make_installed("phi3:mini")])) == ()


def test_what_was_not_read_is_no_difference() -> None:
    unread = declaring("phi3:mini", engines=(make_engine(installed=None, state="busy"),))
    engine = make_engine(state="down", error="refused")
    down = declaring(
        "phi3:mini", engines=(type(engine)("ollama", 11434, "down", error="connection refused"),)
    )
    assert find_drift(unread) is not None  # it answered with an empty list
    assert find_drift(down) is None
    shown = page(down)
    assert shown["Differences"] == ["what is installed was not read: differences are not known"]
    assert shown["Loaded models"] == ["not known: no engine answered"]
    assert shown["Declared and installed models"] == ["phi3:mini  declared  not known"]


def test_a_machine_that_was_never_asked_says_so() -> None:
    assert page(make_pending()) == {"Loaded models": ["not known: no engine was asked"]}
    assert page(make_snapshot())["Loaded models"] == ["nothing is loaded"]


def holder(name: str, digest: str, model: str = "llama3.1:70b") -> MachineSnapshot:
    return make_snapshot(name, installed=[make_installed(model, digest=digest)])


def test_other_weights_under_the_same_name() -> None:
    old, new = digest_of("old"), digest_of("new")
    ada, bora, cleo, dora = holder("ada", old), holder("bora", new), holder("cleo", new), holder("dora", new)
    fleet = (ada, bora, cleo, dora, make_snapshot("enno"), make_pending())
    (found,) = find_other_digests(ada, fleet)
    assert (found.model, found.machines) == ("llama3.1:70b", ("bora", "cleo", "dora"))
    assert find_other_digests(bora, fleet) == ()  # as most have it
    declaring_it = replace(ada, machine=replace(ada.machine, models=("llama3.1:70b",)))
    assert page(declaring_it, [found])["Differences"] == [
        f"llama3.1:70b  other weights than elsewhere  {old[:12]} here, {new[:12]} on bora, cleo, dora"
    ]
    assert page(ada, [found])["Differences"] == page(declaring_it, [found])["Differences"]


def test_one_against_one_is_told_on_both() -> None:
    ada, bora = holder("ada", digest_of("a")), holder("bora", digest_of("b"), "Llama3.1:70B")
    assert [drift.machines for drift in find_other_digests(ada, (ada, bora))] == [("bora",)]
    assert [drift.machines for drift in find_other_digests(bora, (ada, bora))] == [("ada",)]


def test_unknown_digests_differ_from_nothing() -> None:
    ada = make_snapshot("ada", installed=[make_installed(digest=Unknown("not reported"))])
    assert find_other_digests(ada, (ada, holder("bora", digest_of("b")))) == ()


def process(command: str, **changes: Any) -> GpuProcess:
    return make_process(name=command.split(maxsplit=1)[0], command=command, **changes)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/usr/bin/ollama runner --model x", "ollama"),
        ("/usr/lib/ollama/llama-server --model x", "ollama"),
        ("/opt/llama.cpp/llama-server -m x.gguf", "llamacpp"),
        ("VLLM::EngineCore", "vllm"),
        ("python3 -m vllm.entrypoints.openai.api_server", "vllm"),
        ("python3 -m sglang.launch_server", "sglang"),
        ("/home/mia/.lmstudio/bin/lms", "lmstudio"),
        ("python3 train.py", None),
    ],
)
def test_processes_are_told_by_name_and_command(command: str, kind: str | None) -> None:
    assert engine_kind_of(process(command)) == kind


def test_engines_nobody_declared_and_processes_of_no_engine() -> None:
    snapshot = make_snapshot(
        loaded=[make_copy(gib=14)],
        processes=[
            make_process(0, pid=11, gib=14.0),
            process("VLLM::EngineCore", index=1, pid=22, gib=20.1, user="mia"),
            process("python3 train.py", index=0, pid=33, gib=2.0, user="jo"),
            process("/usr/bin/Xorg", index=0, pid=44, gib=0.1, user=Unknown("no ps")),
        ],
    )
    shown = page(snapshot, width=100)
    assert shown["GPU processes"] == [
        "GPU  pid      VRAM  user    what                command",
        "0     11  14.0 GiB  ollama  llama3.1:70b        ollama runner --model 00 --port 41234",
        "1     22  20.1 GiB  mia     vLLM, not declared  VLLM::EngineCore",
        "0     33   2.0 GiB  jo      no engine           python3 train.py",
        "0     44   0.1 GiB  –       no engine           Xorg",
    ]
    assert shown["Not managed"] == [
        "vLLM runs here, the file declares none: VLLM::EngineCore of mia, pid 22, 20.1 GiB",
        "2 processes on the GPU belong to no known engine: python3 of jo, pid 33, 2.0 GiB; Xorg, pid 44,",
        "  0.1 GiB",
    ]


def test_engines_that_were_found_say_what_to_do() -> None:
    snapshot = make_snapshot(
        processes=[process("VLLM::EngineCore", index=1, pid=22, gib=20.1, user="mia")],
        found=(FoundEngine("vllm", 8000, True), FoundEngine("llamacpp", 8080, False, is_polled=True)),
    )
    assert page(snapshot, width=130)["Not managed"] == [
        "vLLM answers on port 8000 of the loopback, the file does not name it: add it under engines: to "
        "have it asked",
        "llama.cpp answers on port 8080: it is asked and routed to, since the file names no engine",
    ]


def test_whether_a_copy_works_and_what_it_was_made_for() -> None:
    copies = [make_copy("a:1", gib=9, context=4096), make_copy("b:1", gib=5)]
    disk = replace(make_installed("a:1"), traits=ModelTraits(max_context=131072))
    engine = make_engine(loaded=copies, installed=[disk], uses=(CopyUse("a:1", NOW - 200),))
    shown = page(make_snapshot(engines=(engine,)), width=120)["Loaded models"]
    assert "idle 3 min" in shown[0]
    assert "ctx 4096 of 131072" in shown[0]
    assert "idle" not in shown[1]
    busy = make_engine(kind="vllm", loaded=[make_copy("a:1", engine="vllm")], running=2, waiting=0)
    assert "at work: 2 running" in page(make_snapshot(engines=(busy,)), width=120)["Loaded models"][0]


def test_declared_engines_are_no_strangers() -> None:
    swap = make_machine(engines=(EngineEndpoint("llamaswap", 8080),))
    server = process("/opt/llama-server -m x.gguf")
    snapshot = make_snapshot(machine=swap, processes=[server, make_process(pid=2)])
    assert list(undeclared_engines(snapshot)) == ["ollama"]
    assert other_processes(snapshot) == []
    assert list(undeclared_engines(make_snapshot(processes=[server]))) == ["llamacpp"]


def test_memory_that_nothing_explains() -> None:
    from builders import make_card

    snapshot = make_snapshot(cards=[make_card(0, free_gib=4.0)], processes=[make_process(0, gib=12.0)])
    assert page(snapshot)["Not managed"] == ["no process and no copy explains 8.0 GiB of VRAM"]
    idle = make_snapshot(cards=[make_card(0, free_gib=23.5)])
    assert page(idle)["GPU processes"] == ["none"]
    assert "Not managed" not in page(idle)


def test_hostile_names_stay_on_their_line() -> None:
    bad = process("\x1b[2Jvllm", user="\x1b]0;x\x07", gib=3.0)
    snapshot = declaring("m\x1b[31m", processes=[bad], installed=[make_installed("x\nx")])
    assert all(line.isprintable() for lines in page(snapshot).values() for line in lines)


def test_old_answers_are_dim() -> None:
    fresh = make_snapshot(loaded=[make_copy()])
    old = make_snapshot(loaded=[make_copy()], age_s=300.0)
    for snapshot, tones in ((fresh, {"plain", "dim"}), (old, {"dim"})):
        (section, *_) = models_page(snapshot, NOW, make_layout(100))
        assert {cell.tone for cell in section.lines[0] if cell.text.strip()} == tones


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"running": 3, "waiting": 1, "kv_percent": 31.2}, "through SSH · 3 running, 1 waiting, KV 31 %"),
        ({"running": 0, "waiting": 0}, "through SSH · 0 running"),
        ({"running": 0, "is_sleeping": True}, "through SSH · asleep"),
        ({"running": Unknown("metrics off (start llama-server with --metrics)")},
         "through SSH · metrics off (start llama-server with --metrics)"),
        ({}, "through SSH"),
    ],
)  # fmt: skip
def test_what_an_engine_works_on(changes: dict[str, Any], told: str) -> None:
    engine = make_engine(kind="llamacpp", port=8080, version="b1", **changes)
    assert page(make_snapshot(engines=(engine,)), width=140)["Engines"] == [
        f"llama.cpp  b1  port 8080  ok  {told}"
    ]
