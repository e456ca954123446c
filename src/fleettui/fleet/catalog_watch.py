"""Follows the catalog's file: what it says is in the next snapshot."""

from __future__ import annotations

from fleettui.config.catalog_folder import CatalogFiles, CatalogFolder
from fleettui.fleet.publisher import SnapshotPublisher


class CatalogWatch:
    """One stat a cycle; nothing without a folder."""

    def __init__(self, folder: str | None, publisher: SnapshotPublisher) -> None:
        self._folder = None if folder is None else CatalogFolder(folder)
        self._publisher = publisher
        self._files: CatalogFiles | None = None

    def follow(self) -> None:
        """Publish the catalog where it changed, or what is wrong with it."""
        if self._folder is None:
            return
        found = self._folder.refresh()
        if found is not self._files:
            self._files = found
            self._publisher.catalog = found.catalog
            self._publisher.catalog_problems = found.problems
            self._publisher.schedule()
