"""A small fleet with one machine of every sort, a service that a test feeds, a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fleettui.fleet.drain.desk import DrainDesk
from fleettui.fleet.history import FleetHistory
from fleettui.fleet.maintenance import FlagOperations
from fleettui.fleet.poller import MachinePoller
from fleettui.fleet.profile_book import ProfileBook
from fleettui.fleet.route_desk import RouteDesk
from fleettui.fleet.shell import ShellOperations
from fleettui.fleet.trust_operations import TrustOperations
from fleettui.fleet.ui_state import UiState
from fleettui.model.event import Event
from fleettui.model.gpu import GpuCard, GpuProblem, GpuProcess, GpuReading, ProcessesReading
from fleettui.model.machine import ConfigProblem, DeclaredGpu, EngineEndpoint, Machine, SshSettings
from fleettui.model.readings import (
    CpuReading,
    DisksReading,
    DiskUse,
    EngineReading,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    NetInterface,
    NetReading,
    SystemReading,
)
from fleettui.model.snapshot import (
    FleetSnapshot,
    HostKeyOffer,
    LinkStatus,
    MachineSnapshot,
    MaintenanceFlag,
    Reason,
    SourceStatus,
)

NOW = 1_770_000_000.0
GIB = 1 << 30
SOURCES = ("gpu", "processes", "cpu", "memory", "disks", "net", "system", "ollama")


def card(index: int, name: str, total_mib: int, used_mib: int, busy: int, **more: object) -> GpuCard:
    """A card with plausible figures."""
    figures: dict[str, object] = {
        "uuid": f"GPU-{index:08x}-0000-0000-0000-000000000000",
        "driver": "550.144.03",
        "temperature_c": 34 + busy // 3,
        "power_w": 25.0 + 3.2 * busy,
        "power_limit_w": 450.0,
        "fan_percent": 30,
        "pstate": "P2",
        "bus_id": f"00000000:{index + 1:02X}:00.0",
    }
    figures.update(more)
    return GpuCard(
        index=index,
        name=name,
        total_mib=total_mib,
        used_mib=used_mib,
        free_mib=total_mib - used_mib - 400,
        utilisation_percent=busy,
        **figures,  # type: ignore[arg-type]
    )


def model(name: str, gib: float, gpu_share: float = 1.0, expires_in: float | None = 240.0) -> LoadedModel:
    """A copy; `expires_in` None: pinned."""
    return LoadedModel(
        name=name,
        engine="ollama",
        digest=name.encode().hex().ljust(64, "0")[:64],
        size_bytes=int(gib * GIB),
        vram_bytes=int(gib * GIB * gpu_share),
        context=8192,
        expires_at=NOW + (expires_in or 0.0),
        is_pinned=expires_in is None,
        parameter_size="70.6B",
        quantization="Q4_K_M",
    )


def engine(*loaded: LoadedModel, installed: tuple[str, ...] = ()) -> EngineReading:
    """An Ollama that answered."""
    return EngineReading(
        kind="ollama",
        port=11434,
        state="ok",
        version="0.12.6",
        loaded=loaded,
        installed=tuple(InstalledModel(name, "ollama", size_bytes=5 * GIB) for name in installed),
    )


def memory(used_gib: float, total_gib: float) -> MemoryReading:
    """Main memory."""
    return MemoryReading(
        total_kib=int(total_gib * (1 << 20)),
        available_kib=int((total_gib - used_gib) * (1 << 20)),
        swap_total_kib=8 << 20,
        swap_free_kib=8 << 20,
    )


def machine(
    name: str,
    *cards: GpuCard,
    models: tuple[LoadedModel, ...] = (),
    busy: float = 8.0,
    used_gib: float = 24.0,
    total_gib: float = 128.0,
    age_s: float = 1.0,
    role: str = "llm",
) -> MachineSnapshot:
    """A healthy machine heard `age_s` ago."""
    declared = Machine(
        name=name,
        role=role,
        hostname=f"{name}.example.net",
        gpus=tuple(DeclaredGpu(str(item.name), float(item.total_mib) / 1024) for item in cards),  # type: ignore[arg-type]
        ssh=SshSettings(user="ops"),
        engines=(EngineEndpoint("ollama", 11434),),
        models=("llama3.1:70b",),
        tags=("lab",),
        config_file=f"machines/{name}.yaml",
    )
    read_at = NOW - age_s
    return MachineSnapshot(
        machine=declared,
        link=LinkStatus("up", since=NOW, address="192.0.2.10:22"),
        gpu=GpuReading(cards=cards),
        processes=ProcessesReading(
            tuple(
                GpuProcess(
                    item.uuid, 4100 + item.index, "/usr/bin/ollama", item.used_mib, "ollama", "ollama runner"
                )
                for item in cards
            )
        ),
        cpu=CpuReading(busy, (1.2, 0.9, 0.7), 9 * 86_400.0),
        memory=memory(used_gib, total_gib),
        disks=DisksReading((DiskUse("/", "/dev/nvme0n1p2", 960 << 20, 410 << 20, 500 << 20),)),
        net=NetReading((NetInterface("eno1", 120_000.0, 48_000.0),)),
        system=SystemReading(
            "Ubuntu 24.04.1 LTS", "6.8.0-45-generic", "x86_64", "AMD EPYC 7443P 24-Core Processor", 48
        ),
        engines=(engine(*models, installed=("llama3.1:70b", "phi3:mini")),),
        sources={source: SourceStatus("ok", read_at, NOW - 3600) for source in SOURCES},
        health="healthy",
        last_seen=read_at,
        seq=1,
    )


def sample_machines() -> tuple[MachineSnapshot, ...]:
    """Nine machines: every health, unified memory, CPU only, maintenance, an offloaded copy, a new key."""
    ada = machine(
        "ada",
        card(0, "NVIDIA GeForce RTX 4090", 24564, 23450, 97),
        card(1, "NVIDIA GeForce RTX 4090", 24564, 18740, 30),
        models=(model("llama3.1:70b", 39.6),),
        busy=12.0,
        used_gib=38.0,
    )
    bora = replace(
        machine(
            "bora",
            card(0, "NVIDIA RTX A6000", 49140, 14440, 4),
            models=(model("qwen2.5:32b", 19.3, 0.83, None),),
            busy=3.0,
            used_gib=12.0,
            total_gib=64.0,
            age_s=2.0,
        ),
        health="degraded",
        reasons=(
            Reason("degraded", "gpu_missing", "GPU 1 is declared and not there: look at dmesg and the seat"),
        ),
    )
    spark = machine(
        "spark",
        card(0, "NVIDIA GB10", 122_880, 40_960, 2, is_unified=True),
        models=(model("gpt-oss:120b", 38.1, 1.0, 1740.0),),
        busy=2.0,
        used_gib=47.0,
        total_gib=119.0,
    )
    cleo = replace(
        machine("cleo", card(0, "Tesla T4", 15360, 2, 0), busy=0.0, used_gib=4.0, total_gib=64.0),
        maintenance=MaintenanceFlag("fan swap", "mia", NOW - 7200),
    )
    app_host = machine(
        "app-host", models=(model("phi3:mini", 2.2, 0.0, 60.0),), busy=4.0, used_gib=12.0, total_gib=64.0
    )
    pve52 = MachineSnapshot(
        machine=machine("pve52").machine,
        link=LinkStatus(
            "failed",
            "connect",
            "no answer on 192.0.2.52 port 22 (timeout)",
            NOW - 240,
            NOW + 12,
            "192.0.2.52:22",
        ),
        health="offline",
        reasons=(Reason("offline", "ssh_connect", "no answer on 192.0.2.52 port 22 (timeout)"),),
        last_seen=NOW - 240,
    )
    kiosk = MachineSnapshot(
        machine=machine("kiosk").machine,
        trust="pending",
        link=LinkStatus(
            "failed",
            "host key",
            "unknown host key",
            NOW - 30,
            None,
            "192.0.2.60:22",
            HostKeyOffer("ED25519", "SHA256:Vd3yq0mN7YkqkL9dXxZQm1a1l9pR0yV5o0tJ8wq4hkQ", "KX7A-2MPD"),
        ),
    )
    dora = replace(
        machine("dora", busy=1.0, used_gib=9.0, total_gib=256.0),
        machine=replace(machine("dora").machine, gpus=(DeclaredGpu("A100 80GB", 80.0),)),
        gpu=GpuReading(
            problem=GpuProblem(
                "version_mismatch",
                "driver and library differ: reboot, or reload the nvidia modules",
                "NVML: mismatch",
            )
        ),
        health="unhealthy",
        reasons=(
            Reason(
                "unhealthy",
                "gpu_version_mismatch",
                "driver and library differ: reboot, or reload the modules",
            ),
        ),
    )
    hopper = machine(
        "hopper",
        *(card(index, "NVIDIA H100 80GB HBM3", 81559, 9000 + 9000 * index, 12 * index) for index in range(4)),
        models=(model("mixtral:8x22b", 74.0, 1.0, 3400.0), model("nomic-embed-text", 0.6, 1.0, None)),
        busy=21.0,
        used_gib=210.0,
        total_gib=1007.0,
    )
    return (ada, app_host, bora, cleo, dora, hopper, kiosk, pve52, spark)


def fleet(machines: tuple[MachineSnapshot, ...] | None = None, seq: int = 1, **more: object) -> FleetSnapshot:
    """A fleet snapshot of these machines, else of the sample ones."""
    return FleetSnapshot(
        seq=seq,
        taken_at=NOW,
        interval_s=2.0,
        machines=sample_machines() if machines is None else machines,
        machines_dir="machines",
        **more,  # type: ignore[arg-type]
    )


PROBLEM = ConfigProblem(
    "machines/attic.yaml", 4, "network.hostname", "is missing: give the address of the machine"
)


def rack(count: int = 24) -> tuple[MachineSnapshot, ...]:
    """So many alike machines of one card, for counting what is painted."""
    return tuple(
        machine(
            f"gpu-{number:02}",
            card(0, "NVIDIA L40S", 46068, 8000 + 900 * number, 3 * number % 100),
            models=(model("qwen2.5:14b", 9.0, expires_in=None),),
        )
        for number in range(count)
    )


def moved(item: MachineSnapshot, step: int) -> MachineSnapshot:
    """The machine a poll later: its figures differ."""
    assert item.gpu is not None
    cards = tuple(
        replace(each, used_mib=6000 + (step * 977) % 30000, utilisation_percent=(step * 7) % 100)
        for each in item.gpu.cards
    )
    return replace(
        item,
        gpu=replace(item.gpu, cards=cards),
        cpu=CpuReading(float((step * 13) % 100), (1.0, 1.0, 1.0), 9 * 86_400.0),
        seq=item.seq + 1,
    )


class FakeEvents:
    """A timeline that a test writes."""

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.error: str | None = None
        self._callbacks: list[Callable[[tuple[Event, ...]], None]] = []

    def subscribe(self, subscriber: Callable[[tuple[Event, ...]], None]) -> Callable[[], None]:
        self._callbacks.append(subscriber)
        return lambda: self._callbacks.remove(subscriber)

    def add(self, *events: Event) -> None:
        """These happened now."""
        self.events += events
        for callback in list(self._callbacks):
            callback(events)


class FakeService:
    """The part of the fleet service that the dashboard uses; a test publishes."""

    def __init__(self, snapshot: FleetSnapshot | None = None) -> None:
        self.snapshot = snapshot or fleet()
        self.interval_s = 2.0
        self.is_paused = False
        self.origin = ""
        self.notices: tuple[str, ...] = ()
        self.polled: list[str | None] = []
        self.is_running = False
        self.history: FleetHistory | None = None
        self.events = FakeEvents()
        self.flags: FlagOperations | None = None
        self.trust: TrustOperations | None = None
        self.shells: ShellOperations | None = None
        self.ui_state: UiState | None = None
        self.routing: RouteDesk | None = None
        self.drains: DrainDesk | None = None
        self.profiles: ProfileBook | None = None
        self.pollers: tuple[MachinePoller, ...] = ()
        self._callbacks: list[Callable[[FleetSnapshot], None]] = []

    @property
    def subscriber_count(self) -> int:
        """Who listens."""
        return len(self._callbacks)

    def subscribe(self, callback: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def start(self) -> None:
        self.is_running = True

    async def stop(self) -> None:
        self.is_running = False

    def poll_now(self, name: str | None = None) -> None:
        self.polled.append(name)

    def set_interval(self, seconds: float) -> None:
        self.interval_s = seconds

    def set_paused(self, paused: bool) -> None:
        self.is_paused = paused
        self.snapshot = replace(self.snapshot, paused_at=NOW if paused else None)
        for callback in list(self._callbacks):
            callback(self.snapshot)

    def publish(self, *machines: MachineSnapshot) -> FleetSnapshot:
        """The next snapshot: these machines in place of those of the same name, new ones added."""
        by_name = {item.name: item for item in self.snapshot.machines} | {
            item.name: item for item in machines
        }
        return self.publish_exactly(tuple(by_name[name] for name in sorted(by_name)))

    def publish_exactly(self, machines: tuple[MachineSnapshot, ...]) -> FleetSnapshot:
        """The next snapshot has these machines and no others."""
        self.snapshot = replace(self.snapshot, seq=self.snapshot.seq + 1, machines=machines)
        for callback in list(self._callbacks):
            callback(self.snapshot)
        return self.snapshot


class Clock:
    """Time stands still until a test moves it."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
