"""The slow sections of the GPU loop under real shells; durations; tools that cannot run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from loop_runner import SHELLS, Loop, find_shell, write_tool
from smi_stand_in import CARD, NEW_FIELDS, calls, suspend_card, write_smi
from test_nvidia_condition import H100, LIST, MEMORY, xml_with

from fleettui.fleet.gpu_record import GpuRecord
from fleettui.model.unknown import Unknown
from fleettui.probes.frames import Frame, Section
from fleettui.probes.nvidia import gpu_section
from fleettui.probes.nvidia_condition import condition_section
from fleettui.probes.nvidia_lists import read_instances
from fleettui.probes.nvidia_xid import parse_xids

NOW = 1000.0


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return find_shell(str(request.param))


def take_all(loop: Loop, record: GpuRecord) -> int:
    """Ask as the poller does until nothing is refused any more; returns the number of questions."""
    for asked in range(1, 20):
        names = gpu_section(record.refused_fields), condition_section(record.condition.refused_fields)
        record.ask(names, NOW)
        sections = loop.ask(*names)
        if record.take(Frame(1, sections), NOW, is_gpu_expected=True) and not record.condition.must_ask_again:
            return asked
    raise AssertionError("it asks without end")


def test_an_old_driver_is_read_within_the_first_poll(shell: str, tmp_path: Path) -> None:
    write_smi(tmp_path / "bin", refuses=NEW_FIELDS)
    loop, record = Loop("gpu", shell, path=tmp_path / "bin"), GpuRecord()
    try:
        asked = take_all(loop, record)
    finally:
        loop.close()
    assert asked <= len(NEW_FIELDS) + 1
    assert record.reading is not None
    assert record.reading.cards[0].free_mib == 69956
    assert record.reading.condition is not None
    (condition,) = record.reading.condition.cards
    assert (condition.pcie_width, condition.throttle) == (16, ())
    assert isinstance(condition.compute_cap, Unknown)
    assert not isinstance(record.reading.condition.call_s, Unknown)


def test_mig_instances_come_through_the_cut_document(shell: str, tmp_path: Path) -> None:
    noise = "".join(f"\t\t<x{n}>{n} MiB</x{n}>\n<processes>\n</processes>\n" for n in range(400))
    whole = xml_with(MEMORY).decode().replace("<mig_devices>", noise + "<mig_devices>")
    write_smi(tmp_path / "bin", listed=LIST.decode(), xml=whole)
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        answer = loop.ask("list", "xml")
    finally:
        loop.close()
    assert len(answer["xml"].payload) < len(whole) / 4
    assert read_instances(answer["list"].payload, answer["xml"].payload) == read_instances(
        LIST, whole.encode()
    )
    assert len(read_instances(answer["list"].payload, answer["xml"].payload)[H100]) == 4


def test_an_error_in_place_of_the_document_is_kept(shell: str, tmp_path: Path) -> None:
    write_smi(tmp_path / "bin", xml="No devices were found\n")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        assert loop.ask("xml")["xml"].payload == b"No devices were found"
    finally:
        loop.close()


XID = "[  512.204417] NVRM: Xid (PCI:0000:3b:00): {}, pid=2104, name=python3, GPU has fallen off the bus."


def test_xids_of_dmesg(shell: str, tmp_path: Path) -> None:
    lines = "\\n".join(["[    0.1] Linux", *(XID.format(code) for code in range(60, 80)), "[ 600.0] usb"])
    write_tool(tmp_path / "bin", "dmesg", f'printf "{lines}\\n"')
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        section = loop.ask("xid")["xid"]
    finally:
        loop.close()
    answer = parse_xids(section.payload, section.exit_code)
    assert not isinstance(answer, Unknown)
    assert [event.code for event in answer[1]] == list(range(72, 80))


@pytest.mark.parametrize(
    "body", ["exit 1", "echo 'dmesg: read kernel buffer failed' >&2; exit 1", "exec sleep 100"]
)
def test_xids_of_the_journal_where_dmesg_is_refused(shell: str, tmp_path: Path, body: str) -> None:
    write_tool(tmp_path / "bin", "dmesg", body)
    lines = "\\n".join(["[    0.1] host kernel: Linux", XID.format(79).replace("] ", "] host kernel: ", 1)])
    write_tool(tmp_path / "bin", "journalctl", f'printf "{lines}\\n"')
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=(("$T 3} dmesg", "$T 1} dmesg"),))
    try:
        section = loop.ask("xid")["xid"]
    finally:
        loop.close()
    answer = parse_xids(section.payload, section.exit_code)
    assert not isinstance(answer, Unknown)
    assert [(event.code, event.after_boot_s) for event in answer[1]] == [(79, 512.204417)]


def test_no_readable_log_is_unknown_and_no_error(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "dmesg", "exit 1")
    write_tool(tmp_path / "bin", "journalctl", "echo 'Hint: You are currently not seeing messages' >&2")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        section = loop.ask("xid")["xid"]
    finally:
        loop.close()
    assert (section.exit_code, section.payload) == (1, b"")
    assert isinstance(parse_xids(section.payload, section.exit_code), Unknown)


def test_a_quiet_log_is_known_to_be_quiet(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "dmesg", 'echo "[ 1.0] Linux"')
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        section = loop.ask("xid")["xid"]
    finally:
        loop.close()
    answer = parse_xids(section.payload, section.exit_code)
    assert not isinstance(answer, Unknown)
    assert answer[1] == ()


def test_a_slow_call_says_how_long_it_took(shell: str, tmp_path: Path) -> None:
    write_smi(tmp_path / "bin", before=f"read s <{tmp_path}/delay; sleep $s")
    (tmp_path / "delay").write_text("1.2\n")
    loop, record = Loop("gpu", shell, path=tmp_path / "bin"), GpuRecord()
    try:
        began = time.monotonic()
        slow = loop.ask("gpu")
        spent = time.monotonic() - began
        (tmp_path / "delay").write_text("0\n")
        quick = loop.ask("gpu")
    finally:
        loop.close()
    assert list(quick) == ["gpu"]
    record.take(Frame(1, slow), NOW, is_gpu_expected=True)
    assert record.reading is not None
    assert record.reading.condition is not None
    assert isinstance(record.reading.condition.call_s, float)
    assert 1.2 <= record.reading.condition.call_s <= spent + 0.02


def test_wsl_is_not_asked_for_processes(shell: str, tmp_path: Path) -> None:
    kernel = tmp_path / "osrelease"
    kernel.write_text("5.15.167.4-microsoft-standard-WSL2\n")
    write_smi(tmp_path / "bin", apps="GPU-a, 1, x, 5\n")
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=(("/proc/sys/kernel/osrelease", str(kernel)),))
    try:
        answer = loop.ask("apps", "ps")
    finally:
        loop.close()
    assert answer["apps"] == Section(77, b"")
    assert calls(tmp_path / "bin", "apps") == []


@pytest.mark.parametrize("code", [126, 127])
def test_another_tool_is_tried_where_the_first_cannot_run(shell: str, tmp_path: Path, code: int) -> None:
    """NixOS on WSL: the file is there and its loader is not; a wrapper elsewhere works."""
    write_tool(
        tmp_path / "bin",
        "nvidia-smi",
        f'echo "/lib64/ld: not found" >&2; echo x >>{tmp_path}/tries; exit {code}',
    )
    write_smi(tmp_path / "nix")
    changes = (("/run/current-system/sw/bin", str(tmp_path / "nix")),)
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=changes)
    try:
        first, second = loop.ask("gpu")["gpu"], loop.ask("gpu")["gpu"]
        assert loop.ask("find")["find"].payload == f"{tmp_path}/bin/nvidia-smi".encode()
    finally:
        loop.close()
    assert first.payload == second.payload
    assert first.exit_code == 0
    assert (tmp_path / "tries").read_text() == "x\n", "what does not run is remembered"


def test_where_no_tool_runs_its_text_is_kept(shell: str, tmp_path: Path) -> None:
    tool = write_tool(tmp_path / "bin", "nvidia-smi", "")
    tool.write_text("#!/no/such/loader\n")
    loop, record = Loop("gpu", shell, path=tmp_path / "bin"), GpuRecord()
    try:
        for _ in range(2):
            frame = Frame(1, loop.ask("gpu"))
            record.take(frame, NOW, is_gpu_expected=True)
            assert record.reading is not None
            assert record.reading.problem is not None
            assert record.reading.problem.code == "cannot_run"
            assert "nvidia-smi" in record.reading.problem.detail
    finally:
        loop.close()


def test_a_tick_starts_nothing_for_the_slow_sections(shell: str, tmp_path: Path) -> None:
    """What comes once a minute costs nothing in between: the tool and its limit, as ever."""
    write_smi(tmp_path / "bin", ({**CARD, "index": "0"},))
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        loop.ask("gpu")
        counts = []
        for _ in range(8):
            before = loop.forks()
            loop.ask("gpu")
            counts.append(loop.forks() - before)
    finally:
        loop.close()
    assert min(counts) == 2


def test_a_path_of_the_operator_wins_and_a_wrong_one_does_no_harm(shell: str, tmp_path: Path) -> None:
    write_smi(tmp_path / "bin")
    write_tool(tmp_path / "own", "nvidia-smi", "echo mine")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    root = str(tmp_path)
    if root != root.lower():
        pytest.skip("the temporary folder's name has capitals")
    try:
        assert loop.ask(f"tool:{root}/own/nvidia-smi", "gpu")["gpu"].payload == b"mine"
        assert loop.ask("gpu")["gpu"].payload == b"mine"
    finally:
        loop.close()
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        assert CARD["uuid"].encode() in loop.ask(f"tool:{root}/nowhere", "gpu")["gpu"].payload
    finally:
        loop.close()


def test_no_path_but_that_of_an_nvidia_smi_is_run(shell: str, tmp_path: Path) -> None:
    write_smi(tmp_path / "bin")
    other = write_tool(tmp_path / "own", "other", f"echo ran >{tmp_path}/ran")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        assert CARD["uuid"].encode() in loop.ask(f"tool:{other}", "gpu")["gpu"].payload
        assert not (tmp_path / "ran").exists()
    finally:
        loop.close()


def test_sleeping_cards_are_woken_only_where_the_operator_says_so(shell: str, tmp_path: Path) -> None:
    _, changes = suspend_card(tmp_path)
    write_smi(tmp_path / "bin")
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=changes)
    try:
        assert loop.ask("gpu")["gpu"].exit_code == 76
        assert loop.ask("wake", "gpu")["gpu"].exit_code == 0
        assert loop.ask("gpu", "condition:index", "version")["condition"].exit_code == 76
    finally:
        loop.close()
    assert len(calls(tmp_path / "bin", "gpu")) == 1
