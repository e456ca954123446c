"""The disks section of the fact loop: df under a time limit, never a second one beside one that hangs.

A df that cannot even be killed (a dead mount) hangs the loop too; the client closes that loop, and the next
one finds the df and says so: exit code 75, payload `hung <pid> <state>`.
"""

from __future__ import annotations

from typing import Final

DF_LIMIT_S: Final = 3
HUNG_EXIT: Final = 75

# H: pid of a df of ours that hangs, S: its state. Ours by its environment, which the kernel ends without a
# newline, so that read says no and still has it. Fields of stat after `comm)`: 1 state, 20 start in 1/100 s.
DF_START = rf"""
FLEETTUI_LOOP=facts; export FLEETTUI_LOOP;
hangs() {{
  p=$1; s=; read -r s </proc/$p/stat || return 1;
  set -- ${{s##*) }}; S=$1; e=; read -r e </proc/$p/environ;
  case $S in
    Z|X) return 1;;
  esac;
  case $e in
    *FLEETTUI_LOOP=facts*) ;;
    *) return 1;;
  esac;
  u=; read -r u z </proc/uptime; u=${{u%%.*}}; g=$((${{u:-0}} - ${{20:-0}} / 100));
  [ $g -ge {DF_LIMIT_S + 5} ] || {{ [ $S = D ] && [ $g -ge {DF_LIMIT_S} ]; }};
}};
find_hung_df() {{
  H=; set +f;
  for f in /proc/[0-9]*/comm; do
    c=; read -r c <$f;
    case $c in
      df) f=${{f%/comm}}; f=${{f##*/}}; hangs $f && {{ H=$f; break; }};;
    esac;
  done;
  set -f;
}};
find_hung_df;
"""

# macOS means something else by -T, which prints the type; busybox df before 1.36 has no -l.
DISKS_CASE = rf"""
  disks)
    if [ -n "$H" ] && hangs $H; then r=75; v="hung $H $S";
    else
      H=;
      for o in -lPkT -lPk -Pk; do
        v=$(exec ${{T:+$T {DF_LIMIT_S}}} df $o </dev/null); r=$?;
        [ -z "$v" ] && [ $r -lt 124 ] || break;
      done;
      [ $r -lt 124 ] || find_hung_df;
    fi;
    add disks $r "$v";;
"""
