"""The part of the facts loop that finds cgroup limits: files only, no fork.

From the cgroup of this shell up to the root of what is mounted, each that limits memory or processors. In a
container without a cgroup namespace /proc/self/cgroup names folders of the host that are not there; they are
passed over, and the root is the container's own.
"""

from __future__ import annotations

# walk FOLDER PATH FILE: R is every folder on the way up whose FILE holds a limit. 9 and 18 digits are v1's
# word for none. find_limits: D the root, X and Y the files of limit and use, G the folders; P the folder of
# processors, Z its file, C its path.
CGROUPS_START = r"""
walk() {
  R=; p=$2; [ "$p" = / ] && p=;
  while :; do
    m=; read -r m <"$1$p/$3";
    case $m in
      ""|max*|-1|9??????????????????) ;;
      *) R="$R$1$p$n";;
    esac;
    case $p in
      */*) p=${p%/*};;
      *) break;;
    esac;
  done;
};

find_limits() {
  X=; Z=; D=; P=; p=; C=;
  while IFS=: read -r a b c; do
    case ,$b, in
      *,memory,*)
        D=/sys/fs/cgroup/memory; X=memory.limit_in_bytes; Y=memory.usage_in_bytes; p=$c;;
      *,cpu,*) P=/sys/fs/cgroup/cpu; Z=cpu.cfs_quota_us; C=$c;;
      ,,)
        [ -n "$X" ] || { D=/sys/fs/cgroup; X=memory.max; Y=memory.current; p=$c; };
        [ -n "$Z" ] || { P=/sys/fs/cgroup; Z=cpu.max; C=$c; };;
    esac;
  done </proc/self/cgroup;
  G=;
  [ -z "$X" ] || { walk "$D" "$p" $X; G=$R; };
};

find_limits;
"""

LIMITS_OF_MEMORY = r"""
    [ -z "$G" ] || {
      IFS=$n;
      for g in $G; do
        m=; read -r m <"$g/$X"; c=; read -r c <"$g/$Y";
        v="${v}Limit: $m $c ${g#"$D"}$n";
      done;
      unset IFS;
    };
"""
"""Adds a line `Limit: <bytes> <bytes used> <path>` for each to v; costs nothing where there is none."""

CGROUPS_CASE = r"""
  cgroup)
    find_limits; v=;
    IFS=$n;
    for g in $G; do
      k=;
      while IFS=" " read -r a b; do
        case $a in
          inactive_file|total_inactive_file) k=$b;;
        esac;
      done <"$g/memory.stat";
      v="${v}cache $k ${g#"$D"}$n";
    done;
    unset IFS;
    [ -z "$Z" ] || {
      walk "$P" "$C" $Z;
      IFS=$n;
      for g in $R; do
        m=; read -r m <"$g/$Z"; c=;
        [ $Z = cpu.max ] || read -r c <"$g/cpu.cfs_period_us";
        v="${v}cpu $m${c:+ }$c ${g#"$P"}$n";
      done;
      unset IFS;
    };
    add cgroup 0 "$v";;
"""
"""Lines `cache <bytes> <path>` and `cpu <quota> <period> <path>`; looks for the limits again."""
