"""The folder of machine files: what changes is read again, what breaks keeps its last good version."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fleettui.config import machine_folder
from fleettui.config.machine_folder import MachineFiles, MachineFolder, load_machines

TEXT = "name: {}\nrole: gpu-host\nhardware: {{}}\nnetwork: {{hostname: {}.lan}}\nmodels: []\n"
LONG_AGO = 1_700_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "machines"
    path.mkdir()
    return path


def declare(folder: Path, name: str, file: str | None = None) -> Path:
    path = folder / (file or f"{name}.yaml")
    path.write_text(TEXT.format(name, name), encoding="utf-8")
    return path


def names(files: MachineFiles) -> list[str]:
    return [machine.name for machine in files.machines]


def settle(folder: Path) -> None:
    """Makes every file old, so that its stamp alone tells whether it changed."""
    for path in folder.iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO))
    now_ns = time.time_ns()
    while time.time_ns() - now_ns < 2 * machine_folder._RACY_NS:  # ctime cannot be set back
        time.sleep(0.02)


def test_files_are_found_in_natural_order_of_names(folder: Path) -> None:
    for name in ("gpu10", "gpu9", "Gpu2"):
        declare(folder, name)
    declare(folder, "yml", "y.yml")
    for ignored in (".hidden.yaml", "note.txt", "copy.yaml~", "x.yaml.bak"):
        (folder / ignored).write_text("broken: [", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / "folder.yaml").mkdir()
    files = load_machines(str(folder))
    assert names(files) == ["Gpu2", "gpu9", "gpu10", "yml"]
    assert files.problems == ()
    assert files.machines[0].config_file == str(folder / "Gpu2.yaml")
    assert files.find("gpu9") is files.machines[1]
    assert files.find("GPU9") is None


def test_nothing_changed_is_the_same_object(folder: Path) -> None:
    declare(folder, "ada")
    (folder / "bad.yaml").write_text("[", encoding="utf-8")
    reader = MachineFolder(str(folder))
    first = reader.refresh()
    assert reader.refresh() is first
    settle(folder)
    assert reader.refresh() is first
    assert reader.refresh() is first


def test_idle_refresh_reads_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(folder, "ada")
    reader = MachineFolder(str(folder))
    settle(folder)
    first = reader.refresh()
    monkeypatch.setattr(machine_folder, "_read", None)
    assert reader.refresh() is first


def test_added_edited_removed(folder: Path) -> None:
    ada = declare(folder, "ada")
    reader = MachineFolder(str(folder))
    assert names(reader.refresh()) == ["ada"]
    declare(folder, "bora")
    assert names(reader.refresh()) == ["ada", "bora"]
    ada.write_text(TEXT.format("ada", "new"), encoding="utf-8")
    files = reader.refresh()
    assert files.machines[0].hostname == "new.lan"
    ada.unlink()
    assert names(reader.refresh()) == ["bora"]


def test_edit_of_same_size_and_time_is_seen(folder: Path) -> None:
    ada = declare(folder, "ada")
    reader = MachineFolder(str(folder))
    for host in ("aaa", "bbb", "ccc", "ddd") * 5:
        ada.write_text(TEXT.format("ada", host), encoding="utf-8")
        assert reader.refresh().machines[0].hostname == f"{host}.lan"


def test_replaced_file_is_seen(folder: Path) -> None:
    ada = declare(folder, "ada")
    settle(folder)
    reader = MachineFolder(str(folder))
    reader.refresh()
    fresh = folder / "new"
    fresh.write_text(TEXT.format("ada", "new"), encoding="utf-8")
    os.utime(fresh, (LONG_AGO, LONG_AGO))
    fresh.rename(ada)
    assert reader.refresh().machines[0].hostname == "new.lan"


def test_broken_file_hides_no_other_and_keeps_its_last_good_version(folder: Path) -> None:
    ada = declare(folder, "ada")
    declare(folder, "bora")
    reader = MachineFolder(str(folder))
    good = reader.refresh().machines[0]
    ada.write_text("name: ada\nrole: [\n", encoding="utf-8")
    files = reader.refresh()
    assert names(files) == ["ada", "bora"]
    assert files.machines[0] is good
    assert files.problems[0].file == str(ada)
    assert files.problems[0].line
    assert "last good version" in files.problems[0].message
    assert names(load_machines(str(folder))) == ["bora"]
    assert "last good version" not in load_machines(str(folder)).problems[0].message
    ada.write_text(TEXT.format("ada", "fixed"), encoding="utf-8")
    files = reader.refresh()
    assert (files.machines[0].hostname, files.problems) == ("fixed.lan", ())


def test_first_of_two_equal_names_is_kept(folder: Path) -> None:
    declare(folder, "ada", "b.yaml")
    declare(folder, "ada", "a.yml")
    (folder / "c.yaml").write_text("# note\n" + TEXT.format("ada", "x"), encoding="utf-8")
    files = load_machines(str(folder))
    assert [machine.config_file for machine in files.machines] == [str(folder / "a.yml")]
    assert [(problem.file, problem.line, problem.key) for problem in files.problems] == [
        (str(folder / "b.yaml"), 1, "name"),
        (str(folder / "c.yaml"), 2, "name"),
    ]
    assert str(folder / "a.yml") in files.problems[0].message
    assert str(folder / "b.yaml") in files.problems[0].message


def test_file_renamed_onto_a_taken_name_keeps_its_old_one(folder: Path) -> None:
    declare(folder, "ada")
    bora = declare(folder, "bora")
    reader = MachineFolder(str(folder))
    reader.refresh()
    bora.write_text(TEXT.format("ada", "x"), encoding="utf-8")
    files = reader.refresh()
    assert names(files) == ["ada", "bora"]
    assert files.problems[0].key == "name"
    (folder / "ada.yaml").unlink()
    files = reader.refresh()
    assert (names(files), files.problems) == (["ada"], ())
    assert files.machines[0].hostname == "x.lan"


def test_missing_folder_is_a_problem_and_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "no such"
    reader = MachineFolder(str(path))
    files = reader.refresh()
    assert files.machines == ()
    assert files.problems[0].file == str(path)
    assert "mkdir -p" in files.problems[0].message
    assert reader.refresh() is files
    path.mkdir()
    declare(path, "ada")
    assert (names(reader.refresh()), reader.refresh().problems) == (["ada"], ())


def test_folder_that_vanishes_keeps_its_machines(folder: Path) -> None:
    declare(folder, "ada")
    reader = MachineFolder(str(folder))
    reader.refresh()
    folder.rename(folder.with_name("away"))
    files = reader.refresh()
    assert names(files) == ["ada"]
    assert "stay in use" in files.problems[0].message
    folder.with_name("away").rename(folder)
    assert reader.refresh().problems == ()


def test_file_as_folder_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "ada.yaml"
    path.write_text("name: ada", encoding="utf-8")
    assert "not a folder" in load_machines(str(path)).problems[0].message


def test_broken_link_and_pipe_are_problems_and_never_block(folder: Path) -> None:
    declare(folder, "ada")
    (folder / "link.yaml").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.yaml")
    files = load_machines(str(folder))
    assert names(files) == ["ada"]
    assert [Path(problem.file).name for problem in files.problems] == ["link.yaml", "pipe.yaml"]


def test_link_is_followed(folder: Path, tmp_path: Path) -> None:
    target = declare(tmp_path, "ada")
    (folder / "ada.yaml").symlink_to(target)
    reader = MachineFolder(str(folder))
    assert names(reader.refresh()) == ["ada"]
    target.write_text(TEXT.format("ada", "new"), encoding="utf-8")
    assert reader.refresh().machines[0].hostname == "new.lan"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_a_problem_until_it_can_be_read(folder: Path) -> None:
    ada = declare(folder, "ada")
    ada.chmod(0)
    reader = MachineFolder(str(folder))
    assert "chmod" in reader.refresh().problems[0].message
    ada.chmod(0o600)
    assert names(reader.refresh()) == ["ada"]


def test_failure_to_read_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(folder, "ada")
    reader = MachineFolder(str(folder))
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse_to_open)
        files = reader.refresh()
        assert "may not read" in files.problems[0].message
        assert reader.refresh() is files
    assert names(reader.refresh()) == ["ada"]


def refuse_to_open(path: str, mode: str = "r") -> None:
    raise PermissionError(13, "Permission denied", path)
