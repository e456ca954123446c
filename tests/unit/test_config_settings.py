"""Folders and settings: who beats whom, and what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from fleettui.config import settings as settings_module
from fleettui.config.paths import (
    resolve_catalog_dir,
    resolve_machines_dir,
    resolve_settings_file,
    resolve_state_dir,
    user_folder,
)
from fleettui.config.settings import Settings, Thresholds, load_layers, load_settings

WHOLE = """\
interval_s: 1.50
machines: fleet
catalog: /srv/catalog
state_dir: ~/state
theme: nord
glyphs: ascii
thresholds: {memory: [60, 80], temperature: [70, 90.5]}
keys: {quit: "ctrl+q"}
columns: [machine, vram]
readonly: true
server: http://127.0.0.1:3038/
history_minutes: 30
"""


def test_option_beats_environment_beats_setting_beats_default(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"FLEETTUI_MACHINES": "/env", "HOME": str(home)}
    assert resolve_machines_dir("opt", "/set", environ) == str(tmp_path / "opt")
    assert resolve_machines_dir(None, "/set", environ) == "/env"
    environ["FLEETTUI_MACHINES"] = ""
    assert resolve_machines_dir(None, "/set", environ) == "/set"
    assert resolve_machines_dir(None, None, environ) == str(home / ".config/fleettui/machines")
    (tmp_path / "machines").mkdir()
    assert resolve_machines_dir(None, None, environ) == str(tmp_path / "machines")
    assert resolve_machines_dir(None, "/set", environ) == "/set"
    assert resolve_catalog_dir(None, None, {"FLEETTUI_CATALOG": "~/c"}) == str(home / "c")


def test_state_folder(home: Path) -> None:
    environ = {"FLEETTUI_STATE_DIR": "/env", "XDG_STATE_HOME": "/xdg", "HOME": str(home)}
    assert resolve_state_dir("/opt", "/set", environ) == "/opt"
    assert resolve_state_dir(None, "/set", environ) == "/env"
    del environ["FLEETTUI_STATE_DIR"]
    assert resolve_state_dir(None, "/set", environ) == "/set"
    assert resolve_state_dir(None, None, environ) == "/xdg/fleettui"
    environ["XDG_STATE_HOME"] = "relative"
    assert resolve_state_dir(None, None, environ) == str(home / ".local/state/fleettui")


def test_settings_file_lies_in_the_config_folder(home: Path) -> None:
    assert resolve_settings_file() == str(home / ".config/fleettui/settings.yaml")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize("base", [None, "", "/x/y", "/x/../y/"])
def test_linux_folders_are_those_of_platformdirs(base: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable)
        if base is not None:
            monkeypatch.setenv(variable, base)
    wanted = [platformdirs.user_config_dir("fleettui"), platformdirs.user_state_dir("fleettui")]
    assert [user_folder("config", os.environ), user_folder("state", os.environ)] == [
        os.path.normpath(path) for path in wanted
    ]


def test_whole_file(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(WHOLE, encoding="utf-8")
    settings, problems = load_settings(str(path), {})
    assert problems == ()
    assert settings == Settings(
        interval_s=1.5,
        machines=str(tmp_path / "fleet"),
        catalog="/srv/catalog",
        state_dir=str(home / "state"),
        theme="nord",
        glyphs="ascii",
        thresholds=Thresholds(memory=(60, 80), temperature=(70, 90.5)),
        keys={"quit": "ctrl+q"},
        columns=("machine", "vram"),
        readonly=True,
        server="http://127.0.0.1:3038",
        history_minutes=30,
    )


@pytest.mark.parametrize("text", [None, "", "# later\n", "theme:\n"])
def test_no_settings_are_no_problem(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert load_settings(str(path), {}) == (Settings(), ())


def test_environment_beats_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(WHOLE, encoding="utf-8")
    environ = {
        "FLEETTUI_INTERVAL_S": "5",
        "FLEETTUI_READONLY": "0",
        "FLEETTUI_GLYPHS": "unicode",
        "FLEETTUI_X": "1",
    }
    settings, problems = load_settings(str(path), environ)
    assert problems == ()
    assert (settings.interval_s, settings.readonly, settings.glyphs, settings.theme) == (
        5,
        False,
        "unicode",
        "nord",
    )


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("interval: 2", "interval", "interval_s"),
        ("state-dir: /x", "state-dir", "state_dir"),
        ("zzz: 1", "zzz", "known are interval_s, machines"),
        ("interval_s: fast", "interval_s", "from 0.5 to 3600"),
        ("interval_s: 0", "interval_s", "from 0.5 to 3600"),
        ("interval_s: true", "interval_s", "from 0.5 to 3600"),
        ("readonly: yes", "readonly", "true or false"),
        ("glyphs: [ascii]", "glyphs", "unicode or ascii"),
        ("thresholds: 70", "thresholds", "map of memory, utilisation, temperature"),
        ("thresholds: {memory: [90, 70]}", "thresholds.memory", "rise"),
        ("thresholds: {memory: [70, 101]}", "thresholds.memory", "0 to 100"),
        ("thresholds: {memory: 90}", "thresholds.memory", "two numbers"),
        ("thresholds: {temperatur: [1, 2]}", "thresholds.temperatur", "write temperature"),
        ("thresholds: {disk: [1, 2]}", "thresholds.disk", "known are memory, utilisation, temperature"),
        ("keys: {quit: 1}", "keys.quit", "quotes"),
        ("keys: quit", "keys", "map of action to key"),
        ("columns: name", "columns", "list of names"),
        ("columns: []", "columns", "at least one"),
        ("columns: [modles]", "columns[0]", "write models"),
        ("server: localhost", "server", "URL"),
        ("machines: 5", "machines", "text"),
        ("history_minutes: 100000000000000000000000", "history_minutes", "from 1 to 1440"),
        ('"a\\e": 1', "a\ufffd", "no setting"),
    ],
)
def test_wrong_setting_is_named_and_left_out(text: str, key: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(f"theme: nord\n{text}\n", encoding="utf-8")
    settings, problems = load_settings(str(path), {})
    assert settings == Settings(theme="nord")
    assert [(problem.file, problem.line, problem.key) for problem in problems] == [(str(path), 2, key)]
    assert words in problems[0].message


def test_everything_wrong_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("a: 1\nglyphs: x\nglyphs: y\nreadonly: 1\n", encoding="utf-8")
    _, problems = load_settings(str(path), {"FLEETTUI_INTERVAL_S": "x"})
    assert [problem.key for problem in problems] == ["a", "glyphs", "glyphs", "readonly", "interval_s"]
    assert problems[-1].file == "$FLEETTUI_INTERVAL_S"


def test_each_fault_in_one_value_has_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    text = "columns:\n- machine\n- gpus\n- vramm\nthresholds:\n  memory: [9, 1]\n  heat: [1, 2]\n"
    path.write_text(text, encoding="utf-8")
    settings, problems = load_settings(str(path), {})
    assert settings == Settings()
    assert [(problem.line, problem.key) for problem in problems] == [
        (3, "columns[1]"),
        (4, "columns[2]"),
        (6, "thresholds.memory"),
        (7, "thresholds.heat"),
    ]


def test_layers_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("interval_s: 4\ntheme: nord\n", encoding="utf-8")
    layers = load_layers(str(path), {"FLEETTUI_INTERVAL_S": "1"})
    assert dict(layers.file) == {"interval_s": 4, "theme": "nord"}
    assert dict(layers.environment) == {"interval_s": 1}
    assert layers.merged() == Settings(interval_s=1, theme="nord")


@pytest.mark.parametrize("text", ["- a", "text", "a: [", "\x00"])
def test_no_map_is_a_problem(text: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    settings, problems = load_settings(str(path), {})
    assert (settings, len(problems)) == (Settings(), 1)


def test_every_setting_is_checked() -> None:
    assert list(settings_module._CHECKS) == list(Settings.__slots__)


def test_finding_folders_loads_neither_yaml_nor_pydantic(home: Path) -> None:
    code = (
        "import sys, fleettui.config.paths as p, fleettui.config.settings as s\n"
        "p.resolve_machines_dir(); p.resolve_state_dir(); s.load_settings(p.resolve_settings_file())\n"
        "print(sorted({'yaml', 'pydantic', 'pathlib', 'platformdirs', 'sqlite3'} & set(sys.modules)))"
    )
    source = str(Path(__file__).resolve().parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": source},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
