"""Frozen, slotted records: `dataclass(frozen=True, slots=True)` at a fraction of its price.

`dataclasses` loads inspect (20 ms) and compiles six methods for each class (1 ms); a warm `--route`, which
scripts call in loops, defines forty and makes records of ten. A record is also made in half the time, and a
poll makes hundreds. Type checkers see the real thing. `dataclasses.fields` and `asdict` work on records too.
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, replace
    from typing import Any
else:

    def field(*, default_factory):
        """A field whose default is made anew for each record."""
        return _Factory(default_factory)

    def dataclass(*, frozen, slots):
        """Make records of a class. Both options must be True; they are there for type checkers."""
        if not (frozen and slots):
            raise TypeError("records are frozen and slotted")
        return _make_record

    def replace(record, /, **changes):
        """A record like `record` with some fields changed. Raises TypeError for an unknown field."""
        cls = type(record)
        places = _PLACES.get(cls)
        if places is None:
            places = _PLACES[cls] = {name: place for place, name in enumerate(cls.__slots__)}
        values = list(record._values(record))
        try:
            for name, value in changes.items():
                values[places[name]] = value
        except KeyError as error:
            raise TypeError(f"{cls.__name__} has no field {error}") from None
        return cls(*values)

    _PLACES = {}
    """Class -> name of a field -> its place."""


__all__ = ["dataclass", "field", "replace"]

_MISSING: Any = object()


class _Factory:
    """Makes the default of a field for each record."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class _Fields:
    """`__dataclass_fields__`, made when somebody asks for it."""

    def __get__(self, record: Any, cls: Any) -> dict[str, Any]:
        import dataclasses

        made: dict[str, Any] = {}
        for name in cls.__slots__:
            default = cls._defaults.get(name, _MISSING)
            if default is _MISSING:
                one: Any = dataclasses.field()
            elif isinstance(default, _Factory):
                one = dataclasses.field(default_factory=default.make)
            else:
                one = dataclasses.field(default=default)
            one.name, one.type = name, cls.__annotations__[name]
            one._field_type = vars(dataclasses)["_FIELD"]
            made[name] = one
        cls.__dataclass_fields__ = made
        return made


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise AttributeError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise AttributeError(f"cannot delete field {name!r}")


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is self.__class__:
        return self._values(self) == self._values(other)
    return NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _show(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({shown})"


def _get_state(self: Any) -> Any:
    return self._values(self)


def _set_state(self: Any, state: Any) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)


_UNCOMPILED_RECORDS = 200
"""Compiling `__init__` pays from some hundred records on; a warm `--route` makes few of most classes."""


class _FirstInit:
    """`__init__` of the first records of a class, until a compiled one takes its place."""

    __slots__ = ("fill", "left")

    def __init__(self) -> None:
        self.left = _UNCOMPILED_RECORDS
        self.fill: Any = None

    def __get__(self, record: Any, cls: Any) -> Any:
        if record is None:
            return _compiled_init(cls)
        if not self.left:
            return _compiled_init(cls).__get__(record)
        self.left -= 1
        if self.fill is None:
            self.fill = _uncompiled_init(cls)
        return self.fill.__get__(record)


def _uncompiled_init(cls: Any) -> Callable[..., None]:
    names, defaults, opened = cls.__slots__, cls._defaults, _open_class(cls)
    made_anew = [name for name, default in defaults.items() if isinstance(default, _Factory)]

    def __init__(self: Any, /, *given: Any, **named: Any) -> None:
        chosen = dict(zip(names, given), **named)  # noqa: B905 - more values than fields are told below
        values = {**defaults, **chosen}
        if len(values) != len(names) or len(chosen) != len(given) + len(named):
            _compiled_init(cls)(self, *given, **named)  # raises the TypeError that everybody knows
            return
        for name in made_anew:
            if name not in chosen:
                values[name] = defaults[name].make()
        _become(self, opened)
        any(
            map(setattr, repeat(self), values, values.values())
        )  # setattr gives None: a loop without bytecode
        self.__class__ = cls

    return __init__


_become = vars(object)["__class__"].__set__


def _open_class(cls: Any) -> Any:
    """A class of the same slots that can be assigned to.

    A record is one while it is filled: plain stores take a third of the time of `object.__setattr__`. As a
    subclass without slots of its own it has the layout of the record at a glance; of two classes that are
    strangers Python compares the names of all slots, each time: a fifth of the price of a large record.
    """
    space = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(cls.__name__, (cls,), space)


def _compiled_init(cls: Any) -> Any:
    """The compiled `__init__`, from now on that of the class."""
    cls.__init__ = _make_init(cls)
    return cls.__init__


_METHODS = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _show,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__dataclass_fields__": _Fields(),
}


def _make_record(cls: Any) -> Any:
    space = {**_METHODS, **cls.__dict__}
    del space["__dict__"], space["__weakref__"]
    names = tuple(space.get("__annotations__", ()))
    space["_defaults"] = {name: space.pop(name) for name in names if name in space}
    space["__slots__"] = space["__match_args__"] = names
    space["_values"] = _values_getter(names)
    space["__init__"] = _FirstInit()
    return type(cls.__name__, cls.__bases__, space)


def _values_getter(names: tuple[str, ...]) -> Any:
    """Function of a record that gives the tuple of its values."""
    get: Any = attrgetter(*names)
    return staticmethod(lambda record: (get(record),)) if len(names) == 1 else get


def _make_init(cls: Any) -> Callable[..., None]:
    names, defaults = cls.__slots__, cls._defaults
    arguments, body = [], []
    for name in names:
        default = defaults.get(name, _MISSING)
        arguments.append(name if default is _MISSING else f"{name}=D[{name!r}]")
        value = (
            f"{name}.make() if {name}.__class__ is F else {name}" if isinstance(default, _Factory) else name
        )
        body.append(f"  self.{name} = {value}")
    source = "\n".join(
        [
            "def outer(C, O, D, F, become):",
            f" def __init__(self, {', '.join(arguments)}):",
            "  become(self, O)",
            *body,
            "  self.__class__ = C",
            " return __init__",
        ]
    )
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - field names of our own classes, as dataclasses does it
    init: Callable[..., None] = scope["outer"](cls, _open_class(cls), defaults, _Factory, _become)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**cls.__annotations__, "return": "None"}
    init.__module__ = cls.__module__
    return init
