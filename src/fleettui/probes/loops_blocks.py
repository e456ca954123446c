"""The part of the facts loop that lists disks: lsblk in the best form this machine knows, else /sys/block."""

from __future__ import annotations

# K: the form that worked, kept for the connection. Before 2.27 lsblk has no -J, and an unknown column is an
# error. list_blocks answers without lsblk: lines `sys <name> <sectors> <rotational> <model>`, and
# `mpath <name> <path>…` for multipath maps. What has no `device` is made of other devices (dm, md, loop).
BLOCKS_START = r"""
K=;
list_blocks() {
  set +f;
  for d in /sys/block/*; do
    [ -e "$d/size" ] || continue;
    if [ -e "$d/device" ]; then
      a=; read -r a <"$d/size"; b=; read -r b <"$d/queue/rotational"; c=; read -r c <"$d/device/model";
      h=; read -r h <"$d/hidden";
      [ "$h" = 1 ] || v="${v}sys ${d##*/} ${a:-0} ${b:--} $c$n";
    else
      a=; read -r a <"$d/dm/uuid";
      case $a in
        mpath-*)
          v="${v}mpath ${d##*/}";
          for a in "$d"/slaves/*; do v="$v ${a##*/}"; done;
          v="$v$n";;
      esac;
    fi;
  done;
  set -f;
  [ -z "$v" ] || r=0;
};
"""

_COLUMNS = "NAME,TYPE,SIZE,ROTA,MODEL"

BLOCKS_CASE = rf"""
  blocks)
    v=; r=127;
    for o in ${{K:+"$K"}} "-J -b -o {_COLUMNS},TRAN,MOUNTPOINT" "-J -b -o {_COLUMNS}"
      "-P -b -o {_COLUMNS},PKNAME,MOUNTPOINT" "-P -b -o {_COLUMNS}"; do
      v=$(exec ${{T:+$T 2}} lsblk $o </dev/null); r=$?;
      [ -z "$v" ] || {{ K=$o; break; }};
      [ $r -lt 124 ] || break;
    done;
    [ -n "$v" ] || case $r in
      124|137|143) ;;
      *) list_blocks;;
    esac;
    add blocks $r "$v";;
"""
