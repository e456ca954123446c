"""Private keys for a login: files decoded once, the agent asked anew each time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from fleettui.net.hops import Hop
from fleettui.net.stamps import FileStamp, stamp_of


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key file as found on disk."""

    path: str
    key: asyncssh.SSHKey | None = None
    """None: encrypted, missing or broken; the agent may hold it nevertheless."""
    certificate: asyncssh.SSHCertificate | None = None
    public_blob: bytes | None = None
    problem: str | None = None
    """What is wrong, with what to do."""


@dataclass(slots=True)
class KeySet:
    """Keys for one login, in the order they are offered, and what stood in the way of others."""

    keys: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    agent: asyncssh.SSHAgentClient | None = None

    def close(self) -> None:
        """End the conversation with the agent."""
        if self.agent is not None:
            self.agent.close()


class KeyRing:
    """Reads identity files once; hands out key objects."""

    def __init__(self, agent_path: str | None, default_identities: tuple[str, ...]) -> None:
        self._agent_path = agent_path
        self._default_identities = default_identities
        self._files: dict[str, tuple[tuple[FileStamp | None, ...], Identity]] = {}

    async def keys_for(self, hop: Hop) -> KeySet:
        """Named identities first (signed by the agent where it holds them), other agent keys, default files.

        Unlike ssh, which offers all agent keys before a named file: servers hang up after six keys.
        """
        keys = KeySet()
        agent_keys = await self._agent_keys(hop, keys)
        named = [self._read(path) for path in hop.identity_files or ()]
        identities = named
        if hop.identity_files is None:
            usual = [self._read(path) for path in self._default_identities]
            identities = [identity for identity in usual if identity.problem != "missing"]
        extra = [certificate for path in hop.certificate_files if (certificate := _read_certificate(path))]
        used: set[bytes] = set()
        if named:
            _offer(identities, agent_keys, keys, used, extra)
        if not hop.is_identities_only:
            for pair in agent_keys:
                if pair.public_data not in used:
                    used.add(pair.public_data)
                    keys.keys.append(pair)
        if not named:
            _offer(identities, agent_keys, keys, used, extra)
        if not keys.keys and not keys.problems:
            keys.problems.append("no private key found: start ssh-agent or name one with ssh.identity")
        return keys

    @property
    def paths(self) -> tuple[str, ...]:
        """Every private key file that may be used."""
        return tuple(dict.fromkeys((*self._default_identities, *self._files)))

    async def agent_blobs(self) -> tuple[bytes, ...]:
        """Public keys that the environment's agent holds now."""
        keys = KeySet()
        pairs = await self._ask_agent(self._agent_path, keys)
        keys.close()
        return tuple(pair.public_data for pair in pairs)

    async def _agent_keys(self, hop: Hop, keys: KeySet) -> list[asyncssh.SSHKeyPair]:
        path = self._agent_path
        if hop.identity_agent and hop.identity_agent != "SSH_AUTH_SOCK":
            path = None if hop.identity_agent == "none" else hop.identity_agent
        return await self._ask_agent(path, keys)

    @staticmethod
    async def _ask_agent(path: str | None, keys: KeySet) -> list[asyncssh.SSHKeyPair]:
        if not path:
            return []
        keys.agent = asyncssh.SSHAgentClient(path)
        try:
            async with asyncio.timeout(2):
                return list(await keys.agent.get_keys())
        except (OSError, ValueError, TimeoutError):
            # A stale SSH_AUTH_SOCK is common in tmux; key files may do.
            keys.close()
            keys.agent = None
            return []

    def _read(self, path: str) -> Identity:
        stamp = (stamp_of(path), stamp_of(path + ".pub"), stamp_of(path + "-cert.pub"))
        kept = self._files.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._files[path] = (stamp, _load_identity(path))
        return kept[1]


def _offer(
    identities: list[Identity],
    agent_keys: list[asyncssh.SSHKeyPair],
    keys: KeySet,
    used: set[bytes],
    certificates: list[asyncssh.SSHCertificate],
) -> None:
    """Append each identity, by the agent's copy where the agent has it."""
    for identity in identities:
        blob = identity.public_blob
        if blob is not None and blob in used:
            continue
        from_agent = next((pair for pair in agent_keys if pair.public_data == blob), None)
        if from_agent is not None:
            keys.keys.append(from_agent)
        elif identity.key is not None:
            own = identity.key.public_data
            matching = [
                item for item in (identity.certificate, *certificates) if item and item.key.public_data == own
            ]
            keys.keys.append((identity.key, matching[0]) if matching else identity.key)
        else:
            if identity.problem:
                keys.problems.append(f"key {identity.path} is {identity.problem}")
            continue
        if blob is not None:
            used.add(blob)


def _load_identity(path: str) -> Identity:
    public = _read_public(path + ".pub") or _read_public(path)
    try:
        key = asyncssh.read_private_key(path)
    except FileNotFoundError:
        return Identity(path, public_blob=public, problem="missing")
    except OSError as error:
        return Identity(path, public_blob=public, problem=f"not readable ({error.strerror})")
    except asyncssh.KeyEncryptionError:
        return Identity(path, public_blob=public, problem="encrypted: start ssh-agent or ssh-add")
    except (asyncssh.KeyImportError, ValueError) as error:
        if "assphrase" in str(error):
            return Identity(path, public_blob=public, problem="encrypted: start ssh-agent or ssh-add")
        is_public = public is not None and _read_public(path) is not None
        problem = "a public key that ssh-agent does not hold: ssh-add it" if is_public else "no private key"
        return Identity(path, public_blob=public, problem=problem)
    return Identity(path, key, _read_certificate(path + "-cert.pub"), key.public_data)


def _read_public(path: str) -> bytes | None:
    try:
        if Path(path).stat().st_size > 1 << 16:
            return None
        return asyncssh.read_public_key(path).public_data
    except (OSError, ValueError):
        return None


def _read_certificate(path: str) -> asyncssh.SSHCertificate | None:
    try:
        return asyncssh.read_certificate(path)
    except (OSError, ValueError):
        return None
