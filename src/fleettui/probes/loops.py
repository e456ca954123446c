"""The shell loops that run on a machine, one for each channel, and the command that starts one.

Each loop is POSIX sh (dash, bash, busybox ash; mksh, lksh and zsh under the name of sh) and writes nothing on
the machine. It reads a request line, asks what the line names and answers with one frame in one write (see
`frames`). The text has no single quote, no `!` and no newline, and a backslash only before a letter or digit
that fish and csh leave alone: so it passes every login shell as one single-quoted word.

A reader stands in front of the loop. At the end of input it kills whatever runs in the session of this shell,
so that nothing stays behind even while a tool hangs; only when this shell leads its own group (sshd and
`start_new_session` see to that), else it merely ends and the tool's own time limit does the rest. So the
channel's input must stay open until the answer came.
"""

from __future__ import annotations

from typing import Literal

from fleettui.probes.loops_amd import AMD_CASES, AMD_START
from fleettui.probes.loops_doctor import DOCTOR_LOOP
from fleettui.probes.loops_engine import ENGINE_LOOP
from fleettui.probes.loops_facts import FACTS_LOOP
from fleettui.probes.loops_gpu import GPU_LOOP
from fleettui.probes.loops_logs import LOGS_LOOP

LoopKind = Literal["facts", "gpu", "engine", "doctor", "logs"]

# t: token, n: a newline, I and J: marks of a frame, F: the frame so far, T: the form of timeout(1) that works
# here (empty: none).
# GNU timeout puts the tool into a process group of its own and ends all of it, also what a wrapper script
# started and what would keep the pipe of $( ) open. busybox before 1.30 wants -t.
# say: a Korn shell may have no printf of its own; two processes a tick then, and no frame beyond 128 KB.
_HEAD = r"""
LC_ALL=C; export LC_ALL;
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin;
exec 2>/dev/null;
set -f; unset IFS;
t=$1; n=$(printf "\nx"); n=${n%x};
T=;
for c in "timeout -k 2" timeout "timeout -t"; do
  $c 5 true </dev/null >/dev/null && { T=$c; break; };
done;
add() { F="$F$1 $2 ${#3}$n$3"; };
I=$(printf "\036x\037"); J=${I#*x}; I=${I%x*};
say() { printf "%s" "$1"; };
case $KSH_VERSION,$(command -v print) in
  ?*,print) say() { print -rn -- "$1"; };;
esac;
"""

# In a pipeline $$ is still the shell that the login shell became. Fields of stat after `comm)`: 3 group,
# 4 session. Closing stdout first lets an idle loop end by itself.
_READER = r"""
{
  while IFS= read -r l; do say "$l$n"; done;
  exec >&-;
  s=; read -r s </proc/$$/stat && { set -- ${s##*) }; s=$3; } || s=$(ps -o pgid= -p $$);
  [ "$s" -eq $$ ] || exit 0;
  k=; set +f;
  for f in /proc/[0-9]*/stat; do
    s=; read -r s <$f; set -- ${s##*) }; f=${f%/stat};
    case "$3 $4" in
      "$$ $$") ;;
      *" $$") k="$k ${f##*/}";;
    esac;
  done;
  [ -z "$k" ] || kill -9 $k;
  kill -9 0;
}
"""

_LOOP_HEAD = "while read -r q s; do F=; B=; for w in $s; do case $w in"

_LOOP_TAIL = r"""
  *) add "${w%%:*}" 64 "";;
  esac; done;
  say "${I}FT $t $q$n$F$J$t $q$n";
done
"""

_PARTS: dict[LoopKind, tuple[str, str]] = {
    "facts": FACTS_LOOP,
    "gpu": (GPU_LOOP[0] + AMD_START, GPU_LOOP[1] + AMD_CASES),
    "engine": ENGINE_LOOP,
    "doctor": DOCTOR_LOOP,
    "logs": LOGS_LOOP,
}


def one_line(script: str) -> str:
    """The script as one line: indentation and comment lines dropped, lines joined by blanks."""
    lines = (line.strip() for line in script.splitlines())
    return " ".join(line for line in lines if line and not line.startswith("#"))


def _loop_script(kind: LoopKind) -> str:
    start, cases = _PARTS[kind]
    worker = f"{{ {start} {_LOOP_HEAD} {cases} {_LOOP_TAIL}; }}"
    return one_line(f"{_HEAD}\n{_READER} | \n{worker}")


_MAX_WORD = 6000
"""csh takes words of less than 8192 bytes."""


def _start_command(script: str, name: str) -> str:
    """The exec string up to the token; a script that is too long for one word is put together by /bin/sh."""
    if len(script) <= _MAX_WORD:
        return f"exec /bin/sh -c '{script}' {name} "
    words = [""]
    for piece in script.split(" "):  # at a blank: a backslash before the quote would mean something to fish
        if len(words[-1]) + len(piece) >= _MAX_WORD:
            words.append("")
        words[-1] += f"{piece} "
    # The words are $0, $1 …; then come the name and the token, which alone is left to the script.
    parts = "".join("$" + str(number) for number in range(len(words)))
    joined = " ".join(f"'{word}'" for word in words)
    return f"exec /bin/sh -c 's={parts}; shift {len(words)}; eval \"$s\"' {joined} {name} "


_COMMANDS: dict[str, str] = {kind: _start_command(_loop_script(kind), f"fleettui-{kind}") for kind in _PARTS}


def loop_command(kind: LoopKind, token: str) -> str:
    """The exec string that starts a loop: the same for every login shell. Token: 16 hex characters."""
    if not _is_token(token):
        raise ValueError("a token is 16 lower-case hex characters")
    return _COMMANDS[kind] + token


def parse_loop_command(command: str) -> tuple[LoopKind, str] | None:
    """Kind and token of a loop's exec string; None for any other command."""
    words = command.rsplit(" ", 2)
    if len(words) != 3 or not words[0].startswith("exec /bin/sh -c '") or not _is_token(words[2]):
        return None
    for kind in _PARTS:
        if words[1] == f"fleettui-{kind}":
            return kind, words[2]
    return None


def _is_token(token: str) -> bool:
    return len(token) == 16 and all(char in "0123456789abcdef" for char in token)
