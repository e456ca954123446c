"""`Unknown`: the value of a number we did not read. Neither 0 nor None."""

from __future__ import annotations

from fleettui.model.record import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar, Union, final

    T = TypeVar("T")
else:

    def final(cls):
        """Mark a class as one without subclasses, for type checkers."""
        return cls


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that was not read. Prints as `–`, is null in JSON, sorts last, never enters a sum.

    There are no subclasses: where thousands of values are asked in one decision, `type(value) is Unknown`
    says the same as `isinstance` in half the time.
    """

    reason: str = "not read"
    """Why there is no value, in the words of the source where it gave any."""

    def __str__(self) -> str:
        return "–"


if TYPE_CHECKING:
    Maybe = Union[T, Unknown]
    """A value or the knowledge that there is none: `Maybe[float]`."""
else:  # the same without loading typing, which takes a warm --route 4 ms
    T = object

    class Maybe:
        """A value or the knowledge that there is none: `Maybe[float]`."""

        def __class_getitem__(cls, known):
            return known | Unknown


NOT_READ = Unknown("not read yet")


def known_or(value: Maybe[T], default: T) -> T:
    """The value, or `default` where it is unknown."""
    return default if isinstance(value, Unknown) else value


def total(values: Iterable[Maybe[float]]) -> Maybe[float]:
    """Sum of the known values; Unknown when none is known."""
    known = [value for value in values if not isinstance(value, Unknown)]
    return sum(known) if known else Unknown("no value known")


def sort_key(value: Maybe[float]) -> tuple[int, float]:
    """Ascending sort key in which Unknown comes after every real number."""
    return (1, 0.0) if isinstance(value, Unknown) else (0, value)
