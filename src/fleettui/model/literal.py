"""`Literal` without the typing module, which takes 4 ms to load: scripts call `--route` in loops.

Type checkers see the real thing. At run time its words are in `__args__`, and pydantic checks them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal
else:

    class Literal:
        """One of some words."""

        __slots__ = ("__args__",)

        def __class_getitem__(cls, words):
            literal = cls()
            literal.__args__ = words
            return literal

        def __get_pydantic_core_schema__(self, source, handler):
            """The real thing, of the same words."""
            import typing

            return handler(typing.Literal[self.__args__])


__all__ = ["Literal"]
