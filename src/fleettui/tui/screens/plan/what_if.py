"""Machines and GPUs that are taken out of the plan, or put back into it, on this screen alone."""

from __future__ import annotations

from fleettui.model.placement import PlanGpu, PlanNode
from fleettui.model.record import replace

OFF = "off (what if)"
"""Why nothing is planned on a machine that was switched off here."""

Place = tuple[str, int | None]
"""(machine, number of the GPU); None: the whole machine."""
Nodes = tuple[PlanNode, ...]


class WhatIf:
    """What the operator wants to be otherwise; what is already so has no effect."""

    def __init__(self) -> None:
        self._wanted: dict[Place, bool] = {}
        """True: it is to take copies."""
        self._made_for: Nodes = ()
        self._made: Nodes = ()
        self._is_old = False

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def toggle(self, node: PlanNode, gpu: PlanGpu | None = None) -> None:
        """Turn around whether it takes copies; `node` and `gpu` as they are."""
        place = (node.name, None if gpu is None else gpu.index)
        takes_now = not node.unavailable if gpu is None else not gpu.disabled
        if place in self._wanted:
            del self._wanted[place]
        else:
            self._wanted[place] = not takes_now
        self._is_old = True

    def clear(self) -> None:
        """As it is."""
        self._wanted.clear()
        self._is_old = True

    def is_switched(self, name: str, index: int | None = None) -> bool:
        """It was switched here."""
        return (name, index) in self._wanted

    @property
    def words(self) -> list[str]:
        """`without ada`, `with bora/1`."""
        return [
            f"{'with' if takes else 'without'} {name}{'' if index is None else f'/{index}'}"
            for (name, index), takes in self._wanted.items()
        ]

    def apply(self, nodes: Nodes) -> Nodes:
        """The fleet as it would be; the same objects while nothing changed."""
        if not self._wanted:
            return nodes
        if nodes is not self._made_for or self._is_old:
            self._made_for, self._is_old = nodes, False
            self._made = tuple(map(self._node, nodes))
        return self._made

    def _node(self, node: PlanNode) -> PlanNode:
        wanted = {index: takes for (name, index), takes in self._wanted.items() if name == node.name}
        if not wanted:
            return node
        unavailable = node.unavailable
        if None in wanted:
            unavailable = "" if wanted[None] else unavailable or OFF
        gpus = tuple(
            replace(gpu, disabled=not wanted[gpu.index]) if gpu.index in wanted else gpu for gpu in node.gpus
        )
        return replace(node, unavailable=unavailable, gpus=gpus)
