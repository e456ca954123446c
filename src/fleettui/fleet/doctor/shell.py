"""The login's shell: does it run what we ask, or is the account restricted?"""

from __future__ import annotations

from fleettui.fleet.doctor.check import Check, Outcome, failed, passed, split_advice, warned
from fleettui.fleet.doctor.context import Context, NoAnswer
from fleettui.model.unknown import Unknown
from fleettui.net.errors import LinkError
from fleettui.probes.clean import clean_text
from fleettui.probes.doctor import Account, parse_who
from fleettui.probes.frames import Section
from fleettui.probes.windows import NOT_SUPPORTED

_NOISE_SHOWN = 100


def not_without_posix(context: Context) -> str | None:
    """Windows has no /bin/sh: its GPUs alone are read."""
    return NOT_SUPPORTED if context.is_windows else None


def judge_shell(account: Account, noise: str) -> Outcome:
    """A shell that answered."""
    user = "?" if isinstance(account.user, Unknown) else account.user
    shell = "" if isinstance(account.login_shell, Unknown) else f", login shell {account.login_shell}"
    if noise:
        return warned(
            f"answers, and prints first: {clean_text(noise, _NOISE_SHOWN)!r}",
            f"harmless here, breaks scp and rsync: let the shell's start-up files of {user} print only "
            "when interactive",
        )
    return passed(f"runs commands as {user}{shell}")


def judge_no_shell(ending: str, noise: str, *, is_late: bool, limit_s: float) -> Outcome:
    """A login without a shell for us: restricted, a command of its own, none at all, or hung."""
    said = clean_text(noise, _NOISE_SHOWN)
    if is_late:
        evidence = f"logged in, the shell gave no answer within {limit_s:g} s"
        if said:
            evidence += f"; it printed {said!r}"
        return failed(
            evidence,
            "does authorized_keys or sshd_config force a command (ForceCommand, internal-sftp), "
            "does a start-up file wait?",
        )
    if "not available" in said or "nologin" in said:
        return failed(
            f"the account has no login shell; it said {said!r}", "give it one (chsh), or set ssh.user"
        )
    if said:
        word = "restricted" if "restricted" in said or "forbidden" in said else "forced to another command"
        return failed(
            f"the account is {word}; it said {said!r}",
            "allow this key /bin/sh: see command= in authorized_keys, ForceCommand in sshd_config, its shell",
        )
    return failed(
        f"no shell: the session {clean_text(ending, 120) or 'ended'}",
        "is the account's shell nologin or false, is a command forced? see sshd_config and /etc/passwd",
    )


async def _check_shell(context: Context) -> Outcome:
    try:
        frame = await context.ask("doctor", "who")
    except NoAnswer as silence:
        return judge_no_shell(silence.text, silence.noise, is_late=silence.is_late, limit_s=3.0)
    except LinkError as error:
        evidence, hint = split_advice(error.text)
        return failed(evidence, hint or "see the machine's sshd log")
    account = context.account = parse_who(frame.sections.get("who", Section(0, b"")).payload)
    return judge_shell(account, context.noise_of("doctor"))


SHELL_CHECK = Check("shell", "shell", _check_shell, ("authentication",), not_without_posix)
