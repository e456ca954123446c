"""The loop of the GPU tools: nvidia-smi and ps, each under its own time limit, never twice at once.

Sections on every tick: `gpu` (cards, FAST_FIELDS) or `gpu:<field>:<field>…`. Every few ticks: `apps` (compute
processes) and `ps` (pid, user and arguments of the pids of the last `apps`). About once a minute:
`condition:<field>:…` (cards again, what changes rarely), `list` and `xml` (MIG instances; the XML cut down to
what tells their memory), `xid` (the last `NVRM: Xid` lines of the kernel log, behind a line with the uptime;
exit code 1: the log may not be read). Once a driver: `version`. On request: `find` (look for the tool again);
in front of `gpu` where the operator wants it `tool:<path>` (call that one) and `wake` (also where all sleep).
`took` comes with slow answers and with each condition: how long nvidia-smi ran, in 1/100 s.
Exit codes beside the tool's own: 75 an earlier nvidia-smi still hangs, payload `hung <pid> <state>`;
76 every NVIDIA device sleeps and is not woken, payload as `grep -H . …/runtime_status`;
77 WSL, which has no process list; 124 the time limit ended it; 127 with no payload: no nvidia-smi anywhere.
"""

from __future__ import annotations

from typing import Final

QUERY_FIELDS: Final = (
    "index", "uuid", "name", "driver_version", "memory.total", "memory.used", "memory.free",
    "utilization.gpu", "temperature.gpu", "power.draw", "power.limit", "fan.speed", "pstate", "pci.bus_id",
)  # fmt: skip
"""A card as the field's reports and tools list it: what `parse_gpus` reads unless told otherwise."""

CHANGING_FIELDS: Final = (
    "memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "power.draw", "fan.speed",
)  # fmt: skip

FAST_FIELDS: Final = (
    *CHANGING_FIELDS, "index", "uuid", "name", "driver_version", "memory.total", "power.limit", "pstate",
    "gpu_recovery_action", "mig.mode.current", "pci.bus_id",
)  # fmt: skip
"""What section `gpu` asks of nvidia-smi, in this order: first what changes, so that the rest of a row is the
same text at each poll; last the bus id, which tells whether a row is whole."""

CONDITION_FIELDS: Final = (
    "index", "uuid", "persistence_mode", "pstate", "utilization.gpu",
    "pcie.link.width.current", "pcie.link.width.max", "pcie.link.gen.current", "pcie.link.gen.max",
    "ecc.errors.uncorrected.volatile.total", "ecc.errors.corrected.volatile.total", "retired_pages.pending",
    "clocks_event_reasons.active", "addressing_mode", "compute_cap", "pci.bus_id",
)  # fmt: skip
"""What section `condition` asks of nvidia-smi, without what the driver refused."""

APPS_FIELDS: Final = ("gpu_uuid", "pid", "process_name", "used_memory")

TOOL_LIMIT_S: Final = 15
"""Slow drivers take up to 10 s for a call; past this one the tool is ended."""

SLOW_CALL_CS: Final = 100
"""From this duration on, 1/100 s, each answer says how long it took."""

XIDS_KEPT: Final = 8

_PLACES = (
    "/usr/bin /usr/local/bin /usr/lib/wsl/lib /run/current-system/sw/bin"
    " /opt/bin /var/lib/nvidia/bin /usr/local/nvidia/bin"
)

# N: path of nvidia-smi, X: places where it does not run, H: pid of a hung one, S: its state, A: which devices
# sleep, B: set once a call was ended, so that no second call follows in the same request; P: pids of the last
# `apps`, W: set on WSL, K: GPUs may be woken, D: how long the last call ran.
_START = rf"""
FLEETTUI_LOOP=gpu; export FLEETTUI_LOOP;
P=; X=; K=; W=; read -r W </proc/sys/kernel/osrelease;
case $W in
  *[Mm]icrosoft*) ;;
  *) W=;;
esac;

find_tool() {{
  N=; IFS=:;
  for d in $PATH {_PLACES}; do
    case $X in
      *:$d:*) continue;;
    esac;
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

# Uptime in 1/100 s; a number with a 0 in front would be octal.
read_clock() {{
  u=; read -r u z </proc/uptime;
  case $u in
    [1-9]*.*) u=${{u%.*}}${{u#*.}};;
    *) u=;;
  esac;
}};

# exec: bash would fork once more. Exit codes by a signal are the time limit only when that much time passed.
# Where it cannot run (loader or library missing) another one may: NixOS on WSL has such a pair.
run_tool() {{
  read_clock; b=$u;
  v=$(exec ${{T:+$T {TOOL_LIMIT_S}}} "$N" "$@" 2>&1 </dev/null); r=$?;
  read_clock; D=;
  [ -n "$b" ] && [ -n "$u" ] && D=$((u - b));
  case $r in
    124|137|143)
      B=1;
      [ ${{D:-9999}} -ge {(TOOL_LIMIT_S - 1) * 100} ] && r=124;
      find_hung;;
    126|127)
      c=$N; X=:${{X#:}}${{N%/nvidia-smi}}:; find_tool;
      if [ -n "$N" ]; then run_tool "$@"; else N=$c; X=; fi;;
  esac;
}};

# Sets r and v, an exit code and a text.
ask() {{
  v=; D=;
  if [ -n "$H" ] && stuck $H; then r=75; v="hung $H $S"; return; fi;
  H=;
  if [ -n "$B" ]; then r=124;
  elif [ -z "$N" ]; then r=127;
  elif [ -z "$K" ] && asleep; then r=76; v=$A;
  else run_tool "$@"; fi;
}};

query() {{
  k=$1; IFS=:; set -- ${{2#*:}}; IFS=,; x="$*"; unset IFS;
  ask --query-gpu=$x --format=csv,noheader,nounits; add $k $r "$v";
}};

# Of 1000 lines a card the few that tell the memory of MIG instances.
cut_xml() {{
  c=$v; v=; IFS=$n;
  for l in $c; do
    case $l in
      *nvidia_smi_log*|*"<gpu id="*|*"</gpu>"*|*mig*|*"<uuid>"*|*"<index>"*|*_instance_id*) v="$v$l$n";;
      *memory_usage*|*"<total>"*|*"<used>"*|*"<free>"*) v="$v$l$n";;
    esac;
  done;
  unset IFS;
}};

# dmesg where everybody may call it, else the journal, which shows nothing to those who may not read it.
read_xids() {{
  v=$({{ ${{T:+$T 3}} dmesg </dev/null || echo refused; }} |
    grep -e "NVRM: Xid" -e ^refused | tail -n {XIDS_KEPT});
  r=0;
  case $v in
    *refused)
      c=$(exec ${{T:+$T 3}} journalctl -kqn 3000 --no-pager -o short-monotonic </dev/null); v=;
      [ -n "$c" ] || r=1;
      IFS=$n;
      for l in $c; do
        case $l in
          *"NVRM: Xid"*) v="$v$l$n";;
        esac;
      done;
      unset IFS;;
  esac;
  u=; read -r u z </proc/uptime;
  [ $r = 1 ] || v=$u$n$v;
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
  gpu|gpu:*)
    case $w in
      gpu) w=gpu:{":".join(FAST_FIELDS)};;
    esac;
    query gpu $w; K=;
    [ ${{D:-0}} -lt {SLOW_CALL_CS} ] || add took 0 $D;;
  condition:*) query condition $w; [ -z "$D" ] || add took 0 $D;;
  apps)
    if [ -n "$W" ]; then v=; add apps 77 "";
    else
      ask --query-compute-apps={",".join(APPS_FIELDS)} --format=csv,noheader,nounits;
      add apps $r "$v";
    fi;
    find_pids;;
  list) ask -L; add list $r "$v";;
  xml)
    ask -q -x;
    case $v in
      *"<nvidia_smi_log"*) cut_xml;;
    esac;
    add xml $r "$v";;
  version) ask --version; add version $r "$v";;
  xid) read_xids; add xid $r "$v";;
  ps)
    v=; r=0;
    [ -z "$P" ] || list_owners;
    add ps $r "$v";;
# by its name alone: whoever may only ask must not choose what runs
  tool:*/nvidia-smi) [ -f "${{w#tool:}}" ] && [ -x "${{w#tool:}}" ] && N=${{w#tool:}};;
  wake) K=1;;
  find) X=; find_tool; find_hung; add find 0 "$N";;
"""

GPU_LOOP = (_START, _CASES)
"""What runs once at the start, and the cases of the loop."""
