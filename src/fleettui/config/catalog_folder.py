"""The folder of the catalog, read again only where something changed."""

# ruff: noqa: PTH116, PTH118
from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, replace

from fleettui.config.paths import default_catalog_dir
from fleettui.config.yaml_document import MAX_BYTES
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.machine import ConfigProblem

MODELS_FILE = "models.yaml"

_Stamp = tuple[int, int, int, int]
"""mtime and ctime in ns, size, inode."""

_RACY_NS = 50_000_000
"""A file this young when it was read may change again without a new stamp."""


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """What the folder says now."""

    catalog: Catalog = EMPTY_CATALOG
    """The last good version while the file is broken."""
    problems: tuple[ConfigProblem, ...] = ()
    """In order of line."""


@dataclass(slots=True)
class CatalogFolder:
    """Reads models.yaml of a folder; `refresh` is one stat while nothing changes. One thread at a time."""

    path: str
    _stamp: _Stamp | None = None
    """None: read it again next time."""
    _content: bytes | None = None
    _answer: CatalogFiles = CatalogFiles()

    def refresh(self) -> CatalogFiles:
        """What the folder says now; the same object as before while nothing changed."""
        path = os.path.join(self.path, MODELS_FILE)
        try:
            status = os.stat(path)
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                self._read(path, stamp, status.st_mode)
        except (FileNotFoundError, NotADirectoryError):
            self._note_absence()
        except OSError as error:
            self._fail(path, f"The catalog cannot be read ({error.strerror}); correct the file's rights.")
        return self._answer

    def _read(self, path: str, stamp: _Stamp, mode: int) -> None:
        if not stat.S_ISREG(mode):
            self._fail(path, "This is no ordinary file; replace it by one.")
            return
        began_ns = time.time_ns()
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        is_racy = abs(began_ns - max(stamp[0], stamp[1])) < _RACY_NS
        self._stamp = None if is_racy else stamp
        if content == self._content:
            return
        self._content = content
        from fleettui.config.catalog_file import read_catalog_file

        catalog, problems = read_catalog_file(content, path)
        if catalog is not None:
            self._answer = CatalogFiles(catalog)
        else:
            problems = tuple([replace(problem, is_of_catalog=True) for problem in problems])
            self._answer = CatalogFiles(self._answer.catalog, self._kept(problems))

    def _note_absence(self) -> None:
        """Nobody needs a catalog; a folder that somebody named has to be there."""
        problems: tuple[ConfigProblem, ...] = ()
        if not os.path.isdir(self.path) and self.path != default_catalog_dir():  # noqa: PTH112
            message = (
                "The catalog's folder does not exist; create it, or name another with --catalog "
                "or $FLEETTUI_CATALOG."
            )
            problems = (ConfigProblem(self.path, None, None, message, is_of_catalog=True),)
        self._stamp = self._content = None
        if self._answer.catalog is not EMPTY_CATALOG or self._answer.problems != problems:
            self._answer = CatalogFiles(EMPTY_CATALOG, problems)

    def _fail(self, path: str, message: str) -> None:
        self._stamp = self._content = None
        problems = self._kept((ConfigProblem(path, None, None, message, is_of_catalog=True),))
        if self._answer.problems != problems:
            self._answer = CatalogFiles(self._answer.catalog, problems)

    def _kept(self, problems: tuple[ConfigProblem, ...]) -> tuple[ConfigProblem, ...]:
        """Says at the first problem which catalog is in use."""
        if self._answer.catalog is EMPTY_CATALOG:
            return problems
        kept = f"{problems[0].message} The last good version of the catalog stays in use until then."
        return (replace(problems[0], message=kept), *problems[1:])


def load_catalog_files(path: str) -> CatalogFiles:
    """Reads the folder once."""
    return CatalogFolder(path).refresh()
