"""The loop of `machines doctor`: what is asked of a machine only when the operator wants it checked.

Sections, beside `disks` of the fact loop: `who` (login shell, user and groups, a line each), `clock` (seconds
since the epoch), `journal` and `journal_ollama` (the last line of the kernel's and of Ollama's log, with
what journalctl complains of), `root` (how `/` is mounted), `listen` (listening TCP sockets).
"""

from __future__ import annotations

from fleettui.probes.loops_df import DF_START, DISKS_CASE

_CASES = r"""
  who)
    v="$SHELL$n$(exec ${T:+$T 3} id -un </dev/null)$n$(exec ${T:+$T 3} id -Gn </dev/null)";
    add who 0 "$v";;
# busybox date prints no fraction
  clock) v=$(exec ${T:+$T 3} date +%s.%N </dev/null); add clock $? "$v";;
# journalctl tells on stderr that it may not read
  journal|journal_ollama)
    case $w in
      journal) u=-k;;
      *) u="-u ollama";;
    esac;
    v=$(exec ${T:+$T 3} journalctl -n 1 $u -o short-iso --no-pager 2>&1 </dev/null); add $w $? "$v";;
  root)
    v=;
    while read -r d m k o z; do
      case $m in
        /) v="$d $k $o";;
      esac;
    done </proc/mounts;
    add root $? "$v";;
  listen)
    v=$(exec ${T:+$T 3} grep -h " 0A " /proc/net/tcp /proc/net/tcp6 </dev/null); add listen $? "$v";;
"""

DOCTOR_LOOP = (DF_START, _CASES + DISKS_CASE)
"""What runs once at the start, and the cases of the loop."""
