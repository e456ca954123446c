"""roles.yaml as pydantic sees it. Strict types, unknown keys let through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fleettui.config.catalog_schema import Capability, LoosePart, Names
from fleettui.config.machine_schema import Text, refuse


def _at_least(least: int, example: str) -> Callable[[int], int]:
    def check(value: int) -> int:
        if value < least:
            raise refuse(f"must be a whole number from {least} on; write `{example}`")
        return value

    return check


MOST_COPIES = 10_000
"""Of one role: a slip of the keyboard must not cost all memory."""


def _check_count(value: int) -> int:
    if value > MOST_COPIES:
        raise refuse(f"must be {MOST_COPIES} at most; write `count: 2`")
    return value


def _check_size(value: float) -> float:
    if not 0 <= value < float("inf"):
        raise refuse("must be a number of GiB, 0 or more; write for example 16")
    return value


def _check_priority(value: float) -> float:
    if not abs(value) < float("inf"):
        raise refuse("must be a number; write for example `priority: 10`")
    return value


Size = Annotated[float, AfterValidator(_check_size), Field(json_schema_extra={"minimum": 0})]
Priority = Annotated[float, AfterValidator(_check_priority)]
Count = Annotated[
    int,
    AfterValidator(_at_least(0, "count: 2")),
    AfterValidator(_check_count),
    Field(json_schema_extra={"minimum": 0, "maximum": MOST_COPIES}),
]
Slots = Annotated[int, AfterValidator(_at_least(1, "slots: 4")), Field(json_schema_extra={"minimum": 1})]
Gpus = Annotated[int, AfterValidator(_at_least(1, "gpus: 2")), Field(json_schema_extra={"minimum": 1})]


class NeedsPart(LoosePart):
    """`needs` of a role: what a GPU must have, or a machine."""

    engine: Annotated[Names | None, Field(description="engines, any of them; left out: any at all")] = None
    min_vram_gb: Annotated[Size | None, Field(description="GiB, on each GPU of a copy")] = None
    min_cc: Annotated[Capability | None, Field(description="lowest compute capability")] = None
    max_cc: Annotated[Capability | None, Field(description="highest compute capability")] = None
    gpu: Annotated[bool | None, Field(description="false: its copies run on CPUs")] = None
    min_ram_gb: Annotated[Size | None, Field(description="GiB, reserved for a copy on a CPU")] = None
    gpus: Annotated[Gpus | None, Field(description="GPUs of one machine for each copy")] = None


class RolePart(LoosePart):
    """An entry of `roles`."""

    needs: NeedsPart | None = None
    prefer: Annotated[
        Literal["largest", "smallest_fitting"] | None, Field(description="which of the GPUs that fit")
    ] = None
    count: Annotated[Count | None, Field(description="copies; 0: switched off")] = None
    slots: Annotated[Slots | None, Field(description="requests at once on a copy")] = None
    priority: Annotated[Priority | None, Field(description="lower goes first")] = None
    share_with: Annotated[Text | None, Field(description="role on whose GPU its copies run too")] = None
    cpu_fallback: Annotated[bool | None, Field(description="a copy without a GPU may run on a CPU")] = None


class ListedRolePart(RolePart):
    """An entry of `roles` where that is a list."""

    name: Text


class RolesPart(LoosePart):
    """The whole file."""

    roles: dict[Text, RolePart | None] | list[ListedRolePart] | None = None
