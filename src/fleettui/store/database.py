"""The state file: opening, schema versions, transactions."""

# ruff: noqa: PTH100, PTH101, PTH103, PTH110, PTH116, PTH118, PTH120, PTH208
# loading pathlib would cost a warm --route 12 ms
from __future__ import annotations

import os
import sqlite3
from _thread import allocate_lock  # what threading.Lock is, without loading threading
from collections.abc import Iterator
from contextlib import contextmanager

FILE_NAME = "state.db"
BUSY_TIMEOUT_S = 2.0
"""How long a call waits for another process before it gives up; in WAL mode readers never wait."""

_open_here: dict[str, int] = {}
"""Connections of this process by file. Beside them the file may not be opened and closed by other means:
POSIX then drops all locks of this process on it, and another process would take the WAL away from us."""
_opening = allocate_lock()
"""Held while a file is opened, so that no thread reads its header while another one takes its locks."""

_SCHEMA_DIR = os.path.join(os.path.dirname(__file__), "schema")


class StoreError(Exception):
    """The state file cannot be used; the text says which file, why and what to do."""


class StoreBusyError(StoreError):
    """Another process holds the state file longer than the busy timeout; trying again later is enough."""


class Store:
    """One open state file. Calls from several threads take turns."""

    def __init__(
        self, path: str, connection: sqlite3.Connection, *, is_readonly: bool, has_locks: bool = True
    ) -> None:
        self.path = path
        self.connection = connection
        self.is_readonly = is_readonly
        self.memo: dict[str, object] = {}
        """What a table's module keeps between calls of one process, by module name."""
        self._lock = allocate_lock()
        self._counted_path = os.path.realpath(path) if has_locks else None
        if self._counted_path is not None:
            _open_here[self._counted_path] = _open_here.get(self._counted_path, 0) + 1

    @classmethod
    def open(cls, state_dir: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Store:
        """The state file of `state_dir`, created and brought to our schema. Raises StoreError."""
        with _opening:
            return cls._open(os.path.join(state_dir, FILE_NAME), state_dir, busy_timeout_s)

    @classmethod
    def _open(cls, path: str, state_dir: str, busy_timeout_s: float) -> Store:
        try:
            os.makedirs(state_dir, mode=0o700, exist_ok=True)
            if not _is_open_here(path):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            if os.stat(path).st_mode & 0o077:
                os.chmod(path, 0o600)
        except OSError as error:
            raise StoreError(
                f"{path}: the state file cannot be written ({error.strerror}); "
                "correct its owner and rights, or name another folder with --state-dir"
            ) from None
        with translated_errors(path):
            connection = _connect(path, busy_timeout_s)
            try:
                _use_wal(connection)
                _migrate(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, is_readonly=False)

    @classmethod
    def open_readonly(cls, state_dir: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Store | None:
        """The state file for reading; creates nothing, None where there is none. Raises StoreError."""
        with _opening:
            return cls._open_readonly(os.path.join(state_dir, FILE_NAME), busy_timeout_s)

    @classmethod
    def _open_readonly(cls, path: str, busy_timeout_s: float) -> Store | None:
        is_at_rest = False
        if not _is_open_here(path):
            header = _read_header(path)
            if not header:
                return None
            # A WAL file that nobody has open lacks its -wal; SQLite would create one to read it. Nobody
            # writes then, so it may be read as it is.
            is_at_rest = header[18:20] == b"\x02\x02" and not os.path.exists(f"{path}-wal")
        with translated_errors(path):
            connection = _connect(path, busy_timeout_s, "immutable=1" if is_at_rest else "mode=ro")
            try:
                version = _user_version(connection)
                _refuse_newer(version, path)
            except BaseException:
                connection.close()
                raise
        if version == 0:
            connection.close()
            return None
        return cls(path, connection, is_readonly=True, has_locks=not is_at_rest)

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """All or nothing; `DEFERRED` for reads of one moment. Raises StoreError."""
        with self._lock, translated_errors(self.path):
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield self.connection
                self.connection.execute("COMMIT")  # without WAL it may fail too, and would stay open
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def has_table(self, name: str) -> bool:
        """False for the file of an older fleettui, opened for reading only and so not brought up to date."""
        if not self.is_readonly:
            return True
        found = self.connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
        return found.fetchone() is not None

    def read_revision(self, table: str, folder: str) -> int:
        """Changes with every `raise_revision` of that folder; 0 before the first."""
        if not self.has_table(table):
            return 0
        row = self.connection.execute(
            f"SELECT revision FROM {table} WHERE machines_dir = ?",  # noqa: S608 - ours
            (folder,),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def raise_revision(self, table: str, folder: str) -> None:
        """Something of that folder is changed in this transaction: who follows it reads it anew."""
        self.connection.execute(
            f"INSERT INTO {table} (machines_dir, revision) VALUES (?, 1) "  # noqa: S608 - ours
            "ON CONFLICT (machines_dir) DO UPDATE SET revision = revision + 1",
            (folder,),
        )

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; more than once is fine."""
        with self._lock:
            self.connection.close()
            path, self._counted_path = self._counted_path, None
            if path is not None:
                left = _open_here.pop(path) - 1
                if left:
                    _open_here[path] = left


def _is_open_here(path: str) -> bool:
    return os.path.realpath(path) in _open_here and os.path.exists(path)


def _read_header(path: str) -> bytes:
    """The first bytes of the file; empty where there is none. Raises StoreError."""
    try:
        with open(path, "rb") as stream:
            return stream.read(20)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(
            f"{path}: the state file cannot be read ({error.strerror}); correct its owner and rights"
        ) from None


@contextmanager
def translated_errors(path: str) -> Iterator[None]:
    """Turns SQLite's errors into StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(path, error) from error


def _store_error(path: str, error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(f"{path}: another process is writing to the state file; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(
            f"{path}: this is no state file of fleettui or it is damaged; move it away "
            f"(mv {FILE_NAME} {FILE_NAME}.broken) and start again: only what fleettui itself "
            "remembers is lost, machine files and machines are not touched"
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path}: the disk is full; free some space")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(f"{path}: the state file cannot be used ({error}); correct its owner and rights")
    return StoreError(
        f"{path}: the state file cannot be used ({error}); name another folder with --state-dir"
    )


def _connect(path: str, busy_timeout_s: float, options: str = "") -> sqlite3.Connection:
    # ? and # end the path of an SQLite URI, % begins an escape.
    escaped = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(
        f"file:{escaped}?{options}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,  # our lock makes threads take turns
    )


def _use_wal(connection: sqlite3.Connection) -> None:
    """WAL where the file system can: readers never wait, and a commit costs no fsync."""
    try:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError:
        return  # another process is in the middle of it, or there is no shared memory here
    connection.execute("PRAGMA synchronous=NORMAL")


def _user_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _schema_files() -> list[str]:
    """Names of the schema files in order; the n-th brings the file to version n."""
    return sorted(name for name in os.listdir(_SCHEMA_DIR) if name.endswith(".sql"))


def _refuse_newer(version: int, path: str) -> None:
    ours = len(_schema_files())
    if version > ours:
        raise StoreError(
            f"{path}: written by a newer fleettui (schema {version}, this one knows {ours}); "
            "update this fleettui, or name another folder with --state-dir"
        )


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Runs the missing schema files, each in one transaction; another process may do the same meanwhile."""
    files = _schema_files()
    _refuse_newer(_user_version(connection), path)
    for number, name in enumerate(files, start=1):
        if _user_version(connection) >= number:
            continue
        with open(os.path.join(_SCHEMA_DIR, name), encoding="utf-8") as stream:
            script = stream.read()
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _user_version(connection) < number:
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; `executescript` would end our transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
