"""The catalog of a command that answers from a stored snapshot: its own folder's, else the stored one."""

# ruff: noqa: PTH110, PTH112, PTH118, PTH120
# loading pathlib would cost a warm --route 12 ms
from __future__ import annotations

import os

from fleettui.cli import diagnostics
from fleettui.cli.folders import Folders
from fleettui.config.paths import default_catalog_dir
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot


def with_own_catalog(fleet: FleetSnapshot, folders: Folders) -> FleetSnapshot:
    """The stored fleet with the catalog that this command was given.

    The stored one is that of the process that stored it. Where this command has a folder with another, its
    YAML is read, which takes a tenth of a second; what is wrong with it goes to stderr.
    """
    folder = folders.catalog_dir
    if folder is None or os.path.dirname(fleet.catalog.file) == folder:
        return fleet
    is_there = os.path.exists(os.path.join(folder, "models.yaml"))
    if not is_there and (folder == default_catalog_dir() or os.path.isdir(folder)):
        return fleet
    from fleettui.config.catalog_folder import load_catalog_files
    from fleettui.view.problems import problem_lines

    told = load_catalog_files(folder)
    diagnostics.say_all(problem_lines(told.problems))
    return replace(fleet, catalog=told.catalog) if told.catalog.file else fleet
