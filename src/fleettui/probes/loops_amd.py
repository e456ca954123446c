"""The AMD part of the GPU loop: sysfs on every tick, amd-smi or rocm-smi now and then.

Sections: `amd` (each AMD card of /sys/class/drm by `read` builtins, no process is started), `amd-kind` (first
bytes of gpu_metrics, which tell an integrated part), `amd-static amd-list amd-metric amd-process` (the tool;
the first line of the payload names it), `amd-ps` (owners of the pids of the last `amd-process`), `amd-find`
(where the tool is; for the doctor).
Exit codes beside the tool's own: 127 without cards or tool; 6 an AMD card without a driver, payload
`unbound <bus id>`; in both cases `tool <name>` where one is installed; 75 an earlier call still hangs,
payload the tool, then `hung <pid> <state>`; 76 a card is suspended, and the tool would wake it; 124 the
time limit ended it.

The tools are Python programs and take half a second of the machine's CPU for each call, so figures that
sysfs has come from there.
"""

from __future__ import annotations

from typing import Final

AMD_TOOL_LIMIT_S: Final = 15

SYSFS_FILES: Final = (
    "mem_info_vram_total", "mem_info_vram_used", "mem_info_gtt_total", "mem_info_gtt_used",
    "gpu_busy_percent", "product_name", "unique_id",
)  # fmt: skip
HWMON_FILES: Final = (
    "temp1_input", "temp2_input", "power1_average", "power1_input", "power1_cap", "pwm1", "pwm1_max",
)  # fmt: skip

# amd_tool: path of the tool, empty: none, unset: not looked for; amd_name: amd-smi or rocm-smi; amd_hung: pid
# of one that hangs. What comes from the GPU loop: add, stuck (sets S), list_owners, T, n, B, P.
AMD_START = rf"""
PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;
amd_tool=none; amd_hung=; amd_looked=;

find_amd() {{
  amd_tool=;
  for amd_name in amd-smi rocm-smi; do
    IFS=:;
    for d in $PATH /usr/bin /usr/local/bin /opt/bin /run/current-system/sw/bin; do
      [ -f "$d/$amd_name" ] && [ -x "$d/$amd_name" ] && {{ amd_tool=$d/$amd_name; break; }};
    done;
    unset IFS;
    [ -z "$amd_tool" ] || break;
    set +f;
    for d in /opt/rocm/bin /opt/rocm-*/bin; do
      [ -f "$d/$amd_name" ] && [ -x "$d/$amd_name" ] && {{ amd_tool=$d/$amd_name; break; }};
    done;
    set -f;
    [ -z "$amd_tool" ] || break;
  done;
}};

# Their processes are called python3, so the command line tells.
find_amd_hung() {{
  amd_hung=; set +f;
  for f in /proc/[0-9]*/comm; do
    c=; read -r c <$f;
    case $c in
      python*|amd-smi*|rocm-smi*|rocm_smi*) ;;
      *) continue;;
    esac;
    f=${{f%/comm}}; c=; read -r c <$f/cmdline;
    case $c in
      *amd-smi*|*rocm-smi*|*rocm_smi*|*amdsmi_cli*) f=${{f##*/}}; stuck $f && {{ amd_hung=$f; break; }};;
    esac;
  done;
  set -f;
}};

# True when a card is suspended.
amd_asleep() {{
  k=1; set +f;
  for f in /sys/bus/pci/drivers/amdgpu/*/power/runtime_status; do
    c=; read -r c <$f;
    [ "$c" = suspended ] && {{ k=0; break; }};
  done;
  set -f;
  return $k;
}};

# $1: section, the rest: arguments for amd-smi; x: those for rocm-smi, empty: it has none.
ask_amd() {{
  w=$1; shift; v=; r=127;
  [ "$amd_tool" = none ] && find_amd;
  [ -n "$amd_looked" ] || {{ amd_looked=1; find_amd_hung; }};
  [ "$amd_name" = amd-smi ] || set -- $x;
  if [ -n "$amd_hung" ] && stuck $amd_hung; then r=75; v="hung $amd_hung $S";
  elif [ -z "$amd_tool" ] || [ $# = 0 ]; then amd_hung=;
  elif [ -n "$B" ]; then r=124;
  elif amd_asleep; then r=76;
  else
    amd_hung=;
    v=$(exec ${{T:+$T {AMD_TOOL_LIMIT_S}}} "$amd_tool" "$@" 2>&1 </dev/null); r=$?;
    case $r in
      124|137|143) B=1; find_amd_hung;;
    esac;
  fi;
  if [ -n "$amd_tool" ]; then add $w $r "$amd_name$n$v"; else add $w $r ""; fi;
}};

amd_files() {{
  for f in $2; do
    c=; read -r c <$1/$f;
    [ -z "$c" ] || v="$v$f $c$n";
  done;
}};

# A card without a driver, and none that was given away to a virtual machine (vfio-pci).
find_amd_unbound() {{
  for d in /sys/bus/pci/devices/*; do
    c=; read -r c <$d/class;
    case $c in
      0x03*|0x12*) ;;
      *) continue;;
    esac;
    c=; read -r c <$d/vendor;
    [ "$c" = 0x1002 ] && [ -d "$d" ] || continue;
    [ -e "$d/driver" ] || {{ v="${{v}}unbound ${{d##*/}}$n"; r=6; }};
  done;
}};

list_amd() {{
  v=; r=127; set +f;
  for d in /sys/class/drm/card[0-9]*; do
    case ${{d##*/}} in
      *-*) continue;;
    esac;
    c=; read -r c <$d/device/vendor;
    [ "$c" = 0x1002 ] || continue;
    b=; a=;
    while IFS="=" read -r l c; do
      case $l in
        PCI_SLOT_NAME) b=$c;;
        DRIVER) a=$c;;
      esac;
    done <$d/device/uevent;
    case $a in
      vfio*) continue;;
    esac;
    r=0; v="${{v}}card $b ${{d##*/card}}$n"; l=; read -r l <$d/device/power/runtime_status;
    [ "$l" = suspended ] && {{ v="${{v}}asleep$n"; continue; }};
    amd_files $d/device "{" ".join(SYSFS_FILES)}";
    for l in $d/device/hwmon/hwmon*; do
      [ -d $l ] && amd_files $l "{" ".join(HWMON_FILES)}";
    done;
  done;
  [ $r = 0 ] || find_amd_unbound;
  set -f;
  [ $r = 0 ] || {{ find_amd; [ -z "$amd_tool" ] || v="${{v}}tool $amd_name$n"; }};
}};

list_amd_kinds() {{
  v=; r=0; set +f;
  for d in /sys/bus/pci/drivers/amdgpu/*:*; do
    [ -e $d/gpu_metrics ] || continue;
    c=$(exec ${{T:+$T 3}} od -An -tu1 -N4 $d/gpu_metrics </dev/null); v="$v${{d##*/}} $c$n";
  done;
  set -f;
}};

find_amd_pids() {{
  P=; IFS=$n;
  for l in $v; do
    case $l in
      *?pid?:*) p=${{l##*: }}; p=${{p%%,*}}; [ "$p" -gt 0 ] && P=$P${{P:+,}}$p;;
    esac;
  done;
  unset IFS;
}};
"""

AMD_CASES = r"""
  amd) list_amd; add amd $r "$v";;
  amd-kind) if amd_asleep; then add amd-kind 76 ""; else list_amd_kinds; add amd-kind 0 "$v"; fi;;
  amd-static) x="--showproductname --showbus --showuniqueid --showdriverversion --showmaxpower --json";
    ask_amd amd-static static --json;;
  amd-list) x=; ask_amd amd-list list --json;;
  amd-metric) x="--showmeminfo vram gtt --showuse --showtemp --showpower --showfan --json";
    ask_amd amd-metric metric --json;;
  amd-process) x="--showpids --json"; ask_amd amd-process process --json; find_amd_pids;;
  amd-ps) v=; r=0; [ -z "$P" ] || list_owners; add amd-ps $r "$v";;
  amd-find) find_amd; add amd-find 0 "$amd_tool";;
"""
