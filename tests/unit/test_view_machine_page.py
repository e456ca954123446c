"""The page of one machine: whole outputs."""

# ruff: noqa: E501 - whole lines of wide output

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, judged, make_card, make_copy, make_fleet, make_snapshot
from fleettui.model.gpu import CardCondition, GpuCondition, GpuReading
from fleettui.model.machine import ConfigProblem
from fleettui.model.snapshot import LinkStatus, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.cells import text_of, width_of
from fleettui.view.glyphs import ASCII
from fleettui.view.layout import Layout, fleet_layout
from fleettui.view.machine_page import Section, hardware_page, models_page
from fleettui.view.process_command import short_command
from sample_fleet import sample_fleet

ADA = """
State
  ● healthy  heard now, connected to ada.lan:22 since 13:03 UTC
GPUs
     GPU                                    VRAM  free   use   temp      power   fan  state
  0  RTX 4090  ▕███████████████▎▏  22.9/24.0 GiB   1.1  97 %  79 °C  212/450 W  30 %  P8
  1  RTX 4090  ▕████████████▎   ▏  18.3/24.0 GiB   5.7  30 %  38 °C  190/450 W  30 %  P8
System
  system      Ubuntu 24.04.2 LTS
  kernel      6.8.0-60-generic, x86_64
  driver      NVIDIA 580.126.09
  containers  –  not read yet
  engines     Ollama 0.33.0  port 11434
  processor   AMD Ryzen 9 7950X, 32 threads
  CPU         12 %  load 1.20 1.00 0.80  up 10d
  RAM         38/128 GiB
Disks
  /  ▕██▍       ▏  24 %  670 of 930 GiB free  /dev/nvme0n1p2
Network
  eno1  ↓ 0.4 MB/s  ↑ 1.1 MB/s
GPU identity
  0  0000:01:00.0  GPU-000000a0-0000-4000-8000-0000000000a0
  1  0000:02:00.0  GPU-000000a1-0000-4000-8000-0000000000a1
Sources
  gpu        ok  now
  processes  ok  now
  cpu        ok  now
  memory     ok  now
  disks      ok  now
  net        ok  now
  system     ok  now
  ollama     ok  now
File
  file        machines/ada.yaml
  role        gpu-host
  address     ada.lan:11434
  tags        gpu
  hardware    16-core x86_64, 128 GiB RAM, RTX 4090 24 GiB, RTX 4090 24 GiB, 8000 GB storage
  last heard  2026-11-30T14:03:11Z
Loaded models
  llama3.1:70b  39.6 GiB  100 % GPU  expires in 4m  GPU 0, 1  ctx 32768
Differences
  qwen2.5:32b  declared, not installed
  qwen3:8b     installed, not declared  5.2 GiB
Declared and installed models
  llama3.1:70b  declared  loaded         39.6 GiB
  qwen2.5:32b   declared  not installed
  qwen3:8b                installed      5.2 GiB
GPU processes
  GPU   pid      VRAM  user    what          command
  0    4242  22.1 GiB  ollama  llama3.1:70b  ollama runner --model 00 --port 41234
  1    4242  18.2 GiB  ollama  llama3.1:70b  ollama runner --model 00 --port 41234
Engines
  Ollama  0.33.0  port 11434  ok  through SSH
"""
DORA = """
State
  ▲ unhealthy  heard now
    nvidia-smi does not answer since 13:58 UTC: a hung driver needs a reboot
    qwen3:8b is stopping since 13:58 UTC and still holds 6.0 GiB of VRAM
  connected to dora.lan:22 since 13:03 UTC
GPUs
     GPU                                VRAM  free   use   temp      power   fan  state
  0  H100  ▕███████████████▍▏  77.0/80.0 GiB   3.0   0 %  38 °C  300/700 W  30 %  P8
  1  H100  ▕███████████████▎▏  76.0/80.0 GiB   4.0  40 %  38 °C  301/700 W  30 %  P8
System
  system      Ubuntu 24.04.2 LTS
  kernel      6.8.0-60-generic, x86_64
  driver      NVIDIA 580.126.09
  containers  –  not read yet
  engines     Ollama 0.33.0  port 11434
  processor   AMD Ryzen 9 7950X, 32 threads
  CPU         12 %  load 1.20 1.00 0.80  up 10d
  RAM         38/128 GiB
Disks
  /  ▕██▍       ▏  24 %  670 of 930 GiB free  /dev/nvme0n1p2
Network
  eno1  ↓ 0.4 MB/s  ↑ 1.1 MB/s
GPU identity
  0  0000:01:00.0  GPU-000000a0-0000-4000-8000-0000000000a0
  1  0000:02:00.0  GPU-000000a1-0000-4000-8000-0000000000a1
Sources
  gpu        late  5m
  processes  ok    now
  cpu        ok    now
  memory     ok    now
  disks      ok    now
  net        ok    now
  system     ok    now
  ollama     ok    now
File
  file        machines/dora.yaml
  role        gpu-host
  address     dora.lan:11434
  tags        gpu
  hardware    16-core x86_64, 128 GiB RAM, H100 80 GiB, H100 80 GiB, 8000 GB storage
  last heard  2026-11-30T14:03:11Z
Loaded models
  deepseek-r1:70b-llama-distill-q4_K_M  140.0 GiB  100 % GPU  expires in 4m  ctx 32768
  qwen3:8b                                6.0 GiB  100 % GPU  stopping       ctx 32768
  nomic-embed-text:latest                 0.6 GiB  100 % GPU  pinned         ctx 32768
Differences
  the file declares no models
Declared and installed models
  deepseek-r1:70b-llama-distill-q4_K_M  loaded  140.0 GiB
  nomic-embed-text:latest               loaded  0.6 GiB
  qwen3:8b                              loaded  6.0 GiB
GPU processes
  none
Not managed
  no process and no copy explains 6.4 GiB of VRAM
Engines
  Ollama  0.33.0  port 11434  ok  through SSH
"""
GINA = """
State
  ✗ offline (key changed)  never heard
    host key changed, nothing is asked: find out why; if the new key is right: fleettui machines approve gina
    --fingerprint SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo
  not connected to gina.lan
Host key
  offered   ED25519 SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo
  code      KXO6-CY5H  the full fingerprint decides
  approved  SHA256:Lq9sT5bXw1nV7cZ3pR8kM2dF6gH4jQ0yA1eU5iO9tBw
  compare   for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done  on the machine
File
  file        machines/gina.yaml
  role        gpu-host
  address     gina.lan:11434
  tags        gpu
  hardware    16-core x86_64, 128 GiB RAM, RTX 4090 24 GiB, RTX 4090 24 GiB, 8000 GB storage
  last heard  –
Loaded models
  not known: no engine was asked
"""


def sections_of(snapshot: MachineSnapshot, layout: Layout, *problems: ConfigProblem) -> list[Section]:
    """Both pages."""
    return [*hardware_page(snapshot, NOW, layout, problems), *models_page(snapshot, NOW, layout)]


def page_of(name: str, width: int) -> str:
    fleet = sample_fleet()
    snapshot = fleet.find(name)
    assert snapshot is not None
    lines = [""]
    for section in sections_of(snapshot, fleet_layout(fleet, width), *fleet.problems):
        lines += [section.title, *(f"  {text_of(line)}".rstrip() for line in section.lines)]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(("name", "golden"), [("ada", ADA), ("dora", DORA), ("gina", GINA)])
def test_whole_pages(name: str, golden: str) -> None:
    assert page_of(name, 110) == golden


@given(st.integers(30, 220), st.booleans())
def test_no_line_is_wider_than_the_layout(width: int, is_ascii: bool) -> None:
    fleet = sample_fleet()
    layout = fleet_layout(fleet, width, ASCII) if is_ascii else fleet_layout(fleet, width)
    for snapshot in fleet.machines:
        sections = sections_of(snapshot, layout, *fleet.problems)
        assert len({section.title for section in sections}) == len(sections)
        for section in sections:
            assert section.lines
            assert all(width_of(line) <= width for line in section.lines)
            assert not is_ascii or all(text_of(line).isascii() for line in section.lines)


def test_a_connection_of_another_day_has_its_date() -> None:
    snapshot = make_snapshot(link=LinkStatus("up", since=NOW - 2 * 86_400))
    state = hardware_page(snapshot, NOW, fleet_layout(make_fleet(snapshot), 100))[0]
    assert [text_of(line) for line in state.lines] == [
        "● healthy  heard now, connected to ada.lan since 2026-11-28 14:03 UTC"
    ]


def test_problems_of_its_file_stand_on_the_page() -> None:
    from dataclasses import replace

    fleet = sample_fleet()
    problem = replace(fleet.problems[0], file="machines/ada.yaml")
    sections = hardware_page(fleet.machines[0], NOW, fleet_layout(fleet, 100), (problem,))
    found = next(section for section in sections if section.title == "Problems in the file")
    assert text_of(found.lines[0]) == "machines/ada.yaml:3: network.hostname: required key is missing"


def test_commands_are_short_and_keep_what_matters() -> None:
    digest = "6c6c616d61332e31" * 4
    runner = f"/usr/local/bin/ollama runner --ollama-engine --model /root/.ollama/models/blobs/sha256-{digest} --port 41"
    assert short_command(runner) == "ollama runner --model 6c6c616d6133 --ollama-engine --port 41"
    assert short_command("/usr/bin/vllm serve org/m --port 1") == "vllm serve org/m --port 1"
    assert [short_command(odd) for odd in ("", "x", "x --model", "--model a")] == [
        "",
        "x",
        "x --model",
        "--model a",
    ]


def test_the_expiry_of_a_copy_outlives_its_quantisation() -> None:
    copy = make_copy(quantization="Q4_K_M", parameter_size="70.6B")
    snapshot = judged(make_snapshot(loaded=[copy]))
    for width, parts in (
        (80, ("39.6 GiB", "100 % GPU", "expires in 4m", "70.6B", "Q4_K_M")),
        (48, ("expires in 4m",)),
    ):
        layout = fleet_layout(make_fleet(snapshot), width)
        found = next(s for s in models_page(snapshot, NOW, layout) if s.title == "Loaded models")
        assert all(part in text_of(found.lines[0]) for part in parts)
        assert "…" not in text_of(found.lines[0])


def test_each_card_can_be_found_in_the_machine() -> None:
    cards = (make_card(0), make_card(1, uuid=Unknown("[N/A]"), bus_id=Unknown("[N/A]")))
    told = CardCondition(
        0, cards[0].uuid, pcie_generation_max=4, pcie_width_max=16, pcie_width=8, compute_cap="8.9"
    )
    snapshot = make_snapshot(gpu=GpuReading(cards, condition=GpuCondition((told,), cuda="13.0")))
    page = {
        section.title: section.lines
        for section in sections_of(snapshot, fleet_layout(make_fleet(snapshot), 100))
    }
    assert [text_of(line) for line in page["GPU identity"]] == [
        "0  0000:01:00.0  PCIe 4.0 x16  compute 8.9  GPU-000000a0-0000-4000-8000-0000000000a0"
    ]
    assert "driver      NVIDIA 580.126.09  CUDA up to 13.0" in map(text_of, page["System"])
