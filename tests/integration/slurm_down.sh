#!/usr/bin/env bash
# Stops everything that slurm_up.sh started: cancels jobs (otherwise a step daemon outlives slurmd), stops the daemons by their
# PID files and removes their cgroups. Usage: slurm_down.sh DIR
D=$(realpath "$1")
N=$(sed -nE 's/^NodeName=([^ ]+).*/\1/p' "$D/etc/slurm.conf" 2>/dev/null | head -n 1)
[ -n "$N" ] || exit 0
export SLURM_CONF=$D/etc/slurm.conf
squeue -h -o %A 2>/dev/null | sort -u | xargs -r scancel
for _ in $(seq 150); do [ -z "$(squeue -h -t R,CG 2>/dev/null)" ] && break; sleep .1; done
for f in "$D"/run/slurmrestd.pid "$D"/run/slurmd.*.pid "$D"/run/slurmctld.pid "$D"/run/slurmdbd.pid "$D"/run/mariadbd.pid "$D"/run/munged.pid; do
  q=$(cat "$f" 2>/dev/null) || continue
  [ -n "$q" ] && kill "$q" 2>/dev/null
  for _ in $(seq 100); do kill -0 "$q" 2>/dev/null || break; sleep .1; done
done
for n in "$N" "w${N#t}n" "p${N#t}n"; do
  for _ in 1 2 3; do find /sys/fs/cgroup -depth -type d \( -path "*/slurm_$n*" -o -path "*/${n}_slurmstepd.scope*" \) -exec rmdir {} \; 2>/dev/null; done
done
true
