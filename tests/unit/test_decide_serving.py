"""Which engines take requests, whatever the model."""

from __future__ import annotations

from dataclasses import replace

from builders import NOW, make_engine, make_fleet, make_machine, make_offline, make_pending, make_snapshot
from fleettui.decide.serving import list_serving
from fleettui.model.machine import EngineEndpoint
from fleettui.model.route import EXIT_NO_DATA, EXIT_NONE_ELIGIBLE
from fleettui.model.snapshot import MaintenanceFlag
from fleettui.view.route_text import format_one


def test_every_engine_that_answers_is_listed_in_the_fleets_order() -> None:
    two = make_snapshot(
        "bora",
        machine=make_machine(
            "bora",
            engines=(EngineEndpoint("ollama", 11434), EngineEndpoint("ollama", 11500, "http://10.0.0.9:80")),
        ),
    )
    two = replace(two, engines=(make_engine(), make_engine(port=11500)))
    found = list_serving(make_fleet(make_snapshot("ada"), two), NOW)
    assert [item.address for item in found.engines] == ["ada.lan:11434", "bora.lan:11434", "10.0.0.9:80"]
    assert (found.rejected, found.exit_code) == ((), 0)
    assert format_one(found.engines[2], "url") == "http://10.0.0.9:80"
    assert format_one(found.engines[0], "tsv") == "ada\tada.lan\t11434"
    assert format_one(found.engines[0], "env") == "export OLLAMA_HOST=ada.lan:11434"


def test_the_others_have_all_their_reasons() -> None:
    flag = MaintenanceFlag("fan swap", "mia", NOW - 60)
    down = replace(make_snapshot("dora"), engines=(make_engine(state="down", error="refused"),))
    fleet = make_fleet(
        make_snapshot("cleo", maintenance=flag),
        down,
        make_snapshot("enno", age_s=60),
        replace(make_offline(), maintenance=flag),
        make_pending(),
    )
    found = list_serving(fleet, NOW)
    assert found.engines == ()
    assert [(item.machine, item.codes) for item in found.rejected] == [
        ("cleo", ("maintenance",)),
        ("dora", ("engine_down",)),
        ("enno", ("stale",)),
        ("pve52", ("offline", "maintenance")),
        ("kiosk", ("not_approved",)),
    ]
    assert found.exit_code == EXIT_NONE_ELIGIBLE


def test_no_machine_with_data_is_told_apart_from_none_that_may_be_used() -> None:
    assert list_serving(make_fleet(make_offline(), make_pending()), NOW).exit_code == EXIT_NO_DATA
    assert list_serving(make_fleet(), NOW).exit_code == EXIT_NO_DATA
