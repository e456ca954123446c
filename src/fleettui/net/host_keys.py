"""Which host key is trusted: `ssh.host_key`, our own pins, then the user's known_hosts. Pure.

known_hosts is indexed once, without decoding a key: a key counts by its bytes. Format: sshd(8),
SSH_KNOWN_HOSTS FILE FORMAT; which name is looked up: sshconnect.c of OpenSSH (the address is not,
as with its default CheckHostIP=no).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from fleettui.model.machine import ConfigProblem
from fleettui.model.snapshot import HostKeyOffer

KeyVerdict = Literal["trusted", "unknown", "changed", "revoked"]
KeyKind = Literal["key", "authority", "revoked"]
_Entry = tuple[KeyKind, str, bytes]
"""Kind, type and blob of a line; a KnownKey once somebody asks for it."""
_MARKERS: dict[str, KeyKind] = {"": "key", "@cert-authority": "authority", "@revoked": "revoked"}
MAX_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key of a known_hosts line."""

    kind: KeyKind
    key_type: str
    """`ssh-ed25519`, …"""
    blob: bytes
    """The public key as it goes over the wire."""


@dataclass(frozen=True, slots=True)
class HostTrust:
    """What one host's key is compared with."""

    fingerprints: tuple[str, ...] = ()
    """`ssh.host_key` and pins: when there are any, nothing else counts."""
    keys: tuple[KnownKey, ...] = ()
    fallback_keys: tuple[KnownKey, ...] = ()
    """Keys of the bare name where the port is not 22: a match is trusted, a mismatch says nothing."""
    is_reading: bool = False
    """The key shall only be looked at: none is trusted; `fingerprints` are those to look for."""

    def limited(self, *, counts_known_hosts: bool, is_reading: bool) -> HostTrust:
        """The same without known_hosts (what is revoked there stays revoked), or for reading only."""
        if counts_known_hosts and not is_reading:
            return self
        return HostTrust(self.fingerprints, self.revoked, (), is_reading)

    @property
    def authorities(self) -> tuple[KnownKey, ...]:
        """Keys that may sign host certificates."""
        if self.fingerprints:
            return ()
        return tuple(key for key in self.keys + self.fallback_keys if key.kind == "authority")

    @property
    def revoked(self) -> tuple[KnownKey, ...]:
        return tuple(key for key in self.keys + self.fallback_keys if key.kind == "revoked")

    @property
    def key_types(self) -> tuple[str, ...]:
        """Types of the keys we know, to be asked for first."""
        known = [key for key in self.keys + self.fallback_keys if key.kind == "key"]
        return tuple(dict.fromkeys(key.key_type for key in known))

    @property
    def expected(self) -> tuple[str, ...]:
        """Fingerprints we know."""
        if self.fingerprints:
            return self.fingerprints
        return tuple(fingerprint_of(key.blob) for key in self.keys if key.kind == "key")

    def judge(self, blob: bytes) -> KeyVerdict:
        """Compare an offered key."""
        if any(key.blob == blob for key in self.revoked):
            return "revoked"
        if self.is_reading:
            return "unknown"
        if self.fingerprints:
            return "trusted" if fingerprint_of(blob) in self.fingerprints else "changed"
        known = [key for key in self.keys if key.kind == "key"]
        if any(key.blob == blob for key in known):
            return "trusted"
        if any(key.kind == "key" and key.blob == blob for key in self.fallback_keys):
            return "trusted"
        return "changed" if known else "unknown"


def fingerprint_of(blob: bytes) -> str:
    """`SHA256:…` as ssh-keygen prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def public_key_text(blob: bytes) -> str:
    """`ssh-ed25519 AAAA…`, as known_hosts has it: the type stands in front of the key's own bytes."""
    length = int.from_bytes(blob[:4], "big")
    return f"{blob[4 : 4 + length].decode('ascii', 'replace')} {base64.b64encode(blob).decode()}"


def offer_of(key_type: str, blob: bytes, expected: tuple[str, ...] = ()) -> HostKeyOffer:
    """What a machine offered, for the operator to compare."""
    code = base64.b32encode(hashlib.sha256(blob).digest()).decode()[:8]
    return HostKeyOffer(
        key_type=short_key_type(key_type),
        fingerprint=fingerprint_of(blob),
        code=f"{code[:4]}-{code[4:]}",
        expected=expected,
    )


def short_key_type(key_type: str) -> str:
    """`ssh-ed25519` -> `ED25519`, as ssh-keygen names it."""
    name = key_type.partition("@")[0]
    is_sk = name.startswith("sk-")
    for needle, short in (("ed25519", "ED25519"), ("ecdsa", "ECDSA"), ("ed448", "ED448"), ("rsa", "RSA")):
        if needle in name:
            return short + ("-SK" if is_sk else "")
    return "DSA" if "dss" in name else name.upper()


def normalise_fingerprint(text: str) -> str:
    """`SHA256:abc=` or bare base64 -> `SHA256:abc`."""
    text = text.strip()
    if text[:7].upper() == "SHA256:":
        text = text[7:]
    return "SHA256:" + text.rstrip("=")


@dataclass(slots=True)
class KnownHosts:
    """An index over known_hosts files: 5 MB are read in 0.1 s."""

    problems: list[ConfigProblem] = field(default_factory=list)
    _exact: dict[str, list[_Entry]] = field(default_factory=dict)
    _patterns: list[tuple[tuple[str, ...], _Entry]] = field(default_factory=list)
    _hashed: list[tuple[bytes, bytes, _Entry]] = field(default_factory=list)
    _found: dict[str, tuple[KnownKey, ...]] = field(default_factory=dict)
    """Names looked up before: a hashed line costs 3 us a name."""

    def add_file(self, path: str, text: str) -> None:
        """Index a file; an odd line is skipped and noted."""
        self._found.clear()
        for number, line in enumerate(text.split("\n"), 1):
            words = line.split(None, 4)
            if not words or words[0][0] == "#":
                continue
            reason = self._add_line(words)
            if reason and len(self.problems) < MAX_PROBLEMS:
                reason = "".join(char if char.isprintable() else "·" for char in reason)
                self.problems.append(ConfigProblem(path, number, None, f"{reason}; the line is skipped"))

    def trust_for(self, host: str, port: int, *, alias: str | None, pins: Sequence[str] = ()) -> HostTrust:
        """What is known of a host under the name the operator uses."""
        name = (alias or host).lower()
        fingerprints = tuple(normalise_fingerprint(pin) for pin in pins)
        if alias or port == 22:
            return HostTrust(fingerprints, self._find(name))
        return HostTrust(fingerprints, self._find(f"[{name}]:{port}"), self._find(name))

    def _find(self, name: str) -> tuple[KnownKey, ...]:
        known = self._found.get(name)
        if known is not None:
            return known
        found = list(self._exact.get(name, ()))
        for patterns, entry in self._patterns:
            if _matches(name, patterns):
                found.append(entry)
        encoded = name.encode("utf-8", "replace")
        for salt, digest, entry in self._hashed:
            if hmac.digest(salt, encoded, "sha1") == digest:
                found.append(entry)
        keys = tuple(KnownKey(kind, key_type, blob) for kind, key_type, blob in dict.fromkeys(found))
        self._found[name] = keys
        return keys

    def _add_line(self, words: list[str]) -> str | None:
        """Index one line; returns what is wrong with it."""
        marker = words.pop(0).lower() if words[0][0] == "@" else ""
        kind = _MARKERS.get(marker)
        if kind is None:
            return f"unknown marker {marker[:40]}"
        if len(words) < 3:
            return "not a known_hosts entry (names, key type, key)"
        names, key_type, encoded = words[:3]
        if key_type.isdigit():
            return "SSH protocol 1 key"
        try:
            blob = binascii.a2b_base64(encoded, strict_mode=True)
        except ValueError:
            return "the key is not base64"
        length = int.from_bytes(blob[:4], "big")
        if blob[4 : 4 + length] != key_type.encode("utf-8", "replace"):
            return f"the key is not of the type it says ({key_type[:40]})"
        entry = (kind, key_type, blob)
        if names[0] == "|":
            return self._add_hashed(names, entry)
        patterns = [part for part in names.lower().split(",") if part]
        if "*" in names or "?" in names or "!" in names:
            self._patterns.append((tuple(patterns), entry))
            return None
        for part in patterns:
            name = part.removesuffix(":22").strip("[]") if part[0] == "[" and part.endswith("]:22") else part
            self._exact.setdefault(name, []).append(entry)
        return None

    def _add_hashed(self, names: str, entry: _Entry) -> str | None:
        parts = names.split("|")
        if len(parts) != 4 or parts[1] != "1":
            return f"unknown hash form {names[:12]}"
        try:
            salt, digest = binascii.a2b_base64(parts[2]), binascii.a2b_base64(parts[3])
        except ValueError:
            return "the hashed name is not base64"
        self._hashed.append((salt, digest, entry))
        return None


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """OpenSSH's match_hostname: one negated match rules the line out, else any match counts."""
    is_match = False
    for pattern in patterns:
        is_negated = pattern.startswith("!")
        if match_glob(name, pattern[1:] if is_negated else pattern):
            if is_negated:
                return False
            is_match = True
    return is_match


def match_glob(name: str, pattern: str) -> bool:
    """`*` and `?` only; a bracket is a plain character here, as in `[host]:port`."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))
