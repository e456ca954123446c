"""The folder of the catalog, read again only where something changed."""

# ruff: noqa: PTH116, PTH118
from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, replace

from fleettui.config.paths import default_catalog_dir
from fleettui.config.yaml_document import MAX_BYTES, read_yaml
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.machine import ConfigProblem
from fleettui.model.placement import PlanRole

MODELS_FILE = "models.yaml"
ROLES_FILE = "roles.yaml"

_Stamp = tuple[int, int, int, int]
"""mtime and ctime in ns, size, inode."""

_RACY_NS = 50_000_000
"""A file this young when it was read may change again without a new stamp."""


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """What the folder says now."""

    catalog: Catalog = EMPTY_CATALOG
    """The last good version of each file while it is broken."""
    problems: tuple[ConfigProblem, ...] = ()
    """Those of models.yaml first, in order of line."""


@dataclass(slots=True)
class _FollowedFile:
    """One file of the folder; `look` is one stat while nothing changes."""

    path: str
    content: bytes | None = None
    """None: it is not there, or cannot be read."""
    complaint: str = ""
    """Why it cannot be read."""
    _stamp: _Stamp | None = None
    """None: read it again next time."""

    def look(self) -> bool:
        """True when its content, or what is wrong with it, is another than at the last look."""
        before = self.content, self.complaint
        try:
            status = os.stat(self.path)
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                self._read(stamp, status.st_mode)
        except (FileNotFoundError, NotADirectoryError):
            self._forget("")
        except OSError as error:
            self._forget(f"The catalog cannot be read ({error.strerror}); correct the file's rights.")
        return (self.content, self.complaint) != before

    def _read(self, stamp: _Stamp, mode: int) -> None:
        if not stat.S_ISREG(mode):
            self._forget("This is no ordinary file; replace it by one.")
            return
        began_ns = time.time_ns()
        with open(self.path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        is_racy = abs(began_ns - max(stamp[0], stamp[1])) < _RACY_NS
        self._stamp = None if is_racy else stamp
        self.content, self.complaint = content, ""

    def _forget(self, complaint: str) -> None:
        self._stamp = self.content = None
        self.complaint = complaint


class CatalogFolder:
    """Reads models.yaml and roles.yaml of a folder; `refresh` is two stats while nothing changes. One thread
    at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._models = _FollowedFile(os.path.join(path, MODELS_FILE))
        self._roles = _FollowedFile(os.path.join(path, ROLES_FILE))
        self._good_models = EMPTY_CATALOG
        """The last good version of models.yaml."""
        self._good_roles: tuple[PlanRole, ...] = ()
        self._is_absent = False
        self._answer: CatalogFiles | None = None

    def refresh(self) -> CatalogFiles:
        """What the folder says now; the same object as before while nothing changed."""
        has_models, has_roles = self._models.look(), self._roles.look()
        was_absent, self._is_absent = self._is_absent, self._must_be_missed()
        if self._answer is None or has_models or has_roles or was_absent != self._is_absent:
            self._answer = self._read()
        return self._answer

    def _must_be_missed(self) -> bool:
        """Nobody needs a catalog; a folder that somebody named has to be there."""
        if self._models.content is not None or self._roles.content is not None:
            return False
        return not os.path.isdir(self.path) and self.path != default_catalog_dir()  # noqa: PTH112

    def _read(self) -> CatalogFiles:
        if self._is_absent:
            message = (
                "The catalog's folder does not exist; create it, or name another with --catalog "
                "or $FLEETTUI_CATALOG."
            )
            self._good_models, self._good_roles = EMPTY_CATALOG, ()
            return CatalogFiles(
                EMPTY_CATALOG, (ConfigProblem(self.path, None, None, message, is_of_catalog=True),)
            )
        problems = [*self._read_models(), *self._read_roles()]
        catalog = self._good_models
        if self._good_roles or self._roles.content is not None:
            catalog = replace(catalog, roles=self._good_roles, roles_file=self._roles.path)
        before = EMPTY_CATALOG if self._answer is None else self._answer.catalog
        return CatalogFiles(before if before == catalog else catalog, tuple(problems))

    def _read_models(self) -> list[ConfigProblem]:
        file = self._models
        if file.content is None and not file.complaint:
            self._good_models = EMPTY_CATALOG
            return []
        catalog, problems = None, _complaints(file)
        if file.content is not None:
            from fleettui.config.catalog_file import read_catalog_file

            catalog, problems = read_catalog_file(file.content, file.path)
        if catalog is None:
            return _kept(
                problems, self._good_models is not EMPTY_CATALOG, "The last good version of the catalog"
            )
        self._good_models = catalog
        return []

    def _read_roles(self) -> list[ConfigProblem]:
        file = self._roles
        if file.content is None and not file.complaint:
            self._good_roles = ()
            return []
        roles, problems = None, _complaints(file)
        if file.content is not None:
            from fleettui.config.catalog_file import declared_engines
            from fleettui.config.catalog_roles_file import read_roles_file

            engines = [engine.name for engine in self._good_models.engines]
            if self._models.content is not None:
                engines += declared_engines(read_yaml(self._models.content).value)
            roles, problems = read_roles_file(file.content, file.path, list(dict.fromkeys(engines)))
        if roles is None:
            return _kept(problems, bool(self._good_roles), "The last good roles")
        self._good_roles = roles
        return []


def _complaints(file: _FollowedFile) -> tuple[ConfigProblem, ...]:
    return (ConfigProblem(file.path, None, None, file.complaint),)


def _kept(problems: tuple[ConfigProblem, ...], has_good: bool, what: str) -> list[ConfigProblem]:
    """Marked as the catalog's; the first says which version is in use."""
    told = [replace(problem, is_of_catalog=True) for problem in problems]
    if has_good and told:
        verb = "stay" if what.endswith("roles") else "stays"
        told[0] = replace(told[0], message=f"{told[0].message} {what} {verb} in use until then.")
    return told


def load_catalog_files(path: str) -> CatalogFiles:
    """Reads the folder once."""
    return CatalogFolder(path).refresh()
