"""The state of one machine while it is polled: takes frames and answers in, gives snapshots out."""

from __future__ import annotations

from fleettui.fleet.amd_record import AmdRecord
from fleettui.fleet.closed_link import NotApproved
from fleettui.fleet.drain_watch import DrainWatch
from fleettui.fleet.engine_key import read_key
from fleettui.fleet.engine_record import EngineRecord
from fleettui.fleet.facts_record import FactsRecord
from fleettui.fleet.gpu_record import AskedFields, GpuRecord
from fleettui.fleet.places import Places
from fleettui.fleet.source_record import SourceRecord
from fleettui.fleet.verdict import Verdict
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.profile import Profile
from fleettui.model.record import replace
from fleettui.model.snapshot import (
    DrainFlag,
    LinkStatus,
    MachineSnapshot,
    MaintenanceFlag,
    Reason,
    SourceStatus,
    Trust,
)
from fleettui.model.sockets import FoundEngine
from fleettui.net.errors import LinkError
from fleettui.probes.frames import Frame


class MachineRecord:
    """Readings, source states and link state of one machine; `freeze` makes the immutable snapshot."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.facts = FactsRecord()
        self.gpu = GpuRecord()
        self.amd = AmdRecord()
        self.engines = {
            endpoint: EngineRecord(
                endpoint, machine.engines, read_key(endpoint, machine.engines, machine.config_file)
            )
            for endpoint in machine.engines
        }
        self._engine_list = tuple(self.engines.values())
        self.found: tuple[FoundEngine, ...] | None = None
        """Engines that the file does not name; None: nobody looked yet."""
        self._sources: dict[str, SourceRecord] = {
            **self.facts.sources,
            **self.gpu.sources,
            **self.amd.sources,
            **{engine.name: engine.source for engine in self.engines.values()},
        }
        self.trust: Trust = "approved"
        self.maintenance: MaintenanceFlag | None = None
        """What the operator set; never changed by what the machine does."""
        self.drain: DrainFlag | None = None
        """As it is stored; the snapshot has it as the machine shows it."""
        self.profile: Profile | None = None
        """What it was made of when that was measured last."""
        self.link = LinkStatus()
        self.last_seen: float | None = None
        self._verdict = Verdict()
        self._drain_watch = DrainWatch()
        self._places = Places()
        self.fleet_notes: tuple[Reason, ...] = ()
        """What a look at the whole fleet tells of this machine."""
        self._seq = 0

    # -- engines that the file does not name ----------------------------------------------------------

    def adopt(self, endpoint: EngineEndpoint) -> EngineRecord:
        """Keep an engine that was found like one that the file names."""
        engine = EngineRecord(endpoint, (*self.machine.engines, *self.engines, endpoint))
        self.engines[endpoint] = engine
        self._sources[engine.name] = engine.source
        self._engine_list = tuple(self.engines.values())
        return engine

    def release(self, endpoint: EngineEndpoint) -> None:
        """It is gone: nobody declared it, so nobody misses it."""
        engine = self.engines.pop(endpoint)
        del self._sources[engine.name]
        self._engine_list = tuple(self.engines.values())

    def _stands_aside(self, engine: EngineRecord) -> bool:
        """The engine that the file only stands for never answered, and found ones take its place."""
        return (
            len(self.engines) > len(self.machine.engines)
            and engine.endpoint in self.machine.engines
            and not engine.has_answered
        )

    # -- the link -----------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        return self.link.state == "up"

    @property
    def waits_for_operator(self) -> bool:
        """The link failed in a way that no retry mends: key, login or settings."""
        return self.link.state == "failed" and self.link.next_try_at is None

    def link_connecting(self, now: float) -> None:
        """An attempt began. While attempts fail the last failure stays in sight."""
        if self.link.state != "failed":
            self.link = LinkStatus("connecting", since=now)

    def link_up(self, address: str | None, now: float) -> None:
        """Logged in; the loops run."""
        self.link = LinkStatus("up", since=now, address=address)
        self.trust = "approved"
        self.facts.begin_connection()

    def link_failed(self, error: LinkError, next_try_at: float | None, now: float) -> None:
        """An attempt failed, or the link was lost."""
        since = self.link.since if self.link.state == "failed" else now
        self.link = LinkStatus(
            "failed", error.stage, error.text, since, next_try_at, self.link.address, error.offer
        )
        if isinstance(error, NotApproved):
            self.trust = error.trust
        elif error.stage == "host key" and error.offer is not None:
            self.trust = "key_changed" if error.offer.expected else "pending"
        for source in self._sources.values():
            source.forget_question()

    # -- answers ------------------------------------------------------------------------------------

    def take_facts(self, frame: Frame, now: float) -> None:
        """A frame of the fact channel."""
        self.last_seen = now
        self.facts.take(frame, now)

    def take_gpu(self, frame: Frame, now: float, asked: AskedFields | None = None) -> bool:
        """A frame of the GPU channel; False: ask the cards again at once, without a refused field."""
        is_taken = self.gpu.take(frame, now, is_gpu_expected=self.machine.declares_gpus, asked=asked)
        self.amd.take(frame, now, self.machine, self.gpu.reading)
        return is_taken

    def restart_questions(self, now: float) -> None:
        """The clock jumped: what is outstanding counts as asked now."""
        for source in self._sources.values():
            source.restart_question(now)

    def note_lateness(self, now: float, interval_s: float) -> bool:
        """Turn sources late whose answer is overdue; True if one did."""
        is_late = False
        for source in self._sources.values():
            if source.asked_at is not None:
                is_late |= source.mark_late(now, interval_s * 0.9, "no answer yet")
        return is_late

    # -- out ----------------------------------------------------------------------------------------

    def freeze(self, now: float, interval_s: float, utc_offset_s: int = 0) -> MachineSnapshot:
        """The snapshot of this moment, judged; times in its reasons are local by `utc_offset_s`."""
        self._seq += 1
        facts = self.facts
        gpu = self.amd.join(self.gpu.with_memory(facts.memory))
        processes = self.amd.join_processes(self.gpu.processes)
        engines = tuple([item.reading for item in self._engine_list if item.reading is not None])
        if len(self._engine_list) > len(self.machine.engines):
            engines = tuple(
                item.reading
                for item in self._engine_list
                if item.reading is not None and not self._stands_aside(item)
            )
        snapshot = MachineSnapshot(
            machine=self.machine,
            trust=self.trust,
            link=self.link,
            gpu=gpu,
            processes=processes,
            cpu=facts.cpu,
            memory=facts.memory,
            disks=facts.disks,
            net=facts.net,
            sockets=facts.sockets,
            system=facts.system,
            engines=engines,
            places=self._places.find(gpu, processes, engines),
            found=self.found,
            sources=self._statuses(),
            health=self._verdict.health,
            reasons=self._verdict.reasons,
            last_seen=self.last_seen,
            maintenance=self.maintenance,
            seq=self._seq,
        )
        if self.drain is not None:
            snapshot = replace(snapshot, drain=self._watch_drain(self.drain, snapshot, now, utc_offset_s))
        judged = self._verdict.judge(
            snapshot, self._sources.values(), now, interval_s, utc_offset_s, self.profile
        )
        if not self.fleet_notes or judged.trust != "approved" or judged.health in {"offline", "unknown"}:
            return judged
        return replace(judged, reasons=(*judged.reasons, *self.fleet_notes))

    def _watch_drain(
        self, stored: DrainFlag, snapshot: MachineSnapshot, now: float, utc_offset_s: int
    ) -> DrainFlag | None:
        """The flag with the state that the engines show."""
        has_found = len(self._engine_list) > len(self.machine.engines)
        told = [
            (item.reading, item.source.read_at)
            for item in self._engine_list
            if not (has_found and self._stands_aside(item))
        ]
        return self._drain_watch.judge(stored, told, snapshot, now, utc_offset_s)

    def _statuses(self) -> dict[str, SourceStatus]:
        statuses = {name: source.freeze() for name, source in self._sources.items()}
        if len(self._engine_list) > len(self.machine.engines):
            for engine in self._engine_list:
                if self._stands_aside(engine):
                    del statuses[engine.name]
        return self.amd.join_statuses(statuses, self.gpu.reading)
