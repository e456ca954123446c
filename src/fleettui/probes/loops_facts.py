"""The loop of a machine's own facts: /proc by `read` builtins, no fork; slow sections on request.

Sections: `stat load uptime mem net`, no fork. On request, with time limits of their own: `disks` (df),
`uname`, `os`, `cpu`. A hanging df costs this loop its limit, so the limits stay below the 6 s after which a
silent machine counts as offline.
"""

from __future__ import annotations

_START = ""

_CASES = r"""
  stat) v=; read -r v </proc/stat; add stat $? "$v";;
  load) v=; read -r v </proc/loadavg; add load $? "$v";;
  uptime) v=; read -r v </proc/uptime; add uptime $? "$v";;
  mem)
    v=;
    while read -r l; do
      case $l in
        Mem*|Swap[TF]*) v="$v$l$n";;
      esac;
      case $l in
        SwapFree*) break;;
      esac;
    done </proc/meminfo;
    add mem $? "$v";;
# veth: one end of each container, counted again at its bridge; hundreds of them on some machines
  net)
    v=;
    while read -r l; do
      case $l in
        lo:*|veth*) ;;
        *:*) v="$v$l$n";;
      esac;
    done </proc/net/dev;
    add net $? "$v";;
# busybox df before 1.36 has no -l
  disks)
    v=$(exec ${T:+$T 3} df -lPk </dev/null); r=$?;
    [ -n "$v" ] || [ $r -ge 124 ] || { v=$(exec ${T:+$T 3} df -Pk </dev/null); r=$?; };
    add disks $r "$v";;
  uname) v=$(exec uname -srm </dev/null); add uname $? "$v";;
  os)
    v=;
    for f in /etc/os-release /usr/lib/os-release; do
      [ -r $f ] || continue;
      while read -r l; do
        case $l in
          NAME=*|PRETTY_NAME=*|ID=*|VERSION_ID=*) v="$v$l$n";;
        esac;
      done <$f;
      break;
    done;
    add os 0 "$v";;
  cpu)
    v=$(exec ${T:+$T 3} grep -E "^(processor|model name|CPU implementer|CPU part)" /proc/cpuinfo </dev/null);
    add cpu $? "$v";;
"""

FACTS_LOOP = (_START, _CASES)
"""What runs once at the start, and the cases of the loop."""
