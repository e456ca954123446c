"""`fleettui config`: where settings lie, what holds, what is wrong, their schema; all in processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from cli_runner import Cli

from fleettui.config.settings import load_settings


@pytest.fixture
def settings_file(home: Path) -> Path:
    """Where settings.yaml lies; not written."""
    path = home / ".config" / "fleettui" / "settings.yaml"
    path.parent.mkdir(parents=True)
    return path


def test_path_tells_each_folder_and_who_said_so(cli: Cli, settings_file: Path, tmp_path: Path) -> None:
    settings_file.write_text("state_dir: /srv/state\n")
    done = cli("config", "path", "--machines", "mine", cwd=tmp_path, FLEETTUI_CATALOG="/env/catalog")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert rows == [
        ["settings", str(settings_file), "$XDG_CONFIG_HOME"],
        ["machines", str(tmp_path / "mine"), "--machines, not there"],
        ["catalog", "/env/catalog", "$FLEETTUI_CATALOG, not there"],
        ["state", "/srv/state", f"{settings_file}, not there"],
    ]


def test_path_as_json_without_a_settings_file(cli: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "machines").mkdir()
    done = cli("config", "path", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["settings"] == {
        "path": str(home / ".config/fleettui/settings.yaml"), "origin": "$XDG_CONFIG_HOME", "exists": False,
    }  # fmt: skip
    assert document["machines"] == {
        "path": str(tmp_path / "machines"), "origin": "default: ./machines is there", "exists": True,
    }  # fmt: skip


def test_print_is_a_settings_file_with_origins(cli: Cli, settings_file: Path, tmp_path: Path) -> None:
    settings_file.write_text(
        'interval_s: 5\ntheme: nord\nkeys: {quit: "ctrl+q"}\nthresholds: {memory: [50, 60]}\n'
    )
    done = cli("config", "print", "--interval", "3", "--readonly", cwd=tmp_path, FLEETTUI_GLYPHS="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    origins = {line.partition(":")[0]: line.partition("  # ")[2] for line in done.stdout.splitlines()}
    assert origins["interval_s"] == "--interval"
    assert origins["readonly"] == "--readonly"
    assert origins["glyphs"] == "$FLEETTUI_GLYPHS"
    assert origins["theme"] == origins["keys"] == origins["thresholds"] == str(settings_file)
    assert origins["history_minutes"] == "default"
    values = yaml.safe_load(done.stdout)
    assert values["thresholds"] == {"memory": [50, 60], "utilisation": [10, 75], "temperature": [75, 85]}
    assert (values["interval_s"], values["readonly"], values["glyphs"]) == (3, True, "ascii")
    written = tmp_path / "again.yaml"
    written.write_text(done.stdout)
    settings, problems = load_settings(str(written), {})
    assert problems == ()
    assert (settings.interval_s, settings.keys, settings.glyphs) == (3, {"quit": "ctrl+q"}, "ascii")


def test_print_as_json(cli: Cli, settings_file: Path, tmp_path: Path) -> None:
    settings_file.write_text("columns: [machine, vram]\n")
    document = json.loads(cli("config", "print", "--json", cwd=tmp_path).stdout)
    assert document["file"] == str(settings_file)
    assert document["settings"]["columns"] == {
        "value": ["machine", "vram"], "origin": "file", "where": str(settings_file),
    }  # fmt: skip
    assert document["settings"]["server"] == {"value": None, "origin": "default", "where": None}


WRONG = """\
intervall_s: 2
glyphs: utf8
theme: nrd
keys:
  quitt: q
  pause: ctl+p
  help: "?"
columns: [machine, modles]
thresholds: {memory: [90, 70]}
"""


def test_validate_names_everything_at_once(cli: Cli, settings_file: Path) -> None:
    settings_file.write_text(WRONG)
    done = cli("config", "validate", FLEETTUI_INTERVAL_S="often")
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    found = {(line.split(" ")[0], line.split(" ")[1]) for line in lines}
    place = str(settings_file)
    assert found == {
        (f"{place}:1:", "intervall_s:"),
        (f"{place}:2:", "glyphs:"),
        (f"{place}:3:", "theme:"),
        (f"{place}:5:", "keys.quitt:"),
        (f"{place}:6:", "keys.pause:"),
        (f"{place}:8:", "columns[1]:"),
        (f"{place}:9:", "thresholds.memory:"),
        ("$FLEETTUI_INTERVAL_S:", "interval_s:"),
    }
    text = done.stdout
    for near in ("write interval_s", "did you mean nord?", "did you mean quit?", "did you mean ctrl+p?",
                 "write models"):  # fmt: skip
        assert near in text, near
    assert done.stderr.startswith("fleettui config validate: 8 errors\n")


def test_validate_a_file_judges_it_alone(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text("interval_s: 2\nkeys: {pause: space, help: f1, faster: 'plus,ctrl+up'}\n")
    done = cli("config", "validate", str(path), FLEETTUI_INTERVAL_S="often")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: fine\n", "")
    path.write_text("interval_s: 0\n")
    done = cli("config", "validate", str(path), "--json")
    assert done.returncode == 2
    (error,) = json.loads(done.stdout)["errors"]
    assert (error["file"], error["line"], error["key"]) == (str(path), 1, "interval_s")


def test_validate_reads_a_pipe(cli: Cli) -> None:
    done = cli.shell("config validate /dev/stdin < /dev/null")
    assert (done.returncode, done.stdout) == (0, "/dev/stdin: fine\n")


def test_validate_without_a_file(cli: Cli, tmp_path: Path) -> None:
    done = cli("config", "validate")
    assert done.returncode == 0
    assert "every setting has its default" in done.stdout
    done = cli("config", "validate", str(tmp_path / "none.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no such file" in done.stderr


def test_print_of_wrong_settings_prints_no_settings(cli: Cli, settings_file: Path) -> None:
    settings_file.write_text(WRONG)
    done = cli("config", "print")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{settings_file}:5: keys.quitt:" in done.stderr


def test_schemas(cli: Cli) -> None:
    settings = json.loads(cli("config", "schema").stdout)
    assert settings["additionalProperties"] is False
    assert list(settings["properties"])[:4] == ["interval_s", "machines", "catalog", "state_dir"]
    machine = json.loads(cli("config", "schema", "machine").stdout)
    assert machine["required"] == ["name", "role", "hardware", "network", "models"]
    assert {"const": "local"} in machine["properties"]["ssh"]["anyOf"]
    assert "is_local" not in json.dumps(machine)
    catalog = json.loads(cli("config", "schema", "catalog").stdout)
    assert list(catalog["properties"]) == ["engines", "models"]
    assert list(catalog["$defs"]["CatalogModelPart"]["properties"]) == [
        "kind", "vram_gb", "min_cc", "engines", "context", "lora", "names", "keep", "num_ctx",
    ]  # fmt: skip
    roles = json.loads(cli("config", "schema", "roles").stdout)
    assert list(roles["$defs"]["NeedsPart"]["properties"]) == [
        "engine", "min_vram_gb", "min_cc", "max_cc", "gpu", "min_ram_gb", "gpus",
    ]  # fmt: skip
    done = cli("config", "schema", "fleet")
    assert (done.returncode, done.stdout) == (2, "")


def test_ascii_signs_reach_status(demo_cli: Cli) -> None:
    done = demo_cli("status", FLEETTUI_GLYPHS="ascii")
    assert done.returncode == 0
    assert "●" not in done.stdout
    assert done.stdout.isascii() or "°" in done.stdout
