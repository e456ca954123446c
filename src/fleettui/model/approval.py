"""What the operator types and compares to approve a host key."""

from __future__ import annotations

PENDING_S = 900.0
"""A key that nobody decided about is asked for no longer than this; then the entry has expired."""
PENDING_WORDS = f"{PENDING_S / 60:.0f} min"

COMPARE_LINE = (
    'for f in /etc/ssh/ssh_host_*_key.pub; do k=$(ssh-keygen -lf "$f"); h=${k#*SHA256:}; '
    'echo "$(echo "${h%% *}=" | base64 -d | base32 | fold -w4 | head -n2 | paste -sd- -)  $k"; done'
)
"""For `sh` on the machine: `KXO6-CY5H  256 SHA256:… root@ada (ED25519)` for each of its host keys."""

FINGERPRINT_DECIDES = "the full fingerprint decides, the code is for reading aloud"


def machines_command(verb: str, name: str, *options: str) -> str:
    """`fleettui machines approve ada`, ready to be pasted into a shell."""
    return " ".join(["fleettui machines", verb, quoted(name), *options])


def approving_command(name: str, fingerprint: str = "", expected: tuple[str, ...] = ()) -> str:
    """The command that approves a key that was shown; a changed one is named, so that nobody approves it by
    habit."""
    return machines_command("approve", name, *(("--fingerprint", fingerprint) if expected else ()))


def quoted(word: str) -> str:
    """A word as sh reads it back; plain ones stay plain."""
    plain = word
    for sign in "-_.@:/+=":
        plain = plain.replace(sign, "")
    if plain.isalnum() and plain.isascii():
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def code_of(fingerprint: str) -> str:
    """First 8 base32 characters of the hash in `SHA256:…`, as `XXXX-XXXX`; empty where it is none."""
    from base64 import b32encode, b64decode

    try:
        digest = b64decode(fingerprint.removeprefix("SHA256:") + "=", validate=True)
    except ValueError:
        return ""
    code = b32encode(digest).decode()[:8]
    return f"{code[:4]}-{code[4:]}"


def is_fingerprint(text: str) -> bool:
    """A whole `SHA256:…` fingerprint: 43 characters of base64, without the padding."""
    rest = text.removeprefix("SHA256:")
    if rest == text or len(rest) != 43:
        return False
    return rest.isascii() and rest.replace("+", "").replace("/", "").isalnum()
