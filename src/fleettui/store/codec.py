"""Snapshots <-> JSON text.

A dataclass is `{"": [tag, field, …]}`, Unknown is `{"": "its reason"}`, a tuple is a list; numbers, text,
None and mappings are themselves. json's C code does the walking: it calls us once per dataclass, not
once per field. `FORMAT` is a checksum of all class and field names; it goes into the seal of a stored text,
so that one of another version is never read as one of this. Its number counts changes that names do not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from zlib import crc32

from fleettui.model import gpu, machine, ollama_settings, readings, snapshot, sockets
from fleettui.model.unknown import Unknown
from fleettui.model.written import dump_json, read_float
from fleettui.store.json_text import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CLASSES: tuple[type, ...] = (
    machine.Machine,
    machine.DeclaredGpu,
    machine.NvidiaSmi,
    machine.SshSettings,
    machine.EngineEndpoint,
    machine.ConfigProblem,
    gpu.GpuReading,
    gpu.GpuCard,
    gpu.GpuProblem,
    gpu.GpuFault,
    gpu.MigInstance,
    gpu.CardCondition,
    gpu.XidEvent,
    gpu.GpuCondition,
    gpu.ProcessesReading,
    gpu.GpuProcess,
    readings.CpuReading,
    readings.MemoryReading,
    readings.MemoryLimit,
    readings.MemoryDetails,
    readings.DisksReading,
    readings.DiskUse,
    readings.NetReading,
    readings.NetInterface,
    sockets.SocketsReading,
    sockets.ListeningPort,
    sockets.FoundEngine,
    readings.SystemReading,
    readings.BlockDevice,
    ollama_settings.OllamaSettings,
    readings.EngineReading,
    readings.EngineTraits,
    readings.EngineLoad,
    readings.CopyUse,
    readings.CopyPlace,
    readings.LoadedModel,
    readings.InstalledModel,
    readings.ModelTraits,
    snapshot.MachineSnapshot,
    snapshot.FleetSnapshot,
    snapshot.LinkStatus,
    snapshot.HostKeyOffer,
    snapshot.SourceStatus,
    snapshot.MaintenanceFlag,
    snapshot.DrainFlag,
    snapshot.Reason,
)


def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(cls.__slots__)


def _checksum() -> int:
    names = "".join(f"{cls.__name__}:{','.join(_field_names(cls))};" for cls in _CLASSES)
    return crc32(f"9;{names}".encode())


FORMAT = _checksum()


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        get_one = attrgetter(names[0])
        return lambda value: (get_one(value),)
    return attrgetter(*names)


_FIELDS = {cls: (tag, _getter(_field_names(cls))) for tag, cls in enumerate(_CLASSES)}
_FIELD_COUNTS = tuple(len(_field_names(cls)) for cls in _CLASSES)
_TUPLES_AT = tuple(
    tuple(index for index, name in enumerate(_field_names(cls)) if "tuple[" in cls.__annotations__[name])
    for cls in _CLASSES  # annotations are text, so this costs nothing
)
_SNAPSHOT_TAG = _CLASSES.index(snapshot.MachineSnapshot)
_SNAPSHOT_FIELDS = _FIELDS[snapshot.MachineSnapshot][1]
_NOTHING = object()
_DOCUMENT_AT = _field_names(machine.Machine).index("document")
_MACHINE_TAG = _CLASSES.index(machine.Machine)

_SECTIONS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("machine", machine.Machine),
    ("link", snapshot.LinkStatus),
    ("gpu", (gpu.GpuReading, type(None))),
    ("processes", (gpu.ProcessesReading, type(None))),
    ("cpu", (readings.CpuReading, type(None))),
    ("memory", (readings.MemoryReading, type(None))),
    ("disks", (readings.DisksReading, type(None))),
    ("net", (readings.NetReading, type(None))),
    ("sockets", (sockets.SocketsReading, type(None))),
    ("system", (readings.SystemReading, type(None))),
    ("engines", tuple),
    ("places", (tuple, type(None))),
    ("found", (tuple, type(None))),
    ("sources", dict),
    ("reasons", tuple),
    ("maintenance", (snapshot.MaintenanceFlag, type(None))),
    ("drain", (snapshot.DrainFlag, type(None))),
)


def _fast_maker(cls: Any) -> Callable[[list[Any]], Any]:
    """Makes objects of a frozen slotted class 6x faster than its __init__ (0.5 against 2.9 us for a GpuCard).

    An open class of the same slots is filled by plain attribute stores and then becomes `cls`.
    """
    names = _field_names(cls)
    scope: dict[str, Any] = {
        "new": object.__new__,
        "cls": cls,
        "Open": type(cls.__name__, (), {"__slots__": names}),
    }
    targets = ", ".join(f"made.{name}" for name in names)
    body = f"def make(fields):\n made = new(Open)\n {targets}, = fields\n made.__class__ = cls\n return made"
    exec(body, scope)  # noqa: S102  (our own field names, as dataclasses does)
    make: Callable[[list[Any]], Any] = scope["make"]
    return make


_BY_THE_HUNDRED = (
    gpu.GpuCard,
    gpu.GpuProcess,
    readings.LoadedModel,
    readings.InstalledModel,
    snapshot.SourceStatus,
)
"""Classes of which a fleet holds hundreds; a fast maker costs 0.3 ms to make."""
_makers: dict[int, Callable[[list[Any]], Any]] = {}
"""Of each tag, made when it is first met."""


def _maker(tag: int) -> Callable[[list[Any]], Any]:
    cls: Any = _CLASSES[tag]
    make = _fast_maker(cls) if cls in _BY_THE_HUNDRED else lambda fields: cls(*fields)
    _makers[tag] = make
    return make


def encode(value: Any) -> str:
    """JSON text of a snapshot or any part of one."""
    return _encoder()(value)


def decode(text: str | bytes) -> Any:
    """The value of `encode`'s text; None for anything else. Never raises."""
    try:
        return read_json(text, object_hook=_Reader().build)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def decode_machine(text: str | bytes) -> snapshot.MachineSnapshot | None:
    """The machine snapshot in `text`; None for anything odd."""
    value = decode(text)
    if not isinstance(value, snapshot.MachineSnapshot):
        return None
    is_sound = all(isinstance(getattr(value, name), kinds) for name, kinds in _SECTIONS)
    return value if is_sound else None


def seal(text: str) -> str:
    """The text behind 8 hex digits that tell its format and whether it is whole; ASCII."""
    return f"{crc32(text.encode(), FORMAT):08x}{text}"


def unseal(sealed: object) -> str | None:
    """The text of `seal`; None for anything that is not whole or of another format."""
    if not isinstance(sealed, str):
        return None
    text = sealed[8:]
    return text if sealed[:8] == f"{crc32(text.encode(errors='replace'), FORMAT):08x}" else None


def _to_json(value: Any) -> Any:
    """What json cannot write by itself."""
    known = _FIELDS.get(type(value))
    if known is not None:
        tag, fields_of = known
        if tag != _MACHINE_TAG:
            return {"": [tag, *fields_of(value)]}
        fields = [tag, *fields_of(value)]
        # The operator's document may hold any key, so it travels as text of its own.
        fields[_DOCUMENT_AT + 1] = dump_json(value.document)
        return {"": fields}
    if type(value) is Unknown:
        return {"": value.reason}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


@cache
def _encoder() -> Callable[[Any], str]:
    """Made by whoever writes; a warm `--route` only reads."""
    from json import JSONEncoder, encoder

    usual = JSONEncoder(check_circular=False, separators=(",", ":"), default=_to_json)
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:  # not every Python has it
        return usual.encode
    # What JSONEncoder.encode does, but it makes this anew each time: as much as a short text itself takes.
    to_json = make(None, usual.default, encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
    return lambda value: "".join(to_json(value, 0))


class MachineEncoder:
    """Encodes machine snapshots one after another; what is the same object as last time is not encoded again.

    In steady state this halves the cost: the declared machine, disks and system stay, readings change.
    """

    __slots__ = ("_sections",)

    def __init__(self) -> None:
        self._sections: dict[str, list[tuple[Any, str]]] = {}

    def encode(self, machine_snapshot: snapshot.MachineSnapshot) -> str:
        """The text that `encode` gives."""
        values = _SNAPSHOT_FIELDS(machine_snapshot)
        name = machine_snapshot.machine.name
        known = self._sections.get(name)
        if known is None:
            known = self._sections[name] = [(_NOTHING, "")] * len(values)
        texts = [f'{{"":[{_SNAPSHOT_TAG}']
        for index, value in enumerate(values):
            old, text = known[index]
            if value is not old:
                text = _encoder()(value)
                known[index] = (value, text)
            texts.append(text)
        return ",".join(texts) + "]}"

    def forget(self, name: str) -> None:
        """Drops what is kept of a machine that is gone."""
        self._sections.pop(name, None)


class _Reader:
    """Builds the objects of one text; equal Unknowns become one object."""

    __slots__ = ("_unknowns",)

    def __init__(self) -> None:
        self._unknowns: dict[str, Unknown] = {}

    def build(self, mapping: dict[str, Any]) -> Any:
        content = mapping.get("")
        if content is None:
            return mapping
        if type(content) is str:
            unknown = self._unknowns.get(content)
            if unknown is None:
                unknown = self._unknowns[content] = Unknown(content)
            return unknown
        tag = content.pop(0)
        if len(content) != _FIELD_COUNTS[tag]:  # fields with a default would fill a gap in silence
            raise ValueError("another number of fields")
        for index in _TUPLES_AT[tag]:
            if type(content[index]) is list:
                content[index] = tuple(content[index])
        if tag == _MACHINE_TAG:
            content[_DOCUMENT_AT] = read_json(content[_DOCUMENT_AT], parse_float=read_float)
        make = _makers.get(tag) or _maker(tag)
        return make(content)
