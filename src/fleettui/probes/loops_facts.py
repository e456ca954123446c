"""The loop of a machine's own facts: /proc by `read` builtins, no fork; slow sections on request.

On each tick, no fork: `stat load uptime mem net`. Files only, no fork: `cgroup arc psi swaps links host os`.
Tools, each with a time limit: `disks` (df), `blocks` (lsblk), `cpu` (grep), `runtime` (docker …), `uname`,
`clock` (date), `sockets` (awk), `servers` (ps), `ollama` (tr, systemctl); for a profile `cores` (lscpu) and
`drives` (lsblk). A tool that hangs costs this loop
its limit, so the limits stay below the 6 s after which a silent machine counts as offline. Every section
answers on any system: what is not there gives an exit code and no payload.
"""

from __future__ import annotations

from fleettui.probes.loops_blocks import BLOCKS_CASE, BLOCKS_START
from fleettui.probes.loops_cgroups import CGROUPS_CASE, CGROUPS_START, LIMITS_OF_MEMORY
from fleettui.probes.loops_df import DF_START, DISKS_CASE
from fleettui.probes.loops_ollama import OLLAMA_CASE, OLLAMA_START
from fleettui.probes.loops_sockets import SOCKETS_CASE, SOCKETS_START

_START = f"""
{CGROUPS_START}
{BLOCKS_START}
{DF_START}
{SOCKETS_START}
{OLLAMA_START}

# $1: section, $2: file of a few lines, whole.
add_file() {{
  v=; r=1;
  while IFS= read -r l; do v="$v$l$n"; r=0; done <$2;
  add $1 $r "$v";
}};
"""

_FAST = rf"""
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
    r=$?;
    {LIMITS_OF_MEMORY}
    add mem $r "$v";;
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
"""

_FILES = r"""
  psi) add_file psi /proc/pressure/memory;;
  swaps) add_file swaps /proc/swaps;;
  arc)
    v=; r=1;
    while read -r l; do
      case $l in
        c_min*|size*) v="$v$l$n"; r=0;;
      esac;
      case $l in
        size*) break;;
      esac;
    done </proc/spl/kstat/zfs/arcstats;
    add arc $r "$v";;
# device: a card, real or virtual; slave: one whose bytes another card counts again (Hyper-V)
  links)
    v=; r=1; set +f;
    for d in /sys/class/net/*; do
      [ -d "$d" ] || continue;
      r=0; i=${d##*/}; k=virtual;
      case $i in
        lo|veth*) continue;;
      esac;
      if [ -d "$d/bridge" ]; then k=bridge;
      elif [ -d "$d/bonding" ]; then k=bond;
      elif [ -e "$d/tun_flags" ]; then k=tun;
      elif [ -e "$d/master/device" ]; then k=slave;
      elif [ -e "$d/device" ]; then k=device; fi;
      v="$v$k $i$n";
    done;
    set -f;
    add links $r "$v";;
  host)
    v=;
    l=; read -r l </proc/sys/kernel/random/boot_id; v="${v}boot $l$n";
    l=; read -r l </sys/devices/system/cpu/online; v="${v}online $l$n";
    while IFS=: read -r a l; do
      case $a in
        Cpus_allowed_list) v="${v}allowed $l$n";;
      esac;
    done </proc/self/status;
    l=; read -r l </run/systemd/container; v="${v}container $l$n";
    [ -e /.dockerenv ] && v="${v}container docker$n";
    [ -e /run/.containerenv ] && v="${v}container podman$n";
    while read -r l; do v="${v}cgroup $l$n"; done </proc/1/cgroup;
    while read -r l; do
      case $l in
        *" /proc/"*lxcfs*) v="${v}container lxcfs$n"; break;;
      esac;
    done </proc/self/mountinfo;
    add host 0 "$v";;
  os)
    v=; r=1;
    for f in /etc/os-release /usr/lib/os-release; do
      [ -r $f ] || continue;
      while read -r l; do
        case $l in
          NAME=*|PRETTY_NAME=*|ID=*|VERSION_ID=*) v="$v$l$n";;
        esac;
      done <$f;
      r=0;
      break;
    done;
    add os $r "$v";;
"""

# uname: where it is missing the kernel tells name and release, since Linux 6.1 the architecture too.
# cpu: without grep the shell reads the file itself, which is slow and then bearable.
_TOOLS = r"""
  uname)
    v=$(exec uname -srm </dev/null); r=$?;
    [ -n "$v" ] || {
      for f in ostype osrelease arch; do
        l=; read -r l </proc/sys/kernel/$f && v="$v${v:+ }$l";
      done;
      [ -z "$v" ] || r=0;
    };
    add uname $r "$v";;
  cpu)
    v=$(exec ${T:+$T 3} grep -E "^(# )?(processor|Processor|model name|Model Name|cpu( model)?[[:space:]]*:|uarch|isa[[:space:]]*:|CPU (implementer|part)|vendor_id.*S390)" /proc/cpuinfo </dev/null); r=$?;
    [ $r -lt 126 ] || [ $r -gt 127 ] || {
      v=; r=1;
      while read -r l; do
        r=0;
        case $l in
          processor*|"# processors"*|model?name*|Model?Name*|cpu*|uarch*|isa*|CPU?[ip]*|vendor_id*S390*) v="$v$l$n";;
        esac;
      done </proc/cpuinfo;
    };
    add cpu $r "$v";;
  runtime)
    v=; r=127;
    for c in docker podman containerd; do
      command -v $c >/dev/null || continue;
      v=$(exec ${T:+$T 2} $c --version </dev/null); r=$?;
      [ $r -ne 0 ] && [ $r -lt 124 ] || break;
    done;
    add runtime $r "$v";;
  clock) v=$(exec date +%s.%N </dev/null); add clock $? "$v";;
  cores)
    v=$(exec ${T:+$T 3} lscpu </dev/null); r=$?;
    [ -n "$v" ] || [ $r -eq 124 ] || {
      v=$(exec ${T:+$T 3} grep -E "^(physical id|core id)" /proc/cpuinfo </dev/null); r=$?;
    };
    add cores $r "$v";;
  drives) v=$(exec ${T:+$T 2} lsblk -J -b -d -o NAME,SIZE,ROTA </dev/null); add drives $? "$v";;
"""  # noqa: E501 - one regular expression

FACTS_LOOP = (
    _START,
    _FAST + _FILES + CGROUPS_CASE + DISKS_CASE + _TOOLS + BLOCKS_CASE + SOCKETS_CASE + OLLAMA_CASE,
)
"""What runs once at the start, and the cases of the loop."""
