"""The loop of the GPU tools: nvidia-smi and ps, each under its own time limit, never twice at once.

Sections: `gpu` (cards, our standard fields) or `gpu:<field>:<field>…`, `apps` (compute processes), `ps`
(pid, user and arguments of the pids of the last `apps`), `find` (look for nvidia-smi again).
Exit codes beside the tool's own: 75 an earlier nvidia-smi still hangs, payload `hung <pid> <state>`;
76 every NVIDIA device sleeps and is not woken, payload as `grep -H . …/runtime_status`;
124 the time limit ended it; 127 with no payload: no nvidia-smi anywhere.
"""

from __future__ import annotations

from typing import Final

QUERY_FIELDS: Final = (
    "index", "uuid", "name", "driver_version", "memory.total", "memory.used", "memory.free",
    "utilization.gpu", "temperature.gpu", "power.draw", "power.limit", "fan.speed", "pstate", "pci.bus_id",
)  # fmt: skip
"""What section `gpu` asks of nvidia-smi, in this order."""

APPS_FIELDS: Final = ("gpu_uuid", "pid", "process_name", "used_memory")

TOOL_LIMIT_S: Final = 15
"""Slow drivers take up to 10 s for a call; past this one the tool is ended."""

_PLACES = (
    "/usr/bin /usr/local/bin /usr/lib/wsl/lib /run/current-system/sw/bin"
    " /opt/bin /var/lib/nvidia/bin /usr/local/nvidia/bin"
)

# N: path of nvidia-smi, H: pid of a hung one, S: its state, A: which devices sleep, B: set once a call was
# ended, so that no second call follows in the same request; P: pids of the last `apps`.
_START = rf"""
FLEETTUI_LOOP=gpu; export FLEETTUI_LOOP;
P=;

find_tool() {{
  N=; IFS=:;
  for d in $PATH {_PLACES}; do
    [ -f "$d/nvidia-smi" ] && [ -x "$d/nvidia-smi" ] && {{ N=$d/nvidia-smi; break; }};
  done;
  unset IFS;
}};

# Is the nvidia-smi of pid $1 stuck? In state D for over 5 s; or ours (by its environment) and left behind:
# in state D without the shell or timeout that started it, or older than any time limit.
# Fields of stat after `comm)`: 1 state, 2 ppid, 20 start in 1/100 s after boot. The kernel ends environ
# without a newline, so read says no and still has it.
stuck() {{
  p=$1; s=; read -r s </proc/$p/stat || return 1;
  set -- ${{s##*) }}; S=$1; c=;
  e=; read -r e </proc/$p/environ;
  u=; read -r u z </proc/uptime; u=${{u%%.*}}; g=$((${{u:-0}} - ${{20:-0}} / 100));
  case $S in
    Z|X) return 1;;
    D) [ $g -ge 5 ] && return 0;;
  esac;
  case $e in
    *FLEETTUI_LOOP=*) ;;
    *) return 1;;
  esac;
  [ $g -ge {TOOL_LIMIT_S + 5} ] && return 0;
  [ $S = D ] || return 1;
  [ $2 = 1 ] && return 0;
  read -r c </proc/$2/comm;
  case $c in
    timeout|sh|bash|dash|ash|busybox) return 1;;
  esac;
}};

find_hung() {{
  H=; set +f;
  for f in /proc/[0-9]*/comm; do
    c=; read -r c <$f;
    case $c in
      nvidia-smi) f=${{f%/comm}}; f=${{f##*/}}; stuck $f && {{ H=$f; break; }};;
    esac;
  done;
  set -f;
}};

# True when there are NVIDIA devices and all of them are suspended; looks no further than the first other.
asleep() {{
  A=; set +f;
  for f in /sys/bus/pci/drivers/nvidia/*/power/runtime_status; do
    c=; read -r c <$f;
    case $c in
      suspended) A="$A$f:$c$n";;
      *) A=; break;;
    esac;
  done;
  set -f;
  [ -n "$A" ];
}};

# exec: bash would fork once more. Exit codes by a signal are the time limit only when that much time passed.
run_tool() {{
  b=; read -r b z </proc/uptime; b=${{b%%.*}};
  v=$(exec ${{T:+$T {TOOL_LIMIT_S}}} "$N" "$@" 2>&1 </dev/null); r=$?;
  case $r in
    124|137|143)
      B=1; e=; read -r e z </proc/uptime; e=${{e%%.*}};
      [ $((${{e:-99}} - ${{b:-0}})) -ge {TOOL_LIMIT_S - 1} ] && r=124;
      find_hung;;
  esac;
}};

ask() {{
  k=$1; shift; v=;
  if [ -n "$H" ] && stuck $H; then add $k 75 "hung $H $S"; return; fi;
  H=;
  if [ -n "$B" ]; then add $k 124 "";
  elif [ -z "$N" ]; then add $k 127 "";
  elif asleep; then add $k 76 "$A";
  else run_tool "$@"; add $k $r "$v"; fi;
}};

# `[ x -gt 0 ]` is false for anything but a positive number.
find_pids() {{
  P=; IFS=$n;
  for l in $v; do
    p=${{l#*, }}; p=${{p%%,*}};
    [ "$p" -gt 0 ] && P=$P${{P:+,}}$p;
  done;
  unset IFS;
}};

# procps cuts user names to 8 without a width; others know no width; busybox lists everything.
list_owners() {{
  v=$(exec ${{T:+$T 3}} ps -ww -o pid= -o user:32= -o args= -p $P </dev/null); r=$?;
  [ -n "$v" ] || [ $r -ge 124 ] || {{
    v=$(exec ${{T:+$T 3}} ps -o pid= -o user= -o args= -p $P </dev/null); r=$?;
  }};
  [ -n "$v" ] || [ $r -ge 124 ] || {{
    o=$(exec ${{T:+$T 3}} ps -o pid,user,args </dev/null); r=$?;
    IFS=$n;
    for l in $o; do
      p=${{l#"${{l%%[0-9]*}}"}}; p=${{p%% *}};
      case ,$P, in
        *,"$p",*) v="$v$l$n";;
      esac;
    done;
    unset IFS;
  }};
}};

find_tool; find_hung;
"""

_CASES = rf"""
  gpu)
    ask gpu --query-gpu={",".join(QUERY_FIELDS)} --format=csv,noheader,nounits;;
  gpu:*)
    IFS=:; set -- ${{w#gpu:}}; IFS=,; x="$*"; unset IFS;
    ask gpu --query-gpu=$x --format=csv,noheader,nounits;;
  apps)
    ask apps --query-compute-apps={",".join(APPS_FIELDS)} --format=csv,noheader,nounits;
    find_pids;;
  ps)
    v=; r=0;
    [ -z "$P" ] || list_owners;
    add ps $r "$v";;
  find) find_tool; find_hung; add find 0 "$N";;
"""

GPU_LOOP = (_START, _CASES)
"""What runs once at the start, and the cases of the loop."""
