"""Certificate and key of the server, from files; renewed ones count without a restart."""

from __future__ import annotations

import logging
import os
import ssl
import stat

from fleettui.serve.listening import ListenError

log = logging.getLogger(__name__)


class TlsFiles:
    """A context for TLS 1.2 and newer."""

    def __init__(self, cert: str, key: str) -> None:
        """`key` may be the same file. Raises ListenError where they cannot be used."""
        self._cert, self._key = cert, key
        self._marks = self._look()
        _check_key(key)
        self.context = self._load()

    def follow(self) -> None:
        """Take up files that were replaced; what cannot be used is told, and the old ones stay."""
        marks = self._look()
        if marks == self._marks:
            return
        self._marks = marks
        try:
            _check_key(self._key)
            self._load()  # first apart: a certificate without its key must not come into use
            self.context.load_cert_chain(self._cert, self._key)
        except (ListenError, OSError) as error:
            log.warning("the new certificate is not used: %s", error)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._cert, self._key, password=_no_password)
        except ssl.SSLError as error:
            why = error.reason or "no certificate and key that belong together, in PEM"
            raise ListenError(
                f"--tls-cert {self._cert}, --tls-key {self._key}: {why}",
                "both are PEM files, the certificate with its chain, the key without a password",
            ) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ListenError(f"--tls-cert {self._cert}, --tls-key {self._key}: {why}") from None
        return context

    def _look(self) -> object:
        marks = []
        for path in (self._cert, self._key):
            try:
                found = os.stat(path)  # noqa: PTH116 - as for tokens
            except OSError as error:
                marks.append((error.errno, 0, 0))
            else:
                marks.append((found.st_ino, found.st_mtime_ns, found.st_ctime_ns))
        return tuple(marks)


def _no_password() -> str:
    raise ValueError("the key has a password, which nobody can type here")


def _check_key(path: str) -> None:
    """Raises ListenError for a key that everybody may read; a group, as ssl-cert, is the system's own way."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116
    except OSError as error:
        raise ListenError(f"--tls-key {path}: {error.strerror or error}") from None
    if mode & 0o007:
        raise ListenError(
            f"--tls-key {path} has mode {mode:04o}: everybody on this machine may use it", f"chmod 600 {path}"
        )
