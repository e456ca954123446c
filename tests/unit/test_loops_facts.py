"""The facts loop under every shell that may stand behind /bin/sh: limits, disks, foreign systems, forks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from loop_runner import Loop, write_tool

from fleettui.model.unknown import Unknown
from fleettui.probes import cgroups, clock, disks, lsblk, memory, memory_details, net, system
from fleettui.probes.frames import Section

AS_SH = ("dash", "bash", "busybox", "zsh", "ksh", "mksh", "lksh")
"""Programs called by the name of `sh`, as a system's /bin/sh is."""

Change = tuple[str, str]


@pytest.fixture(params=AS_SH)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed here")
    folder = tmp_path / "shell"
    folder.mkdir()
    (folder / "sh").symlink_to(program)
    return str(folder / "sh")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def ask(
    shell: str, *sections: str, changes: tuple[Change, ...] = (), path: Path | None = None
) -> dict[str, Section]:
    loop = Loop("facts", shell, changes=changes, path=path)
    try:
        return loop.ask(*sections)
    finally:
        if any("/proc/" in old for old, _ in changes):
            loop.process.kill()  # it cannot see its own group in another /proc
        loop.close()


FILES_ONLY = ("stat", "load", "uptime", "mem", "net", "psi", "swaps", "arc", "links", "cgroup", "host", "os")


def test_files_are_read_without_a_fork(shell: str) -> None:
    loop = Loop("facts", shell)
    try:
        loop.ask(*FILES_ONLY)
        # The machine is shared: other processes start some. The least of several runs is ours.
        counts = []
        for _ in range(12):
            before = loop.forks()
            loop.ask(*FILES_ONLY)
            counts.append(loop.forks() - before)
    finally:
        loop.close()
    assert min(counts) == 0


def test_what_this_machine_says(shell: str) -> None:
    answers = ask(shell, "host", "os", "cpu", "uname", "clock", "blocks", "disks", "links", "swaps", "psi")
    about = system.parse_system(*(answers[name].payload for name in ("uname", "os", "cpu", "host")))
    assert about.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    online = Path("/sys/devices/system/cpu/online").read_text()
    assert not isinstance(about.cores, Unknown)
    assert about.cores >= 1
    assert online.strip().split("-")[0].isdigit()
    assert clock.parse_epoch(answers["clock"].payload) is not None
    found = lsblk.parse_blocks(answers["blocks"].payload, answers["blocks"].exit_code)
    if Path("/sys/block").exists() and shutil.which("lsblk"):
        assert not isinstance(found, Unknown)
    assert not isinstance(disks.parse_disks(answers["disks"].payload), Unknown)
    names = {path.name for path in Path("/sys/class/net").iterdir() if path.is_dir()}
    told = {line.partition(" ")[2] for line in answers["links"].payload.decode().splitlines()}
    assert told == {name for name in names if name != "lo" and not name.startswith("veth")}


def meminfo(total: int, available: int) -> str:
    rows = {"MemTotal": total, "MemFree": 5, "MemAvailable": available, "SwapTotal": 0, "SwapFree": 0}
    return "".join(f"{name}: {value} kB\n" for name, value in rows.items())


CGROUP_V2 = "sys/fs/cgroup"


@pytest.fixture
def proc(root: Path) -> tuple[Change, ...]:
    """The machine's own files, out of a folder."""
    write(root, "proc/meminfo", meminfo(1056450248, 880426716))
    return (("/proc/", f"{root}/proc/"), ("/sys/fs/cgroup", f"{root}/sys/fs/cgroup"))


def test_the_limit_of_a_container(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    write(root, "proc/self/cgroup", "0::/\n")
    write(root, f"{CGROUP_V2}/memory.max", "96636764160\n")
    write(root, f"{CGROUP_V2}/memory.current", "32212254720\n")
    write(root, f"{CGROUP_V2}/memory.stat", "anon 5\nfile 7\ninactive_file 10485760\nactive_file 3\n")
    write(root, f"{CGROUP_V2}/cpu.max", "250000 100000\n")
    answers = ask(shell, "mem", "cgroup", changes=proc)
    details = memory_details.parse_memory_details(b"", b"", b"", answers["cgroup"].payload)
    reading = memory.parse_memory(answers["mem"].payload, details)
    assert (reading.total_kib, reading.available_kib) == (1056450248, 880426716)
    assert reading.usable_kib == 96636764160 // 1024
    assert reading.free_kib == 64424509440 // 1024  # 60.0 GiB
    assert reading.up_to_kib == (64424509440 + 10485760) // 1024
    assert cgroups.parse_core_limit(answers["cgroup"].payload) == 2.5


def test_no_limit_costs_nothing_and_says_nothing(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    write(root, "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n")
    write(root, f"{CGROUP_V2}/user.slice/memory.max", "max\n")
    write(root, f"{CGROUP_V2}/user.slice/cpu.max", "max 100000\n")
    answers = ask(shell, "mem", "cgroup", changes=proc)
    reading = memory.parse_memory(answers["mem"].payload)
    assert b"Limit" not in answers["mem"].payload
    assert answers["cgroup"].payload == b""
    assert (reading.limits, reading.free_kib) == ((), 880426716)


def test_the_least_room_on_the_way_up_decides(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    gib = 1 << 30
    write(root, "proc/self/cgroup", "0::/job 7/step\\x2d0\n")  # names may hold blanks and backslashes
    write(root, f"{CGROUP_V2}/job 7/memory.max", f"{90 * gib}\n")
    write(root, f"{CGROUP_V2}/job 7/memory.current", f"{80 * gib}\n")
    write(root, f"{CGROUP_V2}/job 7/step\\x2d0/memory.max", f"{60 * gib}\n")
    write(root, f"{CGROUP_V2}/job 7/step\\x2d0/memory.current", f"{20 * gib}\n")
    reading = memory.parse_memory(ask(shell, "mem", changes=proc)["mem"].payload)
    assert [limit.limit_kib >> 20 for limit in reading.limits] == [60, 90]
    assert (reading.usable_kib, reading.free_kib) == (60 << 20, 10 << 20)


def test_cgroup_v1_seen_from_inside(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    """The path is the host's and not there; the root is the container's own."""
    write(root, "proc/self/cgroup", "5:cpu,cpuacct:/docker/f00d\n4:memory:/docker/f00d\n0::/docker/f00d\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "8589934592\n")
    write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n")
    write(root, "sys/fs/cgroup/memory/memory.stat", "inactive_file 4096\ntotal_inactive_file 1048576\n")
    write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n")
    write(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    answers = ask(shell, "mem", "cgroup", changes=proc)
    reading = memory.parse_memory(answers["mem"].payload)
    assert (reading.usable_kib, reading.free_kib) == (8 << 20, 7 << 20)
    assert cgroups.parse_limit_cache_kib(answers["cgroup"].payload) == 1024
    assert cgroups.parse_core_limit(answers["cgroup"].payload) == 4


def test_cgroup_v1_without_a_limit(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    write(root, "proc/self/cgroup", "5:cpu:/a\n4:memory:/a\n")
    write(root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n")
    write(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n")
    answers = ask(shell, "mem", "cgroup", changes=proc)
    assert memory.parse_memory(answers["mem"].payload).limits == ()
    assert answers["cgroup"].payload == b""


def test_a_limit_of_logins_is_told_and_not_used(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    write(root, "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n")
    write(root, f"{CGROUP_V2}/user.slice/user-1000.slice/memory.max", "4294967296\n")
    write(root, f"{CGROUP_V2}/user.slice/user-1000.slice/memory.current", "1073741824\n")
    reading = memory.parse_memory(ask(shell, "mem", changes=proc)["mem"].payload)
    assert [limit.is_session for limit in reading.limits] == [True]
    assert (reading.limit, reading.usable_kib, reading.free_kib) == (None, 1056450248, 880426716)


def test_zfs_swap_and_stalls(shell: str, root: Path, proc: tuple[Change, ...]) -> None:
    arc = "13 1 0x01 96 26112 1 2\nname type data\nhits 4 12\nc_min 4 2102733440\nc_max 4 9\n"
    arc += "size 4 14925119488\nx 4 1\n"
    write(root, "proc/spl/kstat/zfs/arcstats", arc)
    write(
        root,
        "proc/pressure/memory",
        "some avg10=12.34 avg60=1.00 avg300=0.1 total=5\nfull avg10=3.5 avg60=0 total=1\n",
    )
    write(
        root,
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/zram0 partition 8388604 12 100\n/swap.img file 5 0 -2\n",
    )
    answers = ask(shell, "arc", "psi", "swaps", "cgroup", changes=proc)
    assert [line.split()[0] for line in answers["arc"].payload.splitlines()] == [b"c_min", b"size"]
    details = memory_details.parse_memory_details(
        *(answers[name].payload for name in ("arc", "psi", "swaps", "cgroup"))
    )
    assert (details.arc_kib, details.arc_shrinkable_kib) == (14575312, 12521861)
    assert (details.stalled_some_percent, details.stalled_full_percent) == (12.34, 3.5)
    assert details.zram_kib == 8388604


@pytest.mark.parametrize("has_tools", [True, False])
def test_a_system_without_proc_answers(shell: str, root: Path, tmp_path: Path, has_tools: bool) -> None:
    """macOS and BSD; and a machine where even the tools are missing: each section is alone, none hangs."""
    if has_tools:
        write_tool(tmp_path / "bin", "uname", "echo Darwin 23.1.0 arm64")
    changes = (
        ("/proc/", f"{root}/nothing/"), ("/sys/", f"{root}/nothing/"), ("/etc/os-release", f"{root}/none"),
        ("/usr/lib/os-release", f"{root}/none"), ("} grep", "} no-grep"),
        ("} df", "} no-df"), ("} lsblk", "} no-lsblk"),
    )  # fmt: skip
    if not has_tools:
        changes = (*changes, ("exec uname", "exec no-uname"))
    names = (*FILES_ONLY, "disks", "uname", "cpu", "blocks", "clock")
    answers = ask(shell, *names, changes=changes, path=tmp_path / "bin" if has_tools else None)
    assert set(answers) == set(names)
    for name in (
        "stat",
        "load",
        "uptime",
        "mem",
        "net",
        "psi",
        "swaps",
        "arc",
        "links",
        "os",
        "cpu",
        "disks",
        "blocks",
    ):
        assert answers[name].exit_code != 0, name
        assert answers[name].payload == b"", name
    about = system.parse_system(answers["uname"].payload, b"", b"", answers["host"].payload)
    assert isinstance(about.cores, Unknown)
    if has_tools:
        assert (about.os, about.kernel, about.arch) == ("Darwin", "Darwin 23.1.0", "arm64")
    else:
        assert isinstance(about.kernel, Unknown)


def test_without_uname_and_grep_the_kernel_tells(shell: str) -> None:
    changes = (("exec uname", "exec no-uname"), ("} grep", "} no-grep"))
    answers = ask(shell, "uname", "cpu", changes=changes)
    about = system.parse_system(answers["uname"].payload, b"", answers["cpu"].payload)
    assert about.kernel == Path("/proc/sys/kernel/osrelease").read_text().strip()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    assert about.cores == sum(line.startswith("processor") for line in lines)


LSBLK = r"""
echo "$*" >>%s
case "$*" in
  *-J*) %s;;
esac
case "$*" in
  *PKNAME*) %s;;
esac
echo 'NAME="sda" TYPE="disk" SIZE="480103981056" ROTA="0" MODEL="SAMSUNG MZ7LH480"'
"""
REFUSE = 'echo "lsblk: no" >&2; exit 1'


@pytest.mark.parametrize(("json", "pairs", "calls"), [(REFUSE, ":", 3), (REFUSE, REFUSE, 4)])
def test_lsblk_is_asked_in_simpler_forms_and_the_working_one_is_kept(
    shell: str, tmp_path: Path, json: str, pairs: str, calls: int
) -> None:
    log = tmp_path / "calls"
    write_tool(tmp_path / "bin", "lsblk", LSBLK % (log, json, pairs))
    loop = Loop("facts", shell, path=tmp_path / "bin")
    try:
        first = loop.ask("blocks")["blocks"]
        assert len(log.read_text().splitlines()) == calls
        again = loop.ask("blocks")["blocks"]
    finally:
        loop.close()
    assert len(log.read_text().splitlines()) == calls + 1
    for answer in (first, again):
        found = lsblk.parse_blocks(answer.payload, answer.exit_code)
        assert not isinstance(found, Unknown)
        assert [(disk.name, disk.size_bytes, disk.is_rotational) for disk in found] == [
            ("sda", 480103981056, False)
        ]


def test_a_hanging_lsblk_costs_its_limit_and_nothing_else(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "lsblk", "exec sleep 1000")
    answers = ask(
        shell, "blocks", "load", path=tmp_path / "bin", changes=((":+$T 2} lsblk", ":+$T 1} lsblk"),)
    )
    assert answers["load"].exit_code == 0
    found = lsblk.parse_blocks(answers["blocks"].payload, answers["blocks"].exit_code)
    assert isinstance(found, Unknown)
    assert "time limit" in found.reason


def make_block(root: Path, name: str, sectors: int, rota: str, model: str = "") -> None:
    write(root, f"{name}/size", f"{sectors}\n")
    write(root, f"{name}/queue/rotational", f"{rota}\n")
    write(root, f"{name}/device/model", f"{model}\n")


def test_without_lsblk_the_kernel_lists_disks(shell: str, root: Path) -> None:
    make_block(root, "sda", 1953525168, "1", "Virtual Disk    ")
    make_block(root, "sdb", 1953525168, "1", "Virtual Disk    ")
    make_block(root, "nvme0n1", 3750748848, "0", "KXG60ZNV2T04")
    make_block(root, "nvme0c0n1", 3750748848, "0", "KXG60ZNV2T04")
    write(root, "nvme0c0n1/hidden", "1\n")
    make_block(root, "sr0", 2097151, "1", "DVD")
    write(root, "loop0/size", "131072\n")
    write(root, "dm-0/size", "1953525168\n")
    write(root, "dm-0/dm/uuid", "mpath-3600a0b80\n")
    for name in ("sda", "sdb"):
        (root / "dm-0/slaves" / name).mkdir(parents=True)
    answer = ask(shell, "blocks", changes=(("} lsblk", "} no-lsblk"), ("/sys/block", str(root))))["blocks"]
    found = lsblk.parse_blocks(answer.payload, answer.exit_code)
    assert not isinstance(found, Unknown)
    assert {(d.name, d.size_bytes, d.is_rotational, d.model) for d in found} == {
        ("nvme0n1", 3750748848 * 512, False, "KXG60ZNV2T04"),
        ("sda", 1953525168 * 512, True, "Virtual Disk"),
    }


def test_cards_bridges_and_slaves(shell: str, root: Path) -> None:
    for name in ("eno1", "ib0", "synthetic", "vf0"):
        (root / name / "device").mkdir(parents=True)
    (root / "vf0/master/device").mkdir(parents=True)
    (root / "docker0/bridge").mkdir(parents=True)
    (root / "bond0/bonding").mkdir(parents=True)
    write(root, "tun0/tun_flags", "1\n")
    for name in ("lo", "veth1a2b", "eno1.100"):
        (root / name).mkdir()
    write(root, "bonding_masters", "bond0\n")
    answer = ask(shell, "links", changes=(("/sys/class/net", str(root)),))["links"]
    assert net.parse_uncounted(answer.payload) == {"docker0", "bond0", "tun0", "eno1.100", "vf0"}


def test_the_first_container_runtime_that_answers(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "podman", 'echo "podman version 4.9.3"')
    changes = (("for c in docker podman containerd", "for c in no-docker podman no-containerd"),)
    answer = ask(shell, "runtime", path=tmp_path / "bin", changes=changes)["runtime"]
    assert system.parse_runtime(answer.payload, answer.exit_code) == "podman 4.9.3"
