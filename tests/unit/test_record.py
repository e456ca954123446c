"""Records behave as the frozen, slotted dataclasses that type checkers take them for."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest

from fleettui.model.record import dataclass, field, replace
from fleettui.model.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Point:
    """A record with all kinds of fields."""

    x: int
    y: int = 2
    tags: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass(frozen=True, slots=True)
class Single:
    value: str


def test_values_defaults_and_properties() -> None:
    point = Point(1)
    assert (point.x, point.y, point.tags, point.total) == (1, 2, {}, 3)
    assert Point(1).tags is not point.tags
    assert Point(x=4, y=5).total == 9
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1, z=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("count", [1, 1000])
def test_first_records_and_later_ones_are_alike(count: int) -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        x: int
        y: int = 2
        tags: dict[str, int] = field(default_factory=dict)

    for _ in range(count):
        fresh = Fresh(1, tags={"a": 1})
        assert (fresh.x, fresh.y, fresh.tags) == (1, 2, {"a": 1})
    assert type(fresh) is Fresh
    assert Fresh(1).tags is not Fresh(1).tags
    with pytest.raises(AttributeError):
        fresh.x = 5  # type: ignore[misc]
    for wrong in ({}, {"y": 1}, {"x": 1, "z": 1}):
        with pytest.raises(TypeError, match="__init__"):
            Fresh(**wrong)
    for given in ((1, 2, {}, 4), (1, 2, {}, 4, 5)):
        with pytest.raises(TypeError, match="__init__"):
            Fresh(*given)
    with pytest.raises(TypeError, match="multiple values"):
        Fresh(1, x=1)


def test_the_signature_is_that_of_the_fields() -> None:
    assert str(inspect.signature(Single)) == "(value: 'str') -> 'None'"


def test_nothing_can_be_assigned_deleted_or_added() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 5  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x
    with pytest.raises(AttributeError):
        point.other = 1  # type: ignore[attr-defined]


def test_equality_hash_and_text() -> None:
    assert Point(1) == Point(1)
    assert Point(1) != Point(2)
    assert Single("a") != Unknown("a")
    assert hash(Single("a")) == hash(Single("a"))
    assert repr(Point(1)) == "Point(x=1, y=2, tags={})"
    with pytest.raises(TypeError):
        hash(Point(1))


def test_replace_makes_a_changed_record() -> None:
    assert replace(Point(1), y=7) == Point(1, 7)
    assert replace(Single("a"), value="b") == Single("b")
    with pytest.raises(TypeError):
        replace(Point(1), z=7)


def test_the_tools_of_dataclasses_work_on_records() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "tags"]
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "tags": {}}
    assert dataclasses.replace(Point(1), y=9) == Point(1, 9)


def test_records_are_copied_and_pickled() -> None:
    point = Point(1, tags={"a": 1})
    assert copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 - our own bytes


def test_records_match_by_position() -> None:
    match Single("a"):
        case Single(value):
            assert value == "a"


def test_options_that_are_not_kept_are_refused() -> None:
    with pytest.raises(TypeError):
        dataclass(frozen=False, slots=True)
