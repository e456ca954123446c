"""Resolve the ranges of pyproject.toml into exact versions: requirements/*.txt.

Run it with the lowest supported Python through `make pins`; it needs the package index, the rest of set-up
only installs what it wrote. Files name versions and nothing else: no index, no address, no hash, so that a
mirror serves them as well.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
# Left to the virtual environment itself.
NEVER_PINNED = {"pip", "setuptools", "wheel"}


def resolve(requirements: list[str], constraints: list[Path]) -> dict[str, str]:
    """Ask pip which versions fit together; nothing is installed. Returns name -> version."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--disable-pip-version-check", "--report", "-"]
    for path in constraints:
        command += ["--constraint", str(path)]
    # Neither this machine's pip settings nor its local package folders may leak into the pins.
    environment = {k: v for k, v in os.environ.items() if k not in ("PIP_CONSTRAINT", "PIP_FIND_LINKS")}
    environment["PIP_CONFIG_FILE"] = os.devnull
    done = subprocess.run(
        [*command, *requirements], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found = (item["metadata"] for item in json.loads(done.stdout)["install"])
    versions = {re.sub(r"[-_.]+", "-", item["name"]).lower(): item["version"] for item in found}
    return {name: versions[name] for name in sorted(versions) if name not in NEVER_PINNED}


def write(name: str, about: str, includes: list[str], versions: dict[str, str]) -> Path:
    """Write one file: a heading, the files it stands on, one exact version a line."""
    lines = [f"# {about}", "# Written by `make pins` from pyproject.toml; change the ranges there."]
    lines += [f"-r {include}" for include in includes]
    lines += [f"{package}=={version}" for package, version in versions.items()]
    path = FOLDER / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> None:
    """Runtime first. A later file takes versions of the earlier ones, and names what it does not include."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups: dict[str, list[str]] = project["dependency-groups"]
    FOLDER.mkdir(exist_ok=True)
    runtime = resolve(project["project"]["dependencies"], [])
    paths = [write("runtime.txt", "What fleettui needs to run.", [], runtime)]
    whole = {"runtime.txt": set(runtime)}
    steps = [
        (
            "serve.txt",
            "What `fleettui serve` needs besides.",
            ["runtime.txt"],
            project["project"]["optional-dependencies"]["serve"],
        ),
        (
            "mcp.txt",
            "What `fleettui mcp` needs besides.",
            ["serve.txt"],
            project["project"]["optional-dependencies"]["mcp"],
        ),
        ("build.txt", "What builds the package.", [], project["build-system"]["requires"]),
        ("test.txt", "What the tests need.", ["mcp.txt", "build.txt"], groups["test"]),
        ("check.txt", "What `make check` needs.", ["test.txt"], groups["check"]),
        (
            "engines.txt",
            "Engines that tests run for real, where there is a wheel.",
            ["test.txt"],
            groups["engines"],
        ),
        (
            "solver.txt",
            "An exact solver that optimal placements are compared with, where there is a wheel.",
            ["test.txt"],
            groups["solver"],
        ),
    ]
    for name, about, includes, requirements in steps:
        versions = resolve(requirements, paths)
        included = {package for include in includes for package in whole[include]}
        added = {package: version for package, version in versions.items() if package not in included}
        paths.append(write(name, about, includes, added))
        whole[name] = included | set(added)


if __name__ == "__main__":
    main()
