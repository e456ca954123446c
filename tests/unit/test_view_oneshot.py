"""`fleettui status` as text, the summary, machine files as lines."""

# ruff: noqa: E501 - whole lines of wide output

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW,
    judged,
    make_copy,
    make_fleet,
    make_machine,
    make_offline,
    make_pending,
    make_snapshot,
)
from fleettui.model.machine import ConfigProblem, SshSettings
from fleettui.model.snapshot import SourceStatus
from fleettui.model.trust import ListedTrust
from fleettui.view.cells import text_of, width_of
from fleettui.view.glyphs import ASCII
from fleettui.view.oneshot import status_lines
from fleettui.view.problems import check_lines, machine_lines, problem_lines
from fleettui.view.summary import summarize, summary_cells
from fleettui.view.text import cell_width
from fleettui.view.trouble import trust_steps
from sample_fleet import sample_fleet

STATUS_120 = """
7/11 up · 7 GPUs · VRAM 124/378 GiB free · 1 offline · 1 key changed · 1 pending · 1 in maintenance · 1 problem in files

ada       ● healthy    CPU  12 %  RAM   38/128 GiB  now
  [0] NVIDIA GeForce RTX 4090 | 79 °C,  97 % | 22.9 / 24.0 GiB | llama3.1:70b 22.1
  [1] NVIDIA GeForce RTX 4090 | 38 °C,  30 % | 18.3 / 24.0 GiB | llama3.1:70b 18.2
  llama3.1:70b                 39.6 GiB  100 % GPU  expires in 4m   ctx 32768

app-host  ● healthy    CPU  12 %  RAM   38/128 GiB  cpu only  now
  phi3:mini                     2.2 GiB        CPU  expires in 1m   ctx 32768

bora      ◐ degraded   CPU  12 %  RAM   38/128 GiB  now
  [0] NVIDIA GeForce RTX 4090 | 38 °C,   4 % | 16.1 / 24.0 GiB | qwen2.5:32b 13.6, mia:python3.11 2.0
  qwen2.5:32b                  16.4 GiB   83 % GPU  pinned          ctx 32768
  ◐ GPU 1 missing: 2 declared, 1 measured
  · qwen2.5:32b is only 83 % on the GPU, the rest in RAM: slow

cleo      ● healthy    CPU  12 %  RAM   38/128 GiB  now  ⚑ maintenance "fan swap" mia, 2h
  [0] NVIDIA GeForce RTX 4090 | 38 °C,   0 % |  0.0 / 24.0 GiB

dora      ▲ unhealthy  CPU  12 %  RAM   38/128 GiB  now
  [0] NVIDIA H100 80GB HBM3 | 38 °C,   0 % | 77.0 / 80.0 GiB (5m old)
  [1] NVIDIA H100 80GB HBM3 | 38 °C,  40 % | 76.0 / 80.0 GiB (5m old)
  deepseek-r1:70b-llama-distill-q4_K_M  140.0 GiB  100 % GPU  expires in 4m   ctx 32768
  qwen3:8b                      6.0 GiB  100 % GPU  stopping        ctx 32768
  nomic-embed-text:latest       0.6 GiB  100 % GPU  pinned          ctx 32768
  ▲ nvidia-smi does not answer since 13:58 UTC: a hung driver needs a reboot
  · qwen3:8b is stopping since 13:58 UTC and still holds 6.0 GiB of VRAM

enno      ▲ unhealthy  CPU  12 %  RAM   38/128 GiB  now
  ▲ nvidia-smi: NVIDIA driver/library version mismatch: reboot or reload the driver

gina      ✗ key changed  approved SHA256:Lq9sT5bXw1nV7cZ3pR8kM2dF6gH4jQ0yA1eU5iO9tBw, now
                         SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo (KXO6-CY5H)
  · host key changed, nothing is asked: find out why; if the new key is right: fleettui machines approve gina
    --fingerprint SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo

kiosk     ? pending    KXO6-CY5H  ED25519  SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo
  · host key not approved yet: compare the fingerprint on the machine; if it is right: fleettui machines approve kiosk
  · what to run there to compare: fleettui machines list --pending

pve52     ✗ offline    no answer on port 22 (timeout); next try in 12 s  (last seen 4m ago)

spark     ● healthy    CPU  12 %  RAM   43/122 GiB  now
  [0] NVIDIA GB10 | 35 °C,   0 % | 38.1 / 121.7 GiB shared | gpt-oss:120b 38.1
  gpt-oss:120b                 38.1 GiB  100 % GPU  expires in 29m  ctx 32768

zoe       ? unknown    connecting to 192.0.2.9:22
"""


OLD = "SHA256:" + "o" * 43


def test_the_whole_fleet() -> None:
    assert "\n".join(["", *status_lines(sample_fleet(), NOW, 120), ""]) == STATUS_120


@given(st.integers(20, 250), st.booleans())
def test_no_line_is_wider_than_the_terminal(width: int, is_ascii: bool) -> None:
    lines = (
        status_lines(sample_fleet(), NOW, width, ASCII)
        if is_ascii
        else status_lines(sample_fleet(), NOW, width)
    )
    assert all(cell_width(line) <= width and line == line.rstrip() for line in lines)
    assert all(line.isprintable() for line in lines)
    assert not is_ascii or all(line.isascii() for line in lines)


def test_without_a_terminal_nothing_is_cut() -> None:
    whole = status_lines(sample_fleet(), NOW)
    shown = status_lines(sample_fleet(), NOW, 60)
    assert whole[0] == STATUS_120.splitlines()[1]
    assert "…" not in "".join(whole)
    assert any(line.endswith("2cQyB1uE5s8rZkKo (KXO6-CY5H)") for line in whole)
    advice = next(line for line in whole if "library version mismatch" in line)
    start = next(index for index, line in enumerate(shown) if line.startswith("  ▲ nvidia-smi: NVIDIA"))
    assert " ".join(line.strip() for line in shown[start : start + 2]) == advice.strip(), "wrapped, not cut"


def test_a_key_that_is_not_approved_names_the_command() -> None:
    ssh = SshSettings(host_key=OLD)
    pending = make_pending()
    offer = pending.link.offer
    assert offer is not None
    assert trust_steps(judged(pending)) == (
        "host key not approved yet: compare the fingerprint on the machine; if it is right: "
        "fleettui machines approve kiosk",
        "what to run there to compare: fleettui machines list --pending",
    )
    late = dataclasses.replace(pending.link, offer=dataclasses.replace(offer, expires_at=NOW))
    (expired, _) = trust_steps(judged(dataclasses.replace(pending, link=late)))
    assert expired.endswith("nothing is asked; to look at it again: fleettui machines approve kiosk")
    other = dataclasses.replace(pending.link, offer=dataclasses.replace(offer, expected=(OLD,)))
    changed = dataclasses.replace(pending, trust="key_changed", link=other)
    (step,) = trust_steps(judged(changed))
    assert step.endswith(f"fleettui machines approve kiosk --fingerprint {offer.fingerprint}")
    (by_file,) = trust_steps(judged(dataclasses.replace(changed, machine=make_machine("kiosk", ssh=ssh))))
    assert by_file.endswith(f"write {offer.fingerprint} into machines/kiosk.yaml (ssh.host_key)")
    (rejected,) = trust_steps(judged(dataclasses.replace(pending, trust="rejected")))
    assert rejected.endswith("if it is right after all: fleettui machines approve kiosk")
    assert trust_steps(judged(make_snapshot())) == ()


def test_an_offline_machine_shows_its_last_values_with_their_age() -> None:
    gone = make_snapshot(loaded=[make_copy()], age_s=300, link=make_offline().link)
    lines = status_lines(make_fleet(judged(gone)), NOW, 140)
    assert lines[2].startswith(
        "ada  ✗ offline    no answer on port 22 (timeout); next try in 12 s  (last seen 5m ago)"
    )
    assert "0.0 / 24.0 GiB (5m old)" in lines[3]


def test_the_summary_counts() -> None:
    figures = summarize(sample_fleet(), NOW)
    assert figures._asdict() == {
        "up": 7, "total": 11, "gpus": 7, "used_mib": figures.used_mib, "free_mib": figures.free_mib,
        "total_mib": figures.total_mib, "copies": 7, "pending": 1, "key_changed": 1, "offline": 1, "stale": 0,
        "in_maintenance": 1, "expected_offline": 0, "draining": 0,
        "stuck_drains": 0, "drained": 0, "drained_offline": 0, "problems": 1,
    }  # fmt: skip
    assert round(figures.total_mib / 1024) == 24 * 4 + 160 + 122
    assert summarize(make_fleet(make_snapshot(age_s=5)), NOW).stale == 1


def test_unified_memory_is_counted_once_in_the_summary() -> None:
    spark = next(machine for machine in sample_fleet().machines if machine.name == "spark")
    assert summarize(make_fleet(spark), NOW).total_mib == 127_600_748 // 1024


def test_the_summary_drops_whole_parts() -> None:
    fleet = sample_fleet()
    assert [text_of(summary_cells(fleet, NOW, width)) for width in (160, 100, 80, 40)] == [
        "7/11 up · 7 GPUs · VRAM 124/378 GiB free ▕█████████████▏      ▏ · 7 copies · 1 offline · 1 key changed · 1 pending · 1 in maintenance · 1 problem in files",
        "7/11 up · VRAM 124/378 GiB free · 1 offline · 1 key changed · 1 pending · 1 in maintenance",
        "7/11 up · VRAM 124/378 GiB free · 1 offline · 1 key changed · 1 pending",
        "7/11 up · VRAM 124/378 GiB free",
    ]
    for width in range(30, 200):
        assert width_of(summary_cells(fleet, NOW, width)) <= width


from_here = summary_cells


def test_an_empty_fleet() -> None:
    assert status_lines(make_fleet(), NOW, 80) == ["0/0 up · 0 copies"]


def test_machine_files_as_lines() -> None:
    machines = [
        make_machine("ada", models=("a", "b")),
        make_machine("app-host", gpus=0),
        make_machine("bora", gpus=None, tags=()),
    ]
    listed = {
        "ada": ListedTrust("ada", "ada.lan:22", "approved"),
        "bora": ListedTrust("bora", "bora.lan:22", "key_changed"),
    }
    assert machine_lines(machines, listed) == [
        "MACHINE   ROLE      ADDRESS             TRUST        GPUS      MODELS  TAGS",
        "ada       gpu-host  ada.lan:11434       approved     2         2       gpu",
        "app-host  cpu-host  app-host.lan:11434  –            cpu only  0       cpu",
        "bora      gpu-host  bora.lan:11434      key changed  –         0",
    ]
    problems = [
        ConfigProblem("machines/x.yaml", 3, "network.hostname", "required key is missing"),
        ConfigProblem("machines/y.yaml", None, None, "cannot be read: permission denied"),
    ]
    assert problem_lines(problems) == [
        "machines/x.yaml:3: network.hostname: required key is missing",
        "machines/y.yaml: cannot be read: permission denied",
    ]
    assert check_lines(machines, problems, "machines")[2:] == [
        "2 problems in 2 files; 3 machines in machines can be used"
    ]
    assert check_lines(machines, [], "machines") == ["3 machines in machines: no problem found"]


def test_a_machine_whose_sources_were_never_read() -> None:
    sources = {"gpu": SourceStatus("late", since=NOW - 40)}
    bare = make_snapshot(gpus=1, cpu=None, memory=None, gpu=None, engines=(), sources=sources)
    lines = status_lines(make_fleet(judged(bare)), NOW, 100)
    assert lines[2:] == [
        "ada  ▲ unhealthy  now",
        "  ▲ nvidia-smi does not answer since 13:03 UTC: a hung driver needs a reboot",
    ]
