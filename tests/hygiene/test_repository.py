"""What lies in the repository: no registry address, no lock file, a reason for each dependency."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = ROOT / "pyproject.toml"

# Written in parts: this file is searched too.
REGISTRIES = (
    "py" "pi.org", "python" "hosted.org", "py" "pi.python.org", "registry.n" "pmjs", "registry.y" "arnpkg",
    "deb." "debian.org", "security." "debian.org", "archive." "ubuntu.com", "proxy." "golang.org",
    "crates" ".io", "ana" "conda.org", "index" "-url", "find" "-links",
)  # fmt: skip
LOCK_FILES = {
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "package-lock.json", "yarn.lock",
    "pnpm-lock.yaml", "conda-lock.yml",
}  # fmt: skip
PINNED = re.compile(r"[a-z0-9][a-z0-9.-]*==[0-9][0-9A-Za-z.!+]*")


def tracked_files() -> list[Path]:
    """Files of the repository, with those about to be added; the folder itself where there is no git."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: which files belong to the project is unknown")
    paths = (ROOT / name.decode() for name in listed.split(b"\0") if name)
    return [path for path in paths if path.is_file()]


def test_no_package_registry_is_named() -> None:
    pattern = re.compile("|".join(map(re.escape, REGISTRIES)).encode())
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in tracked_files()
        if (match := pattern.search(path.read_bytes()))
    ]
    assert found == []


def test_no_lock_file() -> None:
    assert [path for path in tracked_files() if path.name in LOCK_FILES] == []


def test_registries_would_be_found() -> None:
    assert all(REGISTRIES)
    assert re.search("|".join(map(re.escape, REGISTRIES)), "https://files.python" + "hosted.org/x")


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_requirements_are_exact_versions_and_nothing_else(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        include = line.removeprefix("-r ")
        assert PINNED.fullmatch(line) or (line != include and (path.parent / include).is_file()), line


def pins_of(path: Path) -> list[str]:
    """Pins of a file and of those that it includes."""
    pins = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            pins += pins_of(path.parent / line.removeprefix("-r "))
        elif "==" in line:
            pins.append(line)
    return pins


def test_each_package_is_pinned_once_and_to_one_version() -> None:
    everywhere = set()
    for path in (ROOT / "requirements").glob("*.txt"):
        pins = pins_of(path)
        assert len(pins) == len({pin.partition("==")[0] for pin in pins}), path.name
        everywhere.update(pins)
    assert len(everywhere) == len({pin.partition("==")[0] for pin in everywhere})


def wanted_requirements() -> list[str]:
    """Every requirement of pyproject.toml, as written."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    lists = [project["project"]["dependencies"], project["build-system"]["requires"]]
    lists += project["dependency-groups"].values()
    lists += project["project"].get("optional-dependencies", {}).values()
    return [requirement for group in lists for requirement in group if isinstance(requirement, str)]


@pytest.mark.parametrize("requirement", wanted_requirements())
def test_each_dependency_has_its_reason(requirement: str) -> None:
    lines = [
        line for line in PYPROJECT.read_text(encoding="utf-8").splitlines() if f'"{requirement}"' in line
    ]
    assert lines, requirement
    assert all(re.search(r"#\s*\S.{5,}$", line) for line in lines), f"{requirement}: no comment says why"


# Where the module is not called like the package that brings it.
PACKAGE_OF_MODULE = {
    "yaml": "pyyaml",
    "pydantic_core": "pydantic",
    "prometheus_client": "prometheus-client",
}


def test_each_import_of_the_package_is_declared() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    declared = {re.split(r"[<>=!~\[; ]", text, maxsplit=1)[0].lower() for group in lists for text in group}
    undeclared = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case _:
                    continue
            for top in {module.partition(".")[0] for module in modules}:
                if top not in sys.stdlib_module_names and top != "fleettui":
                    package = PACKAGE_OF_MODULE.get(top, top)
                    undeclared |= set() if package in declared else {f"{path.relative_to(ROOT)}: {package}"}
    assert sorted(undeclared) == []


def test_each_dependency_is_pinned_inside_its_range() -> None:
    packaging = pytest.importorskip("packaging.requirements")
    pins = dict(
        line.split("==")
        for path in (ROOT / "requirements").glob("*.txt")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    for text in wanted_requirements():
        requirement = packaging.Requirement(text)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert name in pins, f"{name}: run make pins"
        assert pins[name] in requirement.specifier, f"{name}=={pins[name]} against {text}: run make pins"
