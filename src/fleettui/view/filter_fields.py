"""What the filter language can ask of a machine: one entry for each field. docs/filter.md is made from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from fleettui.model.machine import EngineKind
from fleettui.model.readings import EngineReading
from fleettui.model.snapshot import DrainState, Health, MachineSnapshot, Trust
from fleettui.model.unknown import Maybe, Unknown, total
from fleettui.model.vram import free_vram, has_no_gpu, vram_sum
from fleettui.view.figures import (
    fullest_disk_percent,
    hottest_c,
    is_answering,
    mean_utilisation,
    net_rates,
    percent_of,
    total_power_w,
)

Texts = Maybe[tuple[str, ...]]
ReadTexts = Callable[[MachineSnapshot], Texts]
ReadNumber = Callable[[MachineSnapshot, float], Maybe[float]]
"""(machine, now) -> value in the field's unit."""
Colon = Literal["whole", "contains", "model"]
"""What `:` asks of a text: to be it, to have it somewhere, or to be that model or one of its family."""
Unit = Literal["GiB", "%", "s", "°C", "W", "MB/s", "count"]

NOT_ANSWERING = Unknown("the machine does not answer")
_KIB_IN_GIB = 1 << 20


class Field(NamedTuple):
    """One field. It has texts, or a number; `choices` are all the texts it can have."""

    name: str
    meaning: str
    """For docs and help."""
    example: str
    texts: ReadTexts | None = None
    number: ReadNumber | None = None
    colon: Colon = "whole"
    choices: tuple[str, ...] = ()
    unit: Unit = "count"
    percent: ReadNumber | None = None
    """What a value with `%` is compared with, where the number itself is no percentage."""

    @property
    def kind(self) -> Literal["text", "choice", "number"]:
        """Which operators it takes."""
        if self.number is not None:
            return "number"
        return "choice" if self.choices else "text"


def _words(literal: Any) -> tuple[str, ...]:
    return tuple(literal.__args__)


def _now_only(read: ReadTexts) -> ReadTexts:
    return lambda s: read(s) if is_answering(s) else NOT_ANSWERING


def _number(read: Callable[[MachineSnapshot], Maybe[float]]) -> ReadNumber:
    return lambda s, _: read(s) if is_answering(s) else NOT_ANSWERING


def _gib(mib: Maybe[int]) -> Maybe[float]:
    return mib if isinstance(mib, Unknown) else mib / 1024


def _vram_gib(snapshot: MachineSnapshot, *, is_used: bool) -> Maybe[float]:
    """A machine without GPUs has 0 GiB, as `free` says too."""
    if has_no_gpu(snapshot):
        return 0.0
    sums = vram_sum(snapshot)
    return _gib(sums.used_mib if is_used else sums.total_mib)


def _vram_share(snapshot: MachineSnapshot, *, is_free: bool) -> Maybe[float]:
    sums = vram_sum(snapshot)
    return percent_of(sums.free_mib if is_free else sums.used_mib, sums.total_mib)


def _ram_gib(snapshot: MachineSnapshot, *, is_free: bool) -> Maybe[float]:
    memory = snapshot.memory
    if memory is None:
        return Unknown("memory not read yet")
    kib = memory.free_kib if is_free else memory.total_kib
    return kib if isinstance(kib, Unknown) else kib / _KIB_IN_GIB


def _ram_share(snapshot: MachineSnapshot, *, is_free: bool) -> Maybe[float]:
    memory = snapshot.memory
    if memory is None:
        return Unknown("memory not read yet")
    return percent_of(memory.free_kib if is_free else memory.used_kib, memory.total_kib)


def _engines_read(snapshot: MachineSnapshot, read: Callable[[EngineReading], Maybe[Any]]) -> Texts:
    """Names of models on all engines that told theirs; Unknown where none did."""
    known = [part for engine in snapshot.engines if not isinstance(part := read(engine), Unknown)]
    if not known:
        return Unknown("no engine answered")
    return tuple([model.name for part in known for model in part])


def loaded_names(snapshot: MachineSnapshot) -> Texts:
    """Names of the copies."""
    return _engines_read(snapshot, lambda engine: engine.loaded) if is_answering(snapshot) else NOT_ANSWERING


def model_names(snapshot: MachineSnapshot) -> tuple[str, ...]:
    """Models that are loaded or declared: what words look at."""
    loaded = loaded_names(snapshot)
    declared = snapshot.machine.models
    return declared if isinstance(loaded, Unknown) else (*loaded, *declared)


def _gpu_names(snapshot: MachineSnapshot) -> Texts:
    """Measured names; those of the file while there are none."""
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    names = tuple([card.name for card in cards if not isinstance(card.name, Unknown)])
    if names:
        return names
    declared = snapshot.machine.gpus
    return Unknown("GPUs not known") if declared is None else tuple([gpu.model for gpu in declared])


def _one(value: Maybe[str]) -> Texts:
    return value if isinstance(value, Unknown) else (value,)


def _driver(snapshot: MachineSnapshot) -> Texts:
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    known = {card.driver for card in cards if not isinstance(card.driver, Unknown)}
    return tuple(sorted(known)) if known else Unknown("driver not known")


def _users(snapshot: MachineSnapshot) -> Texts:
    if snapshot.processes is None:
        return Unknown("processes not read yet")
    return tuple({p.user for p in snapshot.processes.processes if not isinstance(p.user, Unknown)})


def _notes(snapshot: MachineSnapshot) -> Texts:
    maintenance, drain = snapshot.maintenance, snapshot.drain
    texts = [reason.text for reason in snapshot.reasons]
    texts += [flag.reason for flag in (maintenance, drain) if flag is not None and flag.reason]
    written = snapshot.machine.document.get("note")
    return (*texts, written) if isinstance(written, str) else tuple(texts)


def _drain_words(snapshot: MachineSnapshot) -> tuple[str, ...]:
    if snapshot.drain is None:
        return ("off",)
    state = snapshot.drain.state
    return ("on", state) if state == "drained" else ("on", state, "draining")


def _age(snapshot: MachineSnapshot, now: float) -> Maybe[float]:
    age_s = snapshot.age_s(now)
    return Unknown("never heard") if age_s is None else age_s


def _expires(snapshot: MachineSnapshot, now: float) -> Maybe[float]:
    """Seconds until the next copy expires."""
    ends = [
        copy.expires_at - now
        for copy in (snapshot.loaded if is_answering(snapshot) else ())
        if not copy.is_pinned and not isinstance(copy.expires_at, Unknown)
    ]
    return max(0.0, min(ends)) if ends else Unknown("nothing expires")


def _count_loaded(snapshot: MachineSnapshot) -> Maybe[float]:
    names = loaded_names(snapshot)
    return names if isinstance(names, Unknown) else len(names)


def _count_gpus(snapshot: MachineSnapshot) -> Maybe[float]:
    if snapshot.gpu is not None and snapshot.gpu.cards:
        return len(snapshot.gpu.cards)
    declared = snapshot.machine.gpus
    return Unknown("GPUs not known") if declared is None else len(declared)


def _bytes_mb(snapshot: MachineSnapshot) -> Maybe[float]:
    rate = total(net_rates(snapshot))
    return rate if isinstance(rate, Unknown) else rate / 1e6


FIELDS: tuple[Field, ...] = (
    Field("name", "name of the machine", "name~=pve", lambda s: (s.machine.name,), colon="contains"),
    Field("host", "`network.hostname`", "host~=.lan", lambda s: (s.machine.hostname,), colon="contains"),
    Field("role", "`role` of the file", "role=gpu-host", lambda s: (s.machine.role,)),
    Field("tag", "one of the tags", "tag:edge", lambda s: s.machine.tags),
    Field("health", "health; `unknown` before the first poll", "health!=healthy", lambda s: (s.health,),
          choices=_words(Health)),
    Field("trust", "what was decided about the host key", "trust:pending", lambda s: (s.trust,),
          choices=_words(Trust)),
    Field("maintenance", "maintenance flag", "maintenance:on",
          lambda s: ("off" if s.maintenance is None else "on",), choices=("on", "off")),
    Field("drain", "drain flag; `draining` is on and not drained", "drain:draining", _drain_words,
          choices=("on", "off", "draining", *_words(DrainState))),
    Field("note", "reasons, reasons of flags, `note` of the file", 'note~="fan swap"', _notes,
          colon="contains"),
    Field("reason", "codes of reasons, as in health.md", "reason~=xid",
          lambda s: tuple([reason.code for reason in s.reasons]), colon="contains"),
    Field("age", "since when it was last heard", "age>10s", number=_age, unit="s"),
    Field("free", "free VRAM, all usable GPUs; with `%` its share", "free>24",
          number=_number(lambda s: _gib(free_vram(s).sum_mib)), unit="GiB",
          percent=_number(lambda s: _vram_share(s, is_free=True))),
    Field("gpufree", "free VRAM of the GPU with most of it", "gpufree>=20GiB",
          number=_number(lambda s: _gib(free_vram(s).best_mib)), unit="GiB"),
    Field("used", "used VRAM, all GPUs; with `%` its share", "used>90%",
          number=_number(lambda s: _vram_gib(s, is_used=True)), unit="GiB",
          percent=_number(lambda s: _vram_share(s, is_free=False))),
    Field("vram", "size of the VRAM, all GPUs; with `%` how full it is", "vram>=40",
          number=_number(lambda s: _vram_gib(s, is_used=False)), unit="GiB",
          percent=_number(lambda s: _vram_share(s, is_free=False))),
    Field("gpu", "names of the GPUs", "gpu~=4090", _gpu_names, colon="contains"),
    Field("gpus", "how many GPUs", "gpus>=2", number=lambda s, _: _count_gpus(s)),
    Field("util", "utilisation, mean over the GPUs", "util<5", number=_number(mean_utilisation), unit="%"),
    Field("temp", "the hottest GPU", "temp>80", number=_number(hottest_c), unit="°C"),
    Field("power", "power of all GPUs", "power>300W", number=_number(total_power_w), unit="W"),
    Field("driver", "version of the GPU driver", "driver~=580", _now_only(_driver), colon="contains"),
    Field("model", "a model that is loaded or declared", "model~=qwen", model_names, colon="model"),
    Field("loaded", "a model that is loaded", "loaded:llama3.1", loaded_names, colon="model"),
    Field("installed", "a model on the disk", "installed:phi3",
          _now_only(lambda s: _engines_read(s, lambda engine: engine.installed)), colon="model"),
    Field("declared", "a model that the file declares", "declared~=embed", lambda s: s.machine.models,
          colon="model"),
    Field("models", "how many copies are loaded", "models=0", number=lambda s, _: _count_loaded(s)),
    Field("expires", "time until the next copy expires", "expires<5m", number=_expires, unit="s"),
    Field("engine", "kind of an engine", "engine:ollama", lambda s: tuple(dict.fromkeys(
          (*(e.kind for e in s.machine.engines), *(e.kind for e in s.engines)))), choices=_words(EngineKind)),
    Field("user", "owner of a GPU process", "user=mia", _now_only(_users)),
    Field("cpu", "processor load", "cpu>80", unit="%",
          number=_number(lambda s: Unknown() if s.cpu is None else s.cpu.busy_percent)),
    Field("ram", "size of the main memory; with `%` how full it is", "ram>90%", unit="GiB",
          number=_number(lambda s: _ram_gib(s, is_free=False)),
          percent=_number(lambda s: _ram_share(s, is_free=False))),
    Field("ramfree", "main memory that may still be used; with `%` its share", "ramfree>64", unit="GiB",
          number=_number(lambda s: _ram_gib(s, is_free=True)),
          percent=_number(lambda s: _ram_share(s, is_free=True))),
    Field("disk", "how full the fullest disk is", "disk>90", number=_number(fullest_disk_percent), unit="%"),
    Field("net", "bytes received and sent", "net>100", number=_number(_bytes_mb), unit="MB/s"),
    Field("os", "system", "os~=ubuntu", _now_only(lambda s: _one(s.system.os) if s.system else Unknown()),
          colon="contains"),
)  # fmt: skip
"""In the order of the page."""

BY_NAME = {field.name: field for field in FIELDS}

FILE_PREFIX = "file."
_FILE_MEANING = "any key of the machine file, by its path"


def file_field(name: str) -> Field:
    """The field of `file.rack` or `file.hardware.ram_gb`: texts that compare as numbers where they are."""
    path = tuple(name[len(FILE_PREFIX) :].split("."))
    return Field(
        name, _FILE_MEANING, "file.rack=r12", lambda s: _written(s.machine.document, path), colon="contains"
    )


def _written(value: Any, path: tuple[str, ...]) -> Texts:
    """The texts at a path of a document; lists are looked through."""
    for key in path:
        if isinstance(value, list | tuple):
            value = [item.get(key) for item in value if isinstance(item, dict)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return Unknown("not in the file")
    items = value if isinstance(value, list | tuple) else (value,)
    texts = [_text(item) for item in items if isinstance(item, str | int | float | bool)]
    return tuple(texts) if texts else Unknown("not in the file")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def find_field(name: str) -> Field | None:
    """The field of that name, in any case."""
    lowered = name.lower()
    field = BY_NAME.get(lowered)
    if field is None and lowered.startswith(FILE_PREFIX) and len(name) > len(FILE_PREFIX):
        return file_field(FILE_PREFIX + name[len(FILE_PREFIX) :])
    return field
