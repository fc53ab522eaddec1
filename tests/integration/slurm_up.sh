#!/usr/bin/env bash
# Starts a complete SLURM on loopback: munge, MariaDB, slurmdbd, slurmctld, one slurmd. Needs root, but not systemd.
# Usage: slurm_up.sh DIR BASEPORT cgroup|prolog      BASEPORT: the first of 14 free ports
#   cgroup  SLURM's own plug-ins make the job cgroups
#   prolog  for kernels that do not allow it: a prolog makes them, and the jobs of the test join them
# Up to forty jobs share a CPU. Accounts: proj1, proj2, and elsewhere in another cluster of the same slurmdbd. If slurmrestd is
# installed, it listens on run/rest/socket. The node has 1,500 MB, or MEMORY_MB. WIDE=1: also the partition `wide` of three nodes that say
# they have 16 CPUs, 64,000 MB and four GPUs each, for requests that are looked at and never run; `tight`, `percpu` and `spread` have the
# same nodes and limits of time, memory, CPUs and nodes, and `capped` a QOS. Limits of QOS and accounts are then enforced, too. PAIR=1: also the
# partition `pair` of two nodes that run jobs; each has a /DIR/tmp of its own, as machines have.
set -euo pipefail
# Cgroup names contain the name of the node, so several of these can run on one machine.
D=$(realpath -m "$1"); B=$2; MODE=$3; H=$(hostname -s); N=t$B
mkdir -p "$D"/{etc,run,log,spool/ctld,db,dev}
chmod 755 "$D" "$D"/*
cd "$D"
M=$D/run/munge.socket
dd if=/dev/urandom of=etc/munge.key bs=128 count=1 status=none
chmod 600 etc/munge.key
munged --force --key-file="$D/etc/munge.key" --socket="$M" --pid-file="$D/run/munged.pid" \
  --seed-file="$D/run/munge.seed" --log-file="$D/log/munged.log"
mariadb-install-db --no-defaults --user=root --datadir="$D/db" --skip-test-db \
  --auth-root-authentication-method=socket >log/install-db.log 2>&1
mariadbd --no-defaults --user=root --datadir="$D/db" --socket="$D/run/mysql.sock" --port=$((B + 6)) \
  --bind-address=127.0.0.1 --pid-file="$D/run/mariadbd.pid" --innodb-buffer-pool-size=64M \
  --innodb-log-file-size=16M --log-error="$D/log/mariadb.log" </dev/null >/dev/null 2>&1 &
for _ in $(seq 300); do mariadb-admin --no-defaults -uroot -S run/mysql.sock ping >/dev/null 2>&1 && break; sleep .1; done
mariadb --no-defaults -uroot -S run/mysql.sock -e "create database if not exists slurm_acct_db;
  create user if not exists slurm@127.0.0.1 identified by 'pw'; create user if not exists slurm@localhost identified by 'pw';
  grant all on slurm_acct_db.* to slurm@127.0.0.1; grant all on slurm_acct_db.* to slurm@localhost;"
cat >etc/slurmdbd.conf <<X
AuthType=auth/munge
AuthInfo=socket=$M
DbdHost=localhost
DbdPort=$((B + 2))
SlurmUser=root
LogFile=$D/log/slurmdbd.log
PidFile=$D/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((B + 6))
StorageUser=slurm
StoragePass=pw
StorageLoc=slurm_acct_db
X
chmod 600 etc/slurmdbd.conf
if [ "$MODE" = cgroup ]; then
  plugins=$'ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup,task/affinity\nJobAcctGatherType=jobacct_gather/cgroup'
else
  plugins=$'ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/linux'
  plugins+=$'\nJobAcctGatherParams=OverMemoryKill\nProlog='"$D/etc/prolog"
  cat >etc/prolog <<'X'
#!/bin/bash
# Makes the job's cgroup as SLURM lays it out and hands it to the job's user, who joins it.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  roots=(/sys/fs/cgroup/system.slice/${SLURMD_NODENAME}_slurmstepd.scope/job_$SLURM_JOB_ID)
else
  roots=(); for c in /sys/fs/cgroup/*/; do [ -e "$c/tasks" ] && roots+=("${c}slurm_${SLURMD_NODENAME}/uid_$SLURM_JOB_UID/job_$SLURM_JOB_ID"); done
fi
for r in "${roots[@]}"; do
  mkdir -p "$r/step_batch"; chown -R "$SLURM_JOB_UID" "$r"
  for f in cpuset.cpus cpuset.mems; do [ -e "$r/$f" ] && for d in "$(dirname "$(dirname "$r")")" "$(dirname "$r")" "$r" "$r/step_batch"; do cat "/sys/fs/cgroup/cpuset/$f" >"$d/$f"; done; done
done
exit 0
X
  chmod 755 etc/prolog
fi
cat >etc/slurm.conf <<X
ClusterName=test
SlurmctldHost=$H(127.0.0.1)
SlurmctldPort=$B
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$M
StateSaveLocation=$D/spool/ctld
SlurmdSpoolDir=$D/spool/%n
SlurmctldPidFile=$D/run/slurmctld.pid
SlurmdPidFile=$D/run/slurmd.%n.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd.%n.log
MpiDefault=none
ReturnToService=2
$plugins
JobAcctGatherFrequency=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$((B + 2))
AccountingStoragePass=$M
AccountingStorageEnforce=associations${WIDE:+,limits,qos}
AccountingStoreFlags=job_script
AccountingStorageTRES=gres/gpu,gres/gpu:a100
GresTypes=gpu
KillWait=2
MessageTimeout=60
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MinJobAge=30
NodeName=$N NodeHostname=$H NodeAddr=127.0.0.1 Port=$((B + 10)) CPUs=$(nproc) RealMemory=${MEMORY_MB:-1500} Gres=gpu:a100:2
PartitionName=debug Nodes=ALL Default=YES OverSubscribe=FORCE:40 MaxTime=INFINITE State=UP
X
wide=
if [ -n "${WIDE:-}" ]; then
  wide="w${B}n[1-3]"
  cat >>etc/slurm.conf <<X
SlurmdParameters=config_overrides
EnforcePartLimits=ALL
NodeName=$wide NodeHostname=$H NodeAddr=127.0.0.1 Port=[$((B + 11))-$((B + 13))] CPUs=16 RealMemory=64000 Gres=gpu:a100:4
PartitionName=wide Nodes=$wide MaxTime=2-00:00:00 DefMemPerCPU=1000 State=UP
PartitionName=tight Nodes=$wide MaxTime=02:30:00 MaxMemPerNode=20000 DefMemPerCPU=1000 State=UP
PartitionName=percpu Nodes=$wide MaxTime=02:00:00 MaxMemPerCPU=5000 DefMemPerCPU=1000 State=UP
PartitionName=spread Nodes=$wide MaxTime=2-00:00:00 MinNodes=2 MaxCPUsPerNode=4 DefMemPerCPU=1000 State=UP
PartitionName=capped Nodes=$wide MaxTime=2-00:00:00 QOS=narrow DefMemPerCPU=1000 State=UP
X
fi
if [ -n "${PAIR:-}" ]; then
  mkdir -p tmp && chmod 1777 tmp
  cat >>etc/slurm.conf <<X
NodeName=p${B}n[1-2] NodeHostname=$H NodeAddr=127.0.0.1 Port=[$((B + 11))-$((B + 12))] CPUs=$(nproc) RealMemory=1000
PartitionName=pair Nodes=p${B}n[1-2] OverSubscribe=FORCE:40 MaxTime=INFINITE State=UP
X
fi
for i in 0 1 2 3; do [ -e dev/nvidia$i ] || mknod -m 666 dev/nvidia$i c 195 $i; done
echo "NodeName=$N Name=gpu Type=a100 File=$D/dev/nvidia[0-1]" >etc/gres.conf
[ -z "$wide" ] || echo "NodeName=$wide Name=gpu Type=a100 File=$D/dev/nvidia[0-3]" >>etc/gres.conf
printf 'CgroupPlugin=autodetect\nCgroupAutomount=no\nConstrainCores=yes\nConstrainRAMSpace=yes\n' >etc/cgroup.conf
export SLURM_CONF=$D/etc/slurm.conf
slurmdbd
for _ in $(seq 300); do (echo >"/dev/tcp/127.0.0.1/$((B + 2))") 2>/dev/null && break; sleep .1; done
sacctmgr -i add cluster test >/dev/null || true
for a in proj1 proj2; do sacctmgr -i add account $a Description=$a Organization=o >/dev/null || true; done
sacctmgr -i add user root account=proj1,proj2 >/dev/null || true
sacctmgr -i add user nobody account=proj2 >/dev/null || true
sacctmgr -i add user daemon account=proj1,proj2 adminlevel=Operator >/dev/null || true
sacctmgr -i add coordinator account=proj1 names=daemon >/dev/null || true
sacctmgr -i add cluster other >/dev/null || true
sacctmgr -i add account elsewhere cluster=other Description=e Organization=o >/dev/null || true
sacctmgr -i add user games account=elsewhere cluster=other >/dev/null || true
[ -z "$wide" ] || sacctmgr -i add qos narrow set MaxTRESPerJob=cpu=12,mem=20000M MaxTRESPerNode=cpu=4 MaxWall=02:30:00 Flags=DenyOnLimit >/dev/null
slurmctld
slurmd -N $N
if [ -n "$wide" ]; then for i in 1 2 3; do slurmd -N "w${B}n$i"; done; fi
if [ -n "${PAIR:-}" ]; then
  for i in 1 2; do
    unshare -m sh -c "mount -t tmpfs -o mode=1777 tmpfs '$D/tmp' && exec slurmd -N p${B}n$i"
  done
fi
if [ -n "$wide" ]; then
  # SLURM knows no gres/gpu before its controller has said that there is one.
  for _ in $(seq 100); do sacctmgr -n list tres 2>/dev/null | grep -q gpu && break; sleep .1; done
  {
    sacctmgr -i add qos group set GrpTRES=mem=36000M,gres/gpu=3 MaxTRESPU=mem=34000M MinTRESPerJob=node=2 Flags=DenyOnLimit
    sacctmgr -i add qos long set MaxWall=7-00:00:00 Flags=DenyOnLimit,PartitionTimeLimit
    sacctmgr -i add qos minutes set MaxTRESMins=cpu=500,gres/gpu=300 Flags=DenyOnLimit,OverPartQOS
    sacctmgr -i add account limited Description=l Organization=o set GrpTRES=mem=30000M MaxWall=140
    sacctmgr -i add account below parent=limited Description=b Organization=o set MaxTRESPerJob=mem=18000M
    sacctmgr -i add user root account=below
    sacctmgr -i add user root account=below partition=tight
    sacctmgr -i modify user root account=below partition=tight set MaxTRESPerJob=mem=17000M
    sacctmgr -i modify user root set qos+=narrow,group,long,minutes
  } >/dev/null
fi
if command -v slurmrestd >/dev/null; then
  # It will not run as root or as SLURM's own user; with rest_auth/local root may speak for its user, an operator.
  mkdir -p run/rest
  chown daemon run/rest
  setpriv --reuid=daemon --regid=daemon --clear-groups slurmrestd -a rest_auth/local "unix:$D/run/rest/socket" \
    </dev/null >log/slurmrestd.log 2>&1 &
  echo $! >run/slurmrestd.pid
fi
for _ in $(seq 300); do [ "$(sinfo -h -N -o %T 2>/dev/null | sort -u)" = idle ] && { echo "slurm is up"; exit 0; }; sleep .1; done
tail -n 20 log/slurmctld.log log/slurmd.$N.log >&2
exit 1
