"""Looks on while a fleet is drained, by the engines' own HTTP and apart from the program under test.

Two witnesses. The observer asks every engine for `/api/ps` a few dozen times a second, as any client could.
The engines' own record says when a copy became ready to answer and when it was gone; it has no gaps and knows
a copy that is listed while it still loads.
"""

from __future__ import annotations

import http.client
import json
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from fleettui.demo.launcher import DemoFleet

PERIOD_S = 0.03
LIMIT_S = 60.0
"""For an answer: one that comes late, on a machine with much else to do, is no absence."""


@dataclass(slots=True)
class Absence:
    """Looks in a row at one machine that did not show a model."""

    first: float
    last: float


@dataclass(slots=True)
class Sightings:
    """What was seen of one machine: for each model the spells without it."""

    spells: dict[str, list[Absence]] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    looks: int = 0

    def take(self, at: float, present: frozenset[str], models: Iterable[str]) -> None:
        """One look, begun at `at`."""
        self.looks += 1
        for model in models:
            spells = self.spells.setdefault(model, [])
            if model in present:
                continue
            if spells and model not in self.present:
                spells[-1].last = at
            else:
                spells.append(Absence(at, at))
        self.present = present


Listing = Callable[[dict[str, Any]], Iterable[str]]
"""From what an engine answers to the models that are ready there."""


def ollama_models(document: dict[str, Any]) -> Iterable[str]:
    """Of `/api/ps`."""
    return (item["name"] for item in document["models"])


def served_models(document: dict[str, Any]) -> Iterable[str]:
    """Of `/v1/models`: of llama.cpp's router, or of a server with one model."""
    rows = document["data"]
    return (row["id"] for row in rows if row.get("status", {}).get("value", "loaded") == "loaded")


class Observer:
    """`with Observer(fleet, machines, models) as observer:` … `observer.assert_never_without()`.

    `beside`: of engines beside Ollama the port on each machine; their lists are looked at instead.
    """

    def __init__(
        self,
        fleet: DemoFleet,
        machines: Iterable[str],
        models: Iterable[str],
        beside: dict[str, int] | None = None,
    ):
        ports = {item["name"]: int(item["engine_port"]) for item in fleet.machines}
        self._ports = beside or {name: ports[name] for name in machines}
        self._path = "/v1/models" if beside else "/api/ps"
        self._models_in: Listing = served_models if beside else ollama_models
        self._has_record = not beside
        self._fleet = fleet
        self.models = tuple(models)
        self.seen = {name: Sightings() for name in self._ports}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="observer")

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(LIMIT_S * 2)

    def _look_on(self) -> None:
        lines = {name: http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
                 for name, port in self._ports.items()}  # fmt: skip
        while not self._stop.wait(PERIOD_S):
            for name, line in lines.items():
                at = time.monotonic()
                self.seen[name].take(at, self._resident(line), self.models)
        for line in lines.values():
            line.close()

    def _resident(self, line: http.client.HTTPConnection) -> frozenset[str]:
        """What the engine lists now; nothing where it does not answer."""
        try:
            line.request("GET", self._path, headers={"X-Observer": "1"})
            document: dict[str, Any] = json.loads(line.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            line.close()
            return frozenset()
        return frozenset(self._models_in(document))

    def assert_never_without(self, *models: str) -> None:
        """None of the models (all, where none is named) was ever without a copy on any machine."""
        assert all(seen.looks > 2 for seen in self.seen.values()), "it hardly looked"
        for model in models or self.models:
            spells = [seen.spells.get(model, []) for seen in self.seen.values()]
            gap = _common(spells)
            assert gap is None, f"{model} was nowhere for {gap:.3f} s or more, by its engines' lists"
            gap = None if not self._has_record else _unready(self._fleet, self._ports, model)
            assert gap is None, f"{model} was ready nowhere for {gap:.1f} simulated s, by the engines' record"


def _common(machines: list[list[Absence]]) -> float | None:
    """Length of a spell that all machines have in common; None: there is none.

    Between two looks nothing is known: only what lies between looks that both missed it counts.
    """
    common = [(-math.inf, math.inf)]
    for spells in machines:
        common = [
            (max(begin, spell.first), min(end, spell.last))
            for begin, end in common
            for spell in spells
            if max(begin, spell.first) <= min(end, spell.last)
        ]
    return max((end - begin for begin, end in common), default=None)


def _unready(fleet: DemoFleet, machines: Iterable[str], model: str) -> float | None:
    """How long it was ready nowhere since it first was, in simulated seconds; None: never."""
    events = [
        (item["at"], item["is_resident"])
        for name in machines
        for item in fleet.command(f"history {name}")["history"]
        if item["model"] == model
    ]
    count, since = 0, None
    for at, is_resident in sorted(events, key=lambda event: (event[0], not event[1])):
        count += 1 if is_resident else -1
        if count == 0:
            since = at
        elif since is not None:
            return float(at - since)
    return None if count or not events else math.inf


class Generation:
    """A client that has a long answer streamed to it, in a thread."""

    def __init__(self, fleet: DemoFleet, machine: str, model: str, words: int):
        port = next(int(item["engine_port"]) for item in fleet.machines if item["name"] == machine)
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        asked = {"model": model, "prompt": "tell me", "options": {"num_predict": words}}
        self._line.request("POST", "/api/generate", body=json.dumps(asked))
        self._answer = self._line.getresponse()
        self.words = words
        self.lines: list[dict[str, Any]] = [json.loads(self._answer.readline())]
        """The first has come when this is made: it is in work."""
        self.error = ""
        self._thread = threading.Thread(target=self._listen, daemon=True, name="generation")
        self._thread.start()

    def _listen(self) -> None:
        try:
            while line := self._answer.readline():
                self.lines.append(json.loads(line))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.error = str(error) or type(error).__name__
        self._line.close()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def assert_ended_well(self) -> None:
        """Every word came, and the line with the counts."""
        self._thread.join(60)
        assert self.is_over, "it still runs"
        assert not self.error
        last = self.lines[-1]
        assert (last["done"], last.get("eval_count")) == (True, self.words), last
