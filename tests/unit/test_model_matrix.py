"""Models over the fleet: what is one model, what each machine has of it, what counts, what is made anew."""

from __future__ import annotations

from dataclasses import replace

from builders import (
    GIB,
    NOW,
    digest_of,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_machine,
    make_snapshot,
)
from fleettui.model.machine import EngineEndpoint
from fleettui.model.snapshot import MaintenanceFlag, SourceStatus
from fleettui.model.unknown import Unknown
from fleettui.view.model_matrix import ModelIndex
from model_fleets import crowd, host, lines_of, mixed_fleet, renewed

NOT_TOLD = Unknown("not reported")


def test_names_that_mean_the_same_to_ollama_are_one_model() -> None:
    lines = lines_of(
        host("ada", make_copy("Qwen3:Latest", digest=NOT_TOLD)),
        host("bora", models=["registry.ollama.ai/library/qwen3"]),
        host("cleo", make_copy("qwen3:8b", digest=NOT_TOLD)),
    )
    assert list(lines) == ["Qwen3", "qwen3:8b"]
    assert [holding.machine for holding in lines["Qwen3"].holdings] == ["ada", "bora"]


def test_tags_of_one_digest_are_one_model_with_an_alias() -> None:
    digest = digest_of("weights")
    lines = lines_of(
        host("ada", make_copy("llama3.1:latest", digest=digest)),
        host(
            "bora",
            installed=[make_installed("llama3.1:8b", digest=f"sha256:{digest}")],
            models=["llama3.1:8b"],
        ),
    )
    (line,) = lines.values()
    assert line.title == ("llama3.1:8b", ("llama3.1",))
    assert [(holding.machine, holding.state) for holding in line.holdings] == [
        ("ada", "on_gpu"),
        ("bora", "installed"),
    ]


def test_a_tag_that_differs_between_machines_stays_one_line_that_says_so() -> None:
    lines = lines_of(
        host("ada", installed=[make_installed(digest="a" * 64)]),
        host("bora", installed=[make_installed(digest="a" * 64)]),
        host("cleo", make_copy(digest="c" * 64)),
    )
    (line,) = lines.values()
    assert [holding.drift for holding in line.holdings] == ["", "", "same tag, other digest cccccccccccc"]
    assert line.figures.drifting == 1


def test_of_two_digests_that_are_as_frequent_none_is_the_usual_one() -> None:
    lines = lines_of(
        host("ada", installed=[make_installed(digest="a" * 64)]),
        host("bora", installed=[make_installed(digest="b" * 64)]),
    )
    (line,) = lines.values()
    assert [holding.drift for holding in line.holdings] == [
        "same tag, other digest aaaaaaaaaaaa",
        "same tag, other digest bbbbbbbbbbbb",
    ]


def test_a_tag_that_is_two_models_goes_with_the_names_that_tell_them_apart() -> None:
    small, large = "5" * 64, "7" * 64
    lines = lines_of(
        host("ada", installed=[make_installed("x", digest=small), make_installed("x:8b", digest=small)]),
        host("bora", installed=[make_installed("x", digest=large), make_installed("x:70b", digest=large)]),
        host("cleo", models=["x"]),
    )
    machines = {name: [item.machine for item in line.holdings] for name, line in lines.items()}
    assert machines == {"x": ["cleo"], "x:8b": ["ada"], "x:70b": ["bora"]}
    assert lines["x:8b"].holdings[0].drift, "x is something else on bora"


def test_a_copy_older_than_what_was_pulled_since_is_told() -> None:
    machine = make_snapshot(
        "ada", loaded=[make_copy(digest="a" * 64)], installed=[make_installed(digest="b" * 64)]
    )
    (line,) = lines_of(machine).values()
    assert line.holdings[0].drift == "the loaded copy has another digest than the installed model"


def test_other_engines_compare_whole_ids() -> None:
    vllm = make_engine(
        kind="vllm", port=8000, loaded=[make_copy("Qwen/Qwen3-8B", engine="vllm", digest=NOT_TOLD)]
    )
    endpoint = EngineEndpoint("vllm", 8000)
    declared = make_machine("ada", engines=(endpoint,), models=("Qwen/Qwen3-8B",))
    other = make_machine("bora", engines=(endpoint,), models=("qwen/qwen3-8b",))
    lines = lines_of(
        make_snapshot(machine=declared, engines=(vllm,)),
        make_snapshot(machine=other, engines=(make_engine(kind="vllm", port=8000),)),
    )
    assert {name: line.holdings[0].state for name, line in lines.items()} == {
        "Qwen/Qwen3-8B": "on_gpu",
        "qwen/qwen3-8b": "missing",
    }
    assert lines["Qwen/Qwen3-8B"].holdings[0].is_declared


def test_states_of_the_mixed_fleet() -> None:
    lines = {line.name: line for line in ModelIndex().lines_of(mixed_fleet(), NOW)}
    states = {
        name: {holding.machine: holding.state for holding in line.holdings} for name, line in lines.items()
    }
    assert states == {
        "gpt-oss:120b-cloud": {"app-host": "cloud"},
        "llama3.1:70b": {"ada": "on_gpu", "app-host": "missing", "hopper": "on_gpu", "pve52": "on_gpu"},
        "mistral:7b": {"bora": "missing"},
        "mixtral:8x22b": {"hopper": "on_gpu"},
        "nomic-embed-text": {"ada": "on_gpu"},
        "phi3:mini": {"app-host": "in_ram", "kiosk": "unread"},
        "qwen2.5:32b": {"ada": "installed", "bora": "partly", "dora": "installed"},
    }


def test_figures_count_machines_that_answer() -> None:
    lines = {line.name: line for line in ModelIndex().lines_of(mixed_fleet(), NOW)}
    llama = lines["llama3.1:70b"].figures
    assert (llama.copies, llama.old_copies, llama.vram_bytes) == (2, 1, 2 * round(39.6 * GIB))
    assert (llama.spare_copies, llama.spare_bytes) == (1, round(39.6 * GIB))
    assert (llama.expires_at, llama.expires_on, llama.expiring_bytes) == (NOW + 240, "ada", round(39.6 * GIB))
    assert (llama.installed, llama.declared, llama.missing) == (2, 4, 1)
    qwen = lines["qwen2.5:32b"].figures
    assert (qwen.gpu_percent, qwen.unexpiring, qwen.expires_at, qwen.drifting) == (83, "pinned", None, 1)
    phi = lines["phi3:mini"].figures
    assert (phi.vram_bytes, phi.gpu_percent, phi.declared) == (0, 0, 2)
    cloud = lines["gpt-oss:120b-cloud"].figures
    assert (cloud.copies, cloud.installed) == (0, 0), "an entry of the cloud lies on no disk here"
    assert isinstance(cloud.vram_bytes, Unknown)


def test_unknown_vram_is_never_zero() -> None:
    known, untold = make_copy(gib=10), make_copy(gib=10, vram_gib=0)
    untold = replace(untold, vram_bytes=NOT_TOLD)
    only = lines_of(host("ada", untold))["llama3.1:70b"].figures
    assert isinstance(only.vram_bytes, Unknown)
    assert isinstance(only.gpu_percent, Unknown)
    assert only.has_unknown_vram
    two = lines_of(host("ada", untold), host("bora", known))["llama3.1:70b"].figures
    assert (two.vram_bytes, two.has_unknown_vram) == (10 * GIB, True)
    assert isinstance(two.spare_bytes, Unknown), "the one to keep may be either"
    three = lines_of(host("ada", untold), host("bora", known), host("cleo", known))["llama3.1:70b"].figures
    assert three.spare_bytes == 10 * GIB, "at least"


def test_a_copy_that_is_stopping_is_no_duplicate() -> None:
    lines = lines_of(host("ada", make_copy()), host("bora", make_copy(state="stopping", expires_at=NOW - 9)))
    figures = lines["llama3.1:70b"].figures
    assert (figures.copies, figures.spare_copies, figures.spare_bytes) == (2, 0, 0)
    assert figures.expires_on == "ada"


def test_two_engines_of_one_machine_may_hold_a_copy_each() -> None:
    engines = (make_engine(loaded=[make_copy()]), make_engine(loaded=[make_copy(gib=41.0)], port=11435))
    machine = make_machine("ada", engines=(EngineEndpoint("ollama", 11434), EngineEndpoint("ollama", 11435)))
    (line,) = lines_of(make_snapshot(machine=machine, engines=engines)).values()
    assert [copy.vram_bytes for copy in line.holdings[0].copies] == [41 * GIB, round(39.6 * GIB)]
    assert line.figures.spare_bytes == round(39.6 * GIB)
    assert line.figures.installed == 1, "a machine"


def test_what_an_engine_said_before_it_went_silent_is_old() -> None:
    machine = host("ada", make_copy())
    quiet = replace(
        machine, sources={**machine.sources, "ollama": SourceStatus("late", read_at=NOW - 30, since=NOW - 28)}
    )
    (line,) = lines_of(quiet).values()
    assert not line.holdings[0].is_live
    assert (line.figures.copies, line.figures.old_copies) == (0, 1)


def test_a_machine_heard_too_long_ago_is_old_by_the_clock_alone() -> None:
    index, fleet = ModelIndex(), make_fleet(host("ada", make_copy()))
    assert index.lines_of(fleet, NOW)[0].figures.copies == 1
    assert index.lines_of(fleet, NOW + 10)[0].figures.copies == 0


def test_missing_is_said_only_where_the_engine_told_what_it_has() -> None:
    untold = make_engine(installed=[])
    untold = replace(untold, installed=NOT_TOLD)
    declared = make_machine("ada", models=("llama3.1:70b",))
    (line,) = lines_of(make_snapshot(machine=declared, engines=(untold,))).values()
    assert line.holdings[0].state == "unread"
    (line,) = lines_of(make_snapshot(machine=declared, installed=[])).values()
    assert line.holdings[0].state == "missing"


def test_an_empty_fleet_has_no_lines() -> None:
    assert ModelIndex().lines_of(make_fleet(), NOW) == ()


def test_lines_come_in_natural_order_and_machines_in_that_of_the_fleet() -> None:
    lines = ModelIndex().lines_of(make_fleet(*crowd(12, 12)), NOW)
    assert [line.name for line in lines[:4]] == ["model-0:0b", "model-1:1b", "model-2:2b", "model-3:3b"]
    assert [holding.machine for holding in lines[0].holdings][:2] == ["gpu-000", "gpu-001"]


# -- work ---------------------------------------------------------------------------------------------


def test_nothing_is_made_anew_while_nothing_changes() -> None:
    index, machines = ModelIndex(), crowd()
    first = index.lines_of(make_fleet(*machines), NOW)
    assert (index.read, index.joined, index.counted) == (300, 1, 40)
    heard = [replace(item, last_seen=NOW + 1, seq=2) for item in machines]
    assert index.lines_of(make_fleet(*heard, seq=2), NOW + 1) is first
    assert (index.read, index.joined, index.counted) == (300, 1, 40)


def test_a_renewed_keep_alive_costs_its_machine_and_its_lines() -> None:
    index, machines = ModelIndex(), crowd()
    first = index.lines_of(make_fleet(*machines), NOW)
    later = [renewed(machines[0], 60.0), *machines[1:]]
    second = index.lines_of(make_fleet(*later, seq=2), NOW)
    assert (index.read, index.joined, index.counted) == (301, 1, 42)
    changed = [line.name for before, line in zip(first, second, strict=True) if before is not line]
    assert changed == ["model-0:0b", "model-1:1b"]


def test_loading_what_is_on_the_disk_compares_no_names() -> None:
    index, machines = ModelIndex(), crowd()
    index.lines_of(make_fleet(*machines), NOW)
    (engine,) = machines[0].engines
    loaded = replace(engine, loaded=(make_copy("model-9:9b", gib=5),))
    index.lines_of(make_fleet(replace(machines[0], engines=(loaded,)), *machines[1:], seq=2), NOW)
    assert (index.read, index.joined, index.counted) == (301, 1, 43)


def test_a_new_model_touches_its_own_line_only() -> None:
    index, machines = ModelIndex(), crowd()
    index.lines_of(make_fleet(*machines), NOW)
    changed = host("gpu-000", make_copy("new:1b"), installed=[])
    machine = replace(machines[0], machine=changed.machine, engines=changed.engines)
    lines = index.lines_of(make_fleet(machine, *machines[1:], seq=2), NOW)
    assert index.joined == 2
    assert len(lines) == 41
    assert index.counted == 40 + 41, "the machine left the other forty"


def test_a_flag_touches_the_lines_of_its_machine() -> None:
    index, machines = ModelIndex(), crowd(20, 5)
    index.lines_of(make_fleet(*machines), NOW)
    flagged = replace(machines[0], maintenance=MaintenanceFlag(None, "mia", NOW))
    lines = index.lines_of(make_fleet(flagged, *machines[1:], seq=2), NOW)
    assert (index.read, index.joined, index.counted) == (21, 1, 10)
    assert {line.holdings[0].flag for line in lines} == {"maintenance"}


def test_machines_that_leave_take_their_models_along() -> None:
    index = ModelIndex()
    index.lines_of(make_fleet(host("ada", make_copy()), host("bora", make_copy("phi3:mini"))), NOW)
    lines = index.lines_of(make_fleet(host("bora", make_copy("phi3:mini")), seq=2), NOW)
    assert [line.name for line in lines] == ["phi3:mini"]


def test_following_gives_what_looking_once_gives() -> None:
    index, fleet = ModelIndex(), mixed_fleet()
    half = make_fleet(*fleet.machines[:3])
    for number, step in enumerate((half, fleet, make_fleet(*reversed(fleet.machines[2:])), fleet)):
        now = NOW + number
        assert index.lines_of(step, now) == ModelIndex().lines_of(step, now)
