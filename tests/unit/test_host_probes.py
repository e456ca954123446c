"""What a machine says of itself: forms that no captured answer holds."""

# ruff: noqa: E501 - lines as tools print them

from __future__ import annotations

import json

import pytest

from fleettui.model.readings import BlockDevice, DisksReading, MemoryDetails, MemoryReading
from fleettui.model.unknown import Unknown
from fleettui.probes import cgroups, clock, cpu, disks, lsblk, memory, memory_details, net, system
from fleettui.probes.cpuinfo import count_cpus, parse_cpuinfo

# --- memory

MEMINFO = b"MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n"


@pytest.mark.parametrize(
    "payload",
    [
        MEMINFO,
        MEMINFO.replace(b"\n", b"\r\n"),
        MEMINFO.replace(b": ", b":      "),
        MEMINFO + b"HugePages_Total:       0\nHugePages_Free: 3\nDirectMap4k: 12 kB\n",
        b"Bogus\nActive(anon): 7 kB\nX: 3\n" + MEMINFO,
        MEMINFO + b"MemTotal: 9 kB\n",
    ],
)
def test_meminfo_in_any_company(payload: bytes) -> None:
    reading = memory.parse_memory(payload)
    values = (reading.total_kib, reading.available_kib, reading.swap_total_kib, reading.swap_free_kib)
    if payload.endswith(b"MemTotal: 9 kB\n"):
        values = (1000, *values[1:])
    assert values == (1000, 400, 50, 20)
    assert not reading.is_available_low


@pytest.mark.parametrize("cut", range(0, len(MEMINFO), 7))
def test_a_cut_meminfo_gives_no_wrong_number(cut: int) -> None:
    reading = memory.parse_memory(MEMINFO[:cut])
    for value, right in (
        (reading.total_kib, "1000"), (reading.available_kib, "400"), (reading.swap_total_kib, "50"),
    ):  # fmt: skip
        assert isinstance(value, Unknown) or right.startswith(str(value))


def test_odd_meminfo() -> None:
    assert isinstance(memory.parse_memory(b"MemTotal: 0 kB\n").total_kib, Unknown)
    assert isinstance(memory.parse_memory(b"MemTotal: -5 kB\n").total_kib, Unknown)
    assert isinstance(memory.parse_memory(b"MemTotal: " + b"9" * 30 + b" kB\n").total_kib, Unknown)
    long = memory.parse_memory(MEMINFO.replace(b"400", b"9" * 16))
    assert (long.total_kib, isinstance(long.available_kib, Unknown)) == (1000, True)
    more = memory.parse_memory(b"MemTotal: 100 kB\nMemFree: 90 kB\nMemAvailable: 120 kB\n")
    assert more.used_kib == 0


GIB = 1 << 20
"""In KiB."""


def limit(total: int, used: int, path: str = "/") -> bytes:
    return f"Limit: {total * GIB * 1024} {used * GIB * 1024} {path}\n".encode()


def test_limits_and_mem_available() -> None:
    host = f"MemTotal: {64 * GIB} kB\nMemFree: 1 kB\nMemAvailable: {20 * GIB} kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
    roomy = memory.parse_memory(host.encode() + limit(48, 8))
    assert (roomy.usable_kib, roomy.free_kib) == (48 * GIB, 20 * GIB)  # the machine has less than the limit
    over = memory.parse_memory(host.encode() + limit(4, 5))
    assert (over.usable_kib, over.free_kib) == (4 * GIB, 0)
    above = memory.parse_memory(host.encode() + limit(64, 5) + limit(100, 1))
    assert above.limits == ()  # no limit below what the machine has
    broken = memory.parse_memory(host.encode() + b"Limit: 12x 5 /\nLimit: 5\nLimit:\n")
    assert (broken.limits, broken.free_kib) == ((), 20 * GIB)


@pytest.mark.parametrize(
    ("path", "is_session"),
    [
        ("/", False),
        ("", False),
        ("/user.slice/user-1000.slice/session-3.scope", True),
        ("/user.slice", True),
        ("/system.slice/ssh.service", True),
        ("/system.slice/docker-3f1c.scope", False),
        ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-77.scope", False),
        ("/kubepods.slice/kubepods-burstable.slice", False),
        ("/docker/f00d", False),
        ("/system.slice/slurmstepd.scope/job_12/step_0", False),
        ("/lxc.payload.web/user.slice/user-0.slice", False),
    ],
)
def test_whose_limit_it_is(path: str, is_session: bool) -> None:
    assert cgroups.binds_sessions_only(path.encode()) is is_session


def test_up_to_is_never_more_than_there_is() -> None:
    details = MemoryDetails(arc_shrinkable_kib=900, arc_kib=950)
    assert MemoryReading(1000, 400, details=details).up_to_kib == 1000
    assert isinstance(MemoryReading(1000, 400).up_to_kib, Unknown)
    assert isinstance(MemoryReading(1000, 400, details=MemoryDetails()).up_to_kib, Unknown)
    assert isinstance(MemoryReading(1000, Unknown(), details=details).up_to_kib, Unknown)


def test_processor_limits() -> None:
    assert cgroups.parse_core_limit(b"cpu 800000 100000 /\ncpu 150000 100000 /a\n") == 1.5
    assert cgroups.parse_core_limit(b"cpu 100000 100000 /user.slice/user-1.slice\n") is None
    assert cgroups.parse_core_limit(b"cpu 0 100000 /\ncpu 5 0 /\ncpu x\n") is None


def test_pressure() -> None:
    text = b"some avg10=99.99 avg60=1 avg300=0 total=1\nfull avg10=0.00 avg60=0 avg300=0 total=0\n"
    assert memory_details.parse_pressure(text) == (99.99, 0.0)
    assert isinstance(memory_details.parse_pressure(b"some avg10=101.0 avg60=0\n")[0], Unknown)
    assert isinstance(memory_details.parse_pressure(b"")[1], Unknown)


# --- processor


def test_guest_time_is_not_counted_twice() -> None:
    before = cpu.parse_cpu_times(b"cpu  1000 0 0 1000 0 0 0 0 500 0")
    after = cpu.parse_cpu_times(b"cpu  1100 0 0 1100 0 0 0 0 600 0")
    assert cpu.busy_percent(before, after) == 50.0


def test_idle_going_back_and_no_time() -> None:
    before = cpu.parse_cpu_times(b"cpu  100 0 0 900 50 0 0 0")
    assert cpu.busy_percent(before, cpu.parse_cpu_times(b"cpu  150 0 0 800 40 0 0 0")) == 100.0
    assert isinstance(cpu.busy_percent(before, before), Unknown)
    assert cpu.parse_cpu_times(b"cpu  1 2 3 4\n") == (1, 2, 3, 4, 0, 0, 0, 0)  # Linux 2.4
    for wrong in (b"", b"cpu0 1 2 3 4", b"cpu  1 2 x 4", b"cpu  1 -2 3 4", b"intr 5"):
        assert cpu.parse_cpu_times(wrong) is None


@pytest.mark.parametrize(
    "text", [b"nan 1 2", b"1e9 1 2", b"-1 1 2", b"1.2.3 1 2", b"1_0 1 2", b"inf 0 0", b"1 2"]
)
def test_loads_that_are_none(text: bytes) -> None:
    assert isinstance(cpu.parse_load(text), Unknown)


POWER = b"".join(
    b"processor\t: %d\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3783MHz\n\n" % n for n in (0, 4, 8)
)
S390 = b"""vendor_id       : IBM/S390
# processors    : 2
bogomips per cpu: 20325.00
processor 0: version = FF,  identification = FFFFFF,  machine = 2964
processor 1: version = FF,  identification = FFFFFF,  machine = 2964

cpu number      : 0
"""
RISCV = b"processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc_zicntr\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n"
ARM_CORE = "processor\t: {}\n{}CPU implementer\t: {}\nCPU part\t: {}\n"


@pytest.mark.parametrize(
    ("payload", "model", "cores"),
    [
        (POWER, "POWER9", 3),
        (S390, "IBM/S390 2964", 2),
        (RISCV, "sifive,u74-mc", 1),
        (RISCV.partition(b"uarch")[0], "RISC-V rv64imafdc", 1),
        (b"processor\t: 0\nModel Name\t: Loongson-3A5000\n", "Loongson-3A5000", 1),
        (b"processor\t: 0\ncpu model\t: MIPS 24Kc V7.4\n", "MIPS 24Kc V7.4", 1),
        (ARM_CORE.format(0, "model name\t: ARMv8 Processor rev 0 (v8l)\n", "0x41", "0xd42").encode(), "ARM Cortex-A78AE", 1),
        (ARM_CORE.format(0, "model name\t: Phytium,D2000/8\n", "0x70", "0x663").encode(), "Phytium,D2000/8", 1),
        (ARM_CORE.format(0, "", "0x41", "0xD0C").encode(), "ARM Neoverse-N1", 1),
        (ARM_CORE.format(0, "", "0xc0", "0xac4").encode(), "Ampere Ampere-1A", 1),
        (ARM_CORE.format(0, "", "0x41", "0xfff").encode(), "ARM 0x41/0xfff", 1),
        (ARM_CORE.format(0, "", "rubbish", "\x1b[2J").encode(), "ARM rubbish/", 1),
        (b"Processor\t: ARMv7 Processor rev 4 (v7l)\nprocessor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xc07\n",
         "ARM Cortex-A7", 1),
    ],
)  # fmt: skip
def test_processors_of_all_kinds(payload: bytes, model: str, cores: int) -> None:
    assert parse_cpuinfo(payload) == (model, cores)


def test_three_kinds_of_cores() -> None:
    parts = ["0xd80"] * 4 + ["0xd81"] * 3 + ["0xd82"]
    payload = "".join(ARM_CORE.format(n, "", "0x41", part) for n, part in enumerate(parts))
    assert parse_cpuinfo(payload.encode()) == ("1 × Cortex-X4 + 3 × Cortex-A720 + 4 × Cortex-A520", 8)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 1),
        ("0-255", 256),
        ("0-3,8-11,16", 9),
        ("", None),
        ("3-1", None),
        ("0-99999999", None),
        ("a-b", None),
    ],
)
def test_cpu_lists(text: str, count: int | None) -> None:
    assert count_cpus(text) == count


def test_a_cut_cpuinfo_does_not_cut_the_machine() -> None:
    cut = b"processor\t: 0\nmodel name\t: AMD EPYC 9654\nprocessor\t: 1\nmodel na"
    host = b"online 0-383\nallowed \t0-383\n"
    assert system.parse_system(b"", b"", cut, host, is_cpuinfo_cut=True).cores == 384
    assert isinstance(system.parse_system(b"", b"", cut, is_cpuinfo_cut=True).cores, Unknown)
    assert system.parse_system(b"", b"", cut).cores == 2


# --- system


@pytest.mark.parametrize(
    ("host", "container"),
    [
        (b"container \ncgroup 0::/init.scope\n", None),
        (b"container docker\ncgroup 0::/\n", "docker"),
        (b"container lxc\n", "lxc"),
        (b"container systemd-nspawn\ncontainer docker\n", "systemd-nspawn"),
        (b"cgroup 12:memory:/docker/3f1c\n", "docker"),
        (b"container docker\ncgroup 3:cpu:/kubepods/besteffort/pod1/2\n", "kubernetes"),
        (b"cgroup 0::/machine.slice/libpod-77.scope\n", "podman"),
        (b"container lxcfs\n", "lxc"),
    ],
)  # fmt: skip
def test_containers(host: bytes, container: str | None) -> None:
    assert system.parse_system(b"", b"", b"", host).container == container


def test_a_cpuset_limits_only_a_container() -> None:
    lists = b"online 0-63\nallowed 0-7\n"
    assert system.parse_system(b"", b"", b"", lists).core_limit is None
    assert system.parse_system(b"", b"", b"", lists + b"container docker\n").core_limit == 8


@pytest.mark.parametrize(
    ("text", "runtime"),
    [
        (b"Docker version 27.3.1, build ce12230\n", "Docker 27.3.1"),
        (b"Docker version 20.10.24+dfsg1, build 297e128\n", "Docker 20.10.24+dfsg1"),
        (b"podman version 5.4.0-dev\n", "podman 5.4.0-dev"),
        (b"containerd github.com/containerd/containerd/v2 2.1.4 abcdef\n", "containerd 2.1.4"),
    ],
)
def test_container_runtimes(text: bytes, runtime: str) -> None:
    assert system.parse_runtime(text) == runtime


def test_no_container_runtime() -> None:
    for text, code in ((b"", 127), (b"sh: docker", 1), (b"Docker version 1.2", 124), (b"bash 5.2", 0)):
        assert isinstance(system.parse_runtime(text, code), Unknown)


def test_clock() -> None:
    assert clock.parse_epoch(b"1796025645.250000000\n") == (1796025645.25, 1796025645.25)
    for text in (b"1796025645", b"1796025645.", b"1796025645.N\n", b"1796025645.%N"):
        assert clock.parse_epoch(text) == (1796025645.0, 1796025646.0)
    for text in (b"", b"Mon Nov 30", b"-5", b"9" * 20, b"\xff\xff"):
        assert clock.parse_epoch(text) is None


@pytest.mark.parametrize(
    ("text", "asked", "received", "skew"),
    [
        (b"1000.5", 1000.0, 1001.0, 0.0),
        (b"1007.5", 1000.0, 1001.0, 6.5),  # at least: it looked when it answered
        (b"990.0", 1000.0, 1001.0, -10.0),
        (b"1000", 1000.4, 1000.5, 0.0),  # no fraction: half a second early may be right
        (b"1005.0", 1000.0, 1006.0, 0.0),  # a slow answer proves nothing
    ],
)
def test_skew_is_what_is_sure(text: bytes, asked: float, received: float, skew: float) -> None:
    assert clock.find_skew_s(text, asked, received) == skew


# --- network


def line(name: str, rx: int, tx: int, blank: str = " ") -> bytes:
    return f"{name}:{blank}{rx} 1 0 0 0 0 0 0 {tx} 1 0 0 0 0 0 0\n".encode()


def test_names_with_colons_and_no_blank_behind_them() -> None:
    payload = (
        line("eth0:1", 5, 6)
        + line("eth1", 123456, 7, blank="")
        + line("wlan-ü", 1, 2)
        + line("a:b:c", 3, 4, "")
    )
    found = [item.name for item in net.parse_net(payload, 1.0, None)[0].interfaces]
    assert found == ["eth0:1", "eth1", "wlan-ü", "a:b:c"]


def test_counters_of_64_bits() -> None:
    _, counters = net.parse_net(line("eno1", 2**63, 2**64 - 3000), 10.0, None)
    reading, _ = net.parse_net(line("eno1", 2**63 + 1000, 2**64 - 1000), 12.0, counters)
    assert (reading.interfaces[0].rx_bytes_s, reading.interfaces[0].tx_bytes_s) == (500.0, 1000.0)


def test_a_reset_costs_one_sample_of_both_directions() -> None:
    """Sent bytes may have grown past their old value since the reset: no rate can be made of them."""
    _, counters = net.parse_net(line("eno1", 10**12, 10**6), 10.0, None)
    reading, counters = net.parse_net(line("eno1", 10**9, 10**8), 12.0, counters)
    assert (
        reading.interfaces[0].rx_bytes_s == reading.interfaces[0].tx_bytes_s == Unknown("counter went back")
    )
    reading, _ = net.parse_net(line("eno1", 10**9 + 4, 10**8 + 2), 14.0, counters)
    assert (reading.interfaces[0].rx_bytes_s, reading.interfaces[0].tx_bytes_s) == (2.0, 1.0)


def test_interfaces_come_and_go() -> None:
    _, counters = net.parse_net(line("a", 10, 10) + line("b", 10, 10), 1.0, None)
    reading, counters = net.parse_net(line("b", 20, 20) + line("c", 5, 5), 2.0, counters)
    assert [item.name for item in reading.interfaces] == ["b", "c"]
    assert reading.interfaces[0].rx_bytes_s == 10.0
    assert isinstance(reading.interfaces[1].rx_bytes_s, Unknown)
    reading, _ = net.parse_net(line("a", 99, 99), 3.0, counters)
    assert isinstance(reading.interfaces[0].rx_bytes_s, Unknown)  # not since the sample before last


def test_what_counts() -> None:
    assert net.parse_uncounted(b"device eno1\nbridge br0\nbond bond0\nvirtual eno1.100\ntun wg0\n") == {
        "br0", "bond0", "eno1.100", "wg0",
    }  # fmt: skip
    assert net.parse_uncounted(b"virtual eth0\nbridge docker0\n") == {"docker0"}
    assert net.parse_uncounted(b"") == frozenset()
    reading, _ = net.parse_net(line("eno1", 1, 1) + line("br0", 1, 1), 1.0, None, frozenset(["br0"]))
    assert [item.is_counted for item in reading.interfaces] == [True, False]


# --- file systems

HEAD = "Filesystem     1024-blocks      Used Available Capacity Mounted on\n"


def read_disks(text: str, exit_code: int = 0) -> list[tuple[str, str, int, int, int]]:
    found = disks.parse_disks(text.encode(), exit_code)
    assert isinstance(found, DisksReading), found
    return [(item.mount, item.device, item.total_kib, item.used_kib, item.free_kib) for item in found.disks]


def test_datasets_of_a_pool_are_one_disk() -> None:
    rows = (
        "rpool/ROOT/pve-1 1000 200 800 20% /\nrpool 801 1 800 1% /rpool\nrpool/data 1100 300 800 28% /rpool/data\n"
        "rpool/limited 50 45 5 90% /rpool/limited\ntank 10000 4000 6000 40% /tank\n"
    )
    assert read_disks(HEAD + rows) == [
        ("/", "rpool", 1301, 501, 800),
        ("/rpool/limited", "rpool/limited", 50, 45, 5),
        ("/tank", "tank", 10000, 4000, 6000),
    ]


def test_subvolumes_and_bind_mounts_once() -> None:
    rows = "".join(
        f"/dev/nvme0n1p2 1000 900 100 90% {mount}\n" for mount in ("/home", "/", "/var/lib/docker/btrfs")
    )
    assert read_disks(HEAD + rows) == [("/", "/dev/nvme0n1p2", 1000, 900, 100)]


def test_the_root_of_a_container_is_its_disk() -> None:
    rows = (
        "overlay 1000 900 100 90% /\ntmpfs 64 0 64 0% /dev\n/dev/nvme0n1p2 1000 900 100 90% /etc/hosts\n"
        "/dev/sdb1 5000 10 4990 1% /models\n"
    )
    assert read_disks(HEAD + rows) == [
        ("/", "/dev/nvme0n1p2", 1000, 900, 100),
        ("/models", "/dev/sdb1", 5000, 10, 4990),
    ]
    assert read_disks(HEAD + "overlay 1000 900 100 90% /\n") == [("/", "overlay", 1000, 900, 100)]
    host = "/dev/sda1 1000 900 100 90% /\noverlay 1000 900 100 90% /var/lib/docker/overlay2/x/merged\n"
    assert read_disks(HEAD + host) == [("/", "/dev/sda1", 1000, 900, 100)]


def test_forms_of_df() -> None:
    wrapped = "/dev/mapper/vg--with--a--very--long--name-root\n                       1000       400       600  40% /\n"
    assert read_disks(HEAD + wrapped) == [
        ("/", "/dev/mapper/vg--with--a--very--long--name-root", 1000, 400, 600)
    ]
    german = "Dateisystem    1024-Blöcke   Benutzt Verfügbar Kapazität Eingehängt auf\n/dev/sda1 1000 400 600 40% /\n"
    assert read_disks(german) == [("/", "/dev/sda1", 1000, 400, 600)]
    assert read_disks(german.partition("/dev")[0]) == []
    assert read_disks(HEAD + "/dev/sda1 1000 1050 -50 105% /\n") == [("/", "/dev/sda1", 1000, 1050, 0)]
    assert (
        read_disks(HEAD + "/dev/sda1 1000 400 600 - /data disk/two  blanks\n")[0][0]
        == "/data disk/two  blanks"
    )
    assert read_disks(HEAD + "/dev/sda1 1000 400 600 40% /\r\n") == [("/", "/dev/sda1", 1000, 400, 600)]
    assert read_disks(HEAD + "/dev/sda1 - - - - /x\n/dev/sdb1 10 4 6 40% /y\n") == [
        ("/y", "/dev/sdb1", 10, 4, 6)
    ]
    assert read_disks(HEAD + "/dev/sdb1 10 4 6 40% /y\n", 1) == [("/y", "/dev/sdb1", 10, 4, 6)]
    macos = "/dev/disk3s1s1 1000 20 500 4% /\n/dev/disk3s6 1000 3 500 1% /System/Volumes/VM\nmap auto_home 0 0 0 100% /x\n"
    assert [row[0] for row in read_disks(HEAD + macos)] == ["/"]


@pytest.mark.parametrize(
    ("text", "code"), [("", 1), ("", 127), ("", 124), ("", 75), ("sh: df: not found", 0)]
)
def test_no_rows_is_unknown(text: str, code: int) -> None:
    assert isinstance(disks.parse_disks(text.encode(), code), Unknown)


# --- disks as devices


def blocks_of(*rows: dict[str, object]) -> list[tuple[str, int]]:
    found = lsblk.parse_blocks(json.dumps({"blockdevices": rows}).encode())
    assert not isinstance(found, Unknown)
    return [(disk.name, disk.size_bytes) for disk in found]


def row(name: str, size: object = 1000, **more: object) -> dict[str, object]:
    return {"name": name, "type": "disk", "size": size, **more}


def test_what_is_a_disk() -> None:
    names = ["loop0", "ram0", "zram1", "sr0", "fd0", "nbd3", "md127", "dm-0", "mmcblk0boot1"]
    assert blocks_of(*(row(name) for name in names), row("mmcblk0"), row("vda"), row("sdz")) == [
        ("mmcblk0", 1000), ("vda", 1000), ("sdz", 1000),
    ]  # fmt: skip
    assert (
        blocks_of(row("sda", 0), row("sdb", None), row("sdc", "7,3T"), row("sdd", True), row("sde", -1)) == []
    )
    assert blocks_of(row("sda"), row("sda"), {"size": 5}, row("x", type="rom")) == [("sda", 1000)]


def test_nvme_paths_and_namespaces() -> None:
    both = blocks_of(row("nvme0n1"), row("nvme0c0n1"), row("nvme0c1n1"), row("nvme0n2"), row("nvme1n1"))
    assert [name for name, _ in both] == ["nvme0n1", "nvme0n2", "nvme1n1"]
    assert blocks_of(row("nvme2c2n1")) == [("nvme2c2n1", 1000)]  # no namespace stands for it


@pytest.mark.parametrize(("value", "right"), [("1", True), ("0", False), (1, True), (0, False), (True, True),
    (False, False), ("true", True), (None, None), ("", None), ([], None)])  # fmt: skip
def test_rotational_in_every_form(value: object, right: bool | None) -> None:
    found = lsblk.parse_blocks(json.dumps({"blockdevices": [row("sda", rota=value)]}).encode())
    assert not isinstance(found, Unknown)
    told = found[0].is_rotational
    assert told == right or (right is None and isinstance(told, Unknown))


def test_mounts_of_a_disk_and_all_below() -> None:
    crypt = {
        "name": "luks",
        "type": "crypt",
        "mountpoint": "/",
        "children": [{"name": "vg", "mountpoints": [None, "/v"]}],
    }
    disk = row(
        "sda",
        mountpoint=None,
        children=[{"name": "sda1", "mountpoint": "/boot"}, {"name": "sda2", "children": [crypt]}],
    )
    found = lsblk.parse_blocks(json.dumps({"blockdevices": [disk]}).encode())
    assert not isinstance(found, Unknown)
    assert set(found[0].mounts) == {"/boot", "/", "/v"}


def test_pairs_with_multipath() -> None:
    text = (
        'NAME="sda" TYPE="disk" SIZE="1000" ROTA="1" MODEL="A \\"x\\"" PKNAME="" MOUNTPOINT=""\n'
        'NAME="mpatha" TYPE="mpath" SIZE="1000" ROTA="1" MODEL="" PKNAME="sda" MOUNTPOINT="/data"\n'
        'NAME="sdb" TYPE="disk" SIZE="1000" ROTA="1" MODEL="A" PKNAME="" MOUNTPOINT=""\n'
        'NAME="mpatha" TYPE="mpath" SIZE="1000" ROTA="1" MODEL="" PKNAME="sdb" MOUNTPOINT="/data"\n'
    )
    for version in (text, text.replace(' PKNAME="sda"', "").replace(' PKNAME="sdb"', "")):
        found = lsblk.parse_blocks(version.encode())
        assert not isinstance(found, Unknown)
        assert [(disk.name, disk.mounts) for disk in found] == [("sda", ("/data",))]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"blockdevices": null}', '{"blockdevices": 5}', "lsblk: unknown", '{"a":' * 2000]
)
def test_no_list_is_unknown(text: str) -> None:
    assert isinstance(lsblk.parse_blocks(text.encode(), 1), Unknown)
    assert "time limit" in str(lsblk.parse_blocks(text.encode(), 124).reason)  # type: ignore[union-attr]


def test_an_empty_list_is_no_disk() -> None:
    assert lsblk.parse_blocks(b'{"blockdevices": []}') == ()
    assert lsblk.parse_blocks(b"sys vda 8 1 \n") == (
        BlockDevice("vda", 4096, True, Unknown("not told"), Unknown("not told")),
    )
