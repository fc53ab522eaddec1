"""The kernel of this machine in place of a virtual one: a tree of files (machine.Initramfs) is a root directory, in namespaces of mounts
and of host names, and, if its file systems can be mounted, with cgroup v2. Needs root. Processes of tests run at full speed."""

import os
import shlex
import subprocess

from machine import CommandFailed, find

SETUP = """set -e
mount --rbind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sys "$1/sys"
mount -t cgroup2 cgroup "$1/sys/fs/cgroup"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmp "$1/tmp"
hostname vm1
echo ready
exec sleep infinity"""


class Here:
    """Has the methods of machine.Machine that run commands. A context manager, which ends what it has started."""

    address = "127.0.0.1"  # of the test's own servers

    def __init__(self, directory):
        self.directory = directory
        self.holder = subprocess.Popen(["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", SETUP, "sh", directory],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, universal_newlines=True)
        assert self.holder.stdout.readline() == "ready\n", "the file systems cannot be mounted"
        self.enter = [find("nsenter"), "--target", str(self.holder.pid), "--mount", "--uts", find("chroot"), directory, "/bin/sh", "-c"]
        self.processes = []

    def run(self, command, timeout=60.0):
        done = subprocess.run(self.enter + ["{ %s\n} 2>&1" % command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout,
                              env={"PATH": "/bin"}, universal_newlines=True, errors="replace", check=False)
        if done.returncode:
            raise CommandFailed("'%s' ended with %d: %s" % (command, done.returncode, done.stdout))
        return done.stdout.strip()

    def start(self, command, log="/dev/null"):
        pid = int(self.run("%s >%s 2>&1 & echo $!" % (command, shlex.quote(log))))
        self.processes.append(pid)
        return pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._end_jobs()
        finally:
            self.holder.kill()
            self.holder.wait()

    def _end_jobs(self):
        for pid in self.processes:
            try:
                if os.readlink("/proc/%d/root" % pid) == os.path.realpath(self.directory):
                    os.kill(pid, 9)
            except OSError:
                pass  # it has ended
        self.run("for job in /sys/fs/cgroup/system.slice/slurmstepd.scope/job_*; do [ ! -e $job ] || { echo 1 >$job/cgroup.kill; sleep 1; "
                 "rmdir $job/* $job 2>/dev/null; rmdir ${job%/*} ${job%/*/*} 2>/dev/null; }; done; true")
