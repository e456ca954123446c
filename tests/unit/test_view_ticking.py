"""Which rows move with the clock alone."""

from __future__ import annotations

from builders import NOW, make_copy, make_offline, make_snapshot
from fleettui.model.record import replace
from fleettui.view.ticking import is_ticking


def test_a_machine_that_answers_in_time_waits_for_its_next_answer() -> None:
    assert not is_ticking(make_snapshot("ada"), NOW, 2.0)


def test_countdowns_and_ages_are_drawn_each_second() -> None:
    ada = make_snapshot("ada")
    assert is_ticking(make_offline("ada"), NOW, 2.0)
    assert is_ticking(ada, NOW + 10, 2.0), "its age grows"
    soon = replace(make_copy("llama3.1:8b"), expires_at=NOW + 30, is_pinned=False)
    later = replace(soon, expires_at=NOW + 3600)
    assert is_ticking(make_snapshot("ada", loaded=[soon]), NOW, 2.0)
    assert not is_ticking(make_snapshot("ada", loaded=[later]), NOW, 2.0)
    assert not is_ticking(make_snapshot("ada", loaded=[replace(soon, is_pinned=True)]), NOW, 2.0)
