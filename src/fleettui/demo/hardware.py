"""Cards and hosts of the simulated fleet: what nvidia-smi and /proc print about real ones."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class CardKind:
    """One model of GPU."""

    name: str
    """As nvidia-smi prints it."""
    label: str
    """As a person writes it into a machine file."""
    total_mib: int
    """memory.total; 0: unified with main memory, the columns print `[N/A]`."""
    vram_gb: int
    """Nominal GiB, as written into a machine file."""
    reserved_mib: int
    """memory.reserved: neither used nor free (drivers from 510 on)."""
    idle_mib: int
    """memory.used with nothing running."""
    power_limit_w: float | None
    """None prints `[N/A]`."""
    idle_power_w: float
    busy_power_w: float
    idle_temperature_c: float
    busy_temperature_c: float
    has_fan: bool
    compute_cap: str = "8.9"

    @property
    def is_unified(self) -> bool:
        return self.total_mib == 0


RTX_4090 = CardKind(
    "NVIDIA GeForce RTX 4090", "RTX 4090", 24564, 24, 434, 2, 450.0, 17.0, 342.0, 36.0, 67.0, True
)
RTX_3090 = CardKind(
    "NVIDIA GeForce RTX 3090", "RTX 3090", 24576, 24, 322, 4, 350.0, 24.0, 318.0, 39.0, 74.0, True, "8.6"
)
RTX_A5000 = CardKind(
    "NVIDIA RTX A5000", "RTX A5000", 24564, 24, 310, 3, 230.0, 19.0, 204.0, 38.0, 76.0, True, "8.6"
)
RTX_A6000 = CardKind(
    "NVIDIA RTX A6000", "RTX A6000", 49140, 48, 532, 4, 300.0, 22.0, 268.0, 37.0, 75.0, True, "8.6"
)
RTX_6000_ADA = CardKind(
    "NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", 49140, 48, 511, 2, 300.0, 20.0, 262.0, 35.0, 71.0, True
)
L40S = CardKind("NVIDIA L40S", "L40S", 46068, 48, 499, 1, 350.0, 33.0, 291.0, 34.0, 66.0, False)
T4 = CardKind("Tesla T4", "T4", 15360, 16, 450, 1, 70.0, 10.0, 68.0, 41.0, 77.0, False, "7.5")
A100_80 = CardKind(
    "NVIDIA A100-SXM4-80GB", "A100 80GB", 81920, 80, 595, 4, 400.0, 61.0, 318.0, 31.0, 58.0, False, "8.0"
)
H100_80 = CardKind(
    "NVIDIA H100 80GB HBM3", "H100 80GB", 81559, 80, 479, 1, 700.0, 71.0, 581.0, 29.0, 57.0, False, "9.0"
)
GB10 = CardKind("NVIDIA GB10", "GB10 (unified)", 0, 119, 0, 0, None, 4.1, 61.0, 36.0, 68.0, False, "12.1")


@dataclass(frozen=True, slots=True)
class HostKind:
    """Mainboard, processor, memory and disks of a machine."""

    cpu: str
    """`model name` of /proc/cpuinfo; empty on ARM, which prints none."""
    cpu_label: str
    """As a person writes it into a machine file."""
    threads: int
    memory_kib: int
    memory_gb: int
    """As written into a machine file."""
    disk_gb: int
    """Decimal GB, the disk that holds the models."""
    os: str
    """PRETTY_NAME."""
    kernel: str
    driver: str
    """Empty: no driver installed."""
    network: str
    """Name of the wired interface."""
    arch: str = "x86_64"
    has_models_disk: bool = False
    """The models lie on a disk of their own, mounted on /models."""


UBUNTU = "Ubuntu 24.04.3 LTS"
DEBIAN = "Debian GNU/Linux 13 (trixie)"
ROCKY = "Rocky Linux 9.6 (Blue Onyx)"

WORKSTATION = HostKind(
    "AMD Ryzen 9 7950X 16-Core Processor", "16-core Ryzen 9 7950X", 32, 131_781_380, 128, 4000,
    UBUNTU, "6.8.0-87-generic", "580.95.05", "enp5s0",
)  # fmt: skip
OFFICE_TOWER = HostKind(
    "AMD Ryzen Threadripper PRO 5955WX 16-Cores", "16-core Threadripper PRO", 32, 131_655_012, 128, 2000,
    DEBIAN, "6.12.57+deb13-amd64", "550.163.01", "eno1",
)  # fmt: skip
RACK_SERVER = HostKind(
    "Intel(R) Xeon(R) Gold 6430", "2 x 32-core Xeon Gold", 128, 527_812_404, 512, 7680,
    ROCKY, "5.14.0-570.58.1.el9_6.x86_64", "575.57.08", "ens1f0np0", has_models_disk=True,
)  # fmt: skip
SMALL_SERVER = HostKind(
    "AMD EPYC 7443P 24-Core Processor", "24-core EPYC", 48, 263_842_116, 256, 3840,
    UBUNTU, "6.8.0-87-generic", "580.95.05", "enp65s0f0",
)  # fmt: skip
DGX = HostKind(
    "AMD EPYC 7742 64-Core Processor", "2 x 64-core EPYC", 256, 1_056_268_528, 1024, 15360,
    "Ubuntu 22.04.5 LTS", "5.15.0-161-generic", "570.195.03", "enp226s0", has_models_disk=True,
)  # fmt: skip
SPARK = HostKind(
    "", "20-core Arm", 20, 127_600_748, 128, 4000,
    UBUNTU, "6.14.0-1013-nvidia", "580.126.09", "enP7s7", arch="aarch64",
)  # fmt: skip
APP_SERVER = HostKind(
    "AMD EPYC 7313P 16-Core Processor", "16-core x86_64", 32, 65_767_452, 64, 2000,
    DEBIAN, "6.12.57+deb13-amd64", "", "eno1",
)  # fmt: skip
GAMING_PC = HostKind(
    "Intel(R) Core(TM) i9-10900K CPU @ 3.70GHz", "10-core i9-10900K", 20, 65_748_216, 64, 2000,
    UBUNTU, "6.8.0-79-generic", "550.120", "enp3s0",
)  # fmt: skip
OLD_TOWER = HostKind(
    "Intel(R) Xeon(R) W-2245 CPU @ 3.90GHz", "8-core Xeon W-2245", 16, 131_541_764, 128, 2000,
    UBUNTU, "6.8.0-87-generic", "535.161.08", "eno2",
)  # fmt: skip
