"""The schema of settings.yaml and the check by hand judge the same; defaults are those of the program."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from fleettui.cli.folders import DEFAULT_INTERVAL_S
from fleettui.config.effective import DEFAULTS, ORDER, effective_settings, settings_lines
from fleettui.config.schemas import SettingsPart, machine_schema
from fleettui.config.settings import Settings, SettingsLayers, load_settings
from fleettui.tui.key_check import is_key, key_problems
from fleettui.view.bars import Thresholds

RIGHT = [
    "interval_s: 0.5", "interval_s: 3600", "machines: x", "theme: nord", "glyphs: ascii", "glyphs:",
    "thresholds: {memory: [1, 2]}", "thresholds: {}", "keys: {quit: q}", "columns: [machine]",
    "readonly: true", "server: http://x:1", "history_minutes: 5", "columns:",
]  # fmt: skip
WRONG = [
    "interval_s: 0.4", "interval_s: 3601", "machines: ''", "glyphs: utf8", "thresholds: {memory: [1]}",
    "thresholds: {disk: [1, 2]}", "thresholds: {memory: [-1, 2]}", "keys: {quit: ''}", "keys: q",
    "columns: x", "columns: []", "columns: [cpus]", "server: localhost", "history_minutes: 0", "interval: 2",
]  # fmt: skip


def by_hand(text: str, tmp_path: Path) -> bool:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    return not load_settings(str(path), {})[1]


def by_schema(text: str) -> bool:
    """pydantic's model; the enum of columns stands in the schema alone."""
    document = yaml.safe_load(text)
    columns = SettingsPart.model_json_schema()["properties"]["columns"]["anyOf"][0]["items"]["enum"]
    chosen = document.get("columns")
    if isinstance(chosen, list) and not set(chosen) <= set(columns):
        return False
    try:
        SettingsPart.model_validate(document)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("text", [*RIGHT, *WRONG])
def test_schema_and_check_judge_the_same(text: str, tmp_path: Path) -> None:
    assert by_hand(text, tmp_path) is (text in RIGHT)
    assert by_schema(text) is (text in RIGHT)


def test_every_setting_is_in_the_schema_and_has_an_effective_value() -> None:
    assert list(SettingsPart.model_fields) == list(Settings.__slots__)
    assert set(ORDER) == set(Settings.__slots__)


def test_defaults_are_those_of_the_program() -> None:
    assert DEFAULTS["interval_s"] == DEFAULT_INTERVAL_S
    ours, bars = DEFAULTS["thresholds"], Thresholds()
    assert (ours.memory, ours.utilisation, ours.temperature) == (
        bars.memory, bars.utilisation, bars.temperature,
    )  # fmt: skip


@pytest.mark.parametrize("theme", ["nord", "true", "a b: c # d", "ünïcode", "-", "1e3", "off"])
def test_printed_values_are_read_back_as_they_were(theme: str) -> None:
    lines = settings_lines(effective_settings(SettingsLayers({"theme": theme}, {}), "/x", {}, {"HOME": "/h"}))
    assert yaml.safe_load("\n".join(lines))["theme"] == theme


def test_machine_schema_tells_its_short_forms() -> None:
    schema = machine_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"type": "null"} in schema["properties"]["models"]["anyOf"]
    assert schema["properties"]["nvidia_smi"]["anyOf"][0]["type"] == "string"


@pytest.mark.parametrize(
    "key", ["q", "Q", "?", "ctrl+q", "f5", "pagedown", "question_mark", "ctrl+shift+up", "plus", "space", "1"]
)
def test_keys_of_textual(key: str) -> None:
    assert is_key(key)


@pytest.mark.parametrize("key", ["", "ctl+q", "ctrl+", "pgdn", "qq", "ctrl+ctrl+q", "no_such_key"])
def test_no_keys(key: str) -> None:
    assert not is_key(key)


def test_each_entry_of_keys_is_judged() -> None:
    found = dict(key_problems({"quit": "q,ctrl+c", "quit_now": "q", "pause": "pgdn", "help": "ctrl-h"}))
    assert list(found) == ["quit_now", "pause", "help"]
    assert "did you mean pagedown?" in found["pause"]
    assert "did you mean ctrl+h?" in found["help"]
