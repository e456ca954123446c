"""When health is judged anew: on news, not because a request moved the expiry of its copy."""

from __future__ import annotations

import pytest

from builders import NOW, make_copy, make_snapshot
from fleettui.fleet import verdict
from fleettui.fleet.source_record import SourceRecord
from fleettui.fleet.verdict import JUDGE_PERIOD_S, Verdict
from fleettui.model.readings import LoadedModel
from fleettui.model.record import replace
from fleettui.model.snapshot import Health, MachineSnapshot, Reason


class Judge:
    """Judges snapshots of one machine, a second apart, and counts how often health was looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.now = NOW
        self._verdict, self._source = Verdict(), SourceRecord()
        self._judge = verdict.judge_health
        monkeypatch.setattr(verdict, "judge_health", self._look)

    def _look(self, snapshot: MachineSnapshot, *rest: float) -> tuple[Health, tuple[Reason, ...]]:
        self.count += 1
        return self._judge(snapshot, rest[0], rest[1], None)

    def is_judged(self, copy: LoadedModel) -> bool:
        """The machine holds that copy now: was its health looked at?"""
        before, self.now = self.count, self.now + 1
        snapshot = make_snapshot("ada", loaded=[copy])
        self._verdict.judge(snapshot, [self._source], self.now, 2.0, 0)
        return self.count > before


def test_an_expiry_that_moves_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, copy = Judge(monkeypatch), replace(make_copy("llama3.1:8b"), expires_at=NOW + 300)
    assert judge.is_judged(copy)
    assert not judge.is_judged(replace(copy, expires_at=NOW + 302))


@pytest.mark.parametrize("change", [{"vram_bytes": 0}, {"state": "stopping"}, {"name": "qwen3:8b"}])
def test_a_copy_that_is_another_is_news(monkeypatch: pytest.MonkeyPatch, change: dict[str, object]) -> None:
    judge, copy = Judge(monkeypatch), replace(make_copy("llama3.1:8b"), expires_at=NOW + 300)
    assert judge.is_judged(copy)
    assert judge.is_judged(replace(copy, **change))
    assert not judge.is_judged(replace(copy, **change))


def test_without_news_health_is_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, copy = Judge(monkeypatch), make_copy("llama3.1:8b")
    assert judge.is_judged(copy)
    assert not judge.is_judged(copy)
    judge.now += JUDGE_PERIOD_S
    assert judge.is_judged(copy)
