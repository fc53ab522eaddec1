"""Debian 12 with systemd as the first process of the machine, on a disk. Needs root."""

import os
import shutil
import subprocess

from machine import CACHE, Initramfs, find, output
from harness import skip, write  # noqa: E402 (machine knows where it is)

NEEDS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "modprobe": "kmod",
         "debootstrap": "debootstrap", "mke2fs": "e2fsprogs"}
MODULES = ["virtio_pci", "virtio_net", "virtio_blk", "ext4"]
PACKAGES = "systemd-sysv,dbus,iproute2,kmod,procps"
MASKED = ("getty@tty1.service", "serial-getty@ttyS0.service", "systemd-timesyncd.service", "apt-daily.timer", "apt-daily-upgrade.timer",
          "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer", "systemd-networkd.service")
AGENT = """[Unit]
After=basic.target
[Service]
ExecStart=/bin/sh -c 'ip link set lo up; for i in /sys/class/net/e*; do ip addr add 10.0.2.15/24 dev $${i##*/}; ip link set $${i##*/} up; done; \
stty -F /dev/ttyS1 raw -echo; while :; do (echo "agent: ready"; exec sh) </dev/ttyS1 2>&1 | cat >/dev/ttyS1; done'
"""
INIT = """#!/bin/busybox sh
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
for module in /modules/*.ko; do insmod "$module"; done
mkdir /new
mount -t ext4 /dev/vda /new
umount /proc
exec switch_root /new /sbin/init
"""


def _made_once(name, more):
    tree = os.path.join(CACHE, "root", name)
    if not os.path.exists(os.path.join(tree, "complete")):
        shutil.rmtree(tree, ignore_errors=True)
        os.makedirs(os.path.dirname(tree), exist_ok=True)
        print("vm: installing Debian with systemd into the cache", flush=True)
        done = subprocess.run([find("debootstrap"), "--variant=minbase", "--include=" + ",".join((PACKAGES, *more)), "bookworm", tree],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        if done.returncode != 0:
            skip("cannot install Debian with debootstrap: %s" % done.stdout[-300:])
        shutil.rmtree(tree + "/var/cache/apt", ignore_errors=True)
        shutil.rmtree(tree + "/var/lib/apt/lists", ignore_errors=True)
        shutil.rmtree(tree + "/usr/share/doc", ignore_errors=True)
        shutil.rmtree(tree + "/usr/share/locale", ignore_errors=True)
        write(tree + "/complete", "")
    return tree


def copy(directory, name="bookworm", more=()):
    """A copy of its files in `directory`, to which a test adds its own: they have the methods of Initramfs. `more`: packages, which are kept
    installed under `name`."""
    root = directory + "/root"
    output("cp", "-a", _made_once(name, more), root)
    os.unlink(root + "/complete")
    tree = Initramfs.__new__(Initramfs)  # without the files of an initramfs
    tree.directory = root
    tree.copy(find("busybox"), "bin/busybox")
    # Emulation on a busy machine is slow.
    tree.text("etc/systemd/system.conf.d/slow.conf", "[Manager]\nDefaultTimeoutStartSec=600\nDefaultTimeoutStopSec=600\n")
    tree.text("etc/systemd/system/agent.service", AGENT)
    tree.text("etc/hostname", "vm1\n")
    tree.text("etc/hosts", "127.0.0.1 localhost vm1\n")
    wanted = "%s/etc/systemd/system/multi-user.target.wants" % root
    os.makedirs(wanted, exist_ok=True)
    os.symlink("../agent.service", wanted + "/agent.service")
    for name in MASKED:
        path = "%s/etc/systemd/system/%s" % (root, name)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink("/dev/null", path)
    return tree


def disk(tree, directory, size=1 << 30):
    """Puts the files on a disk. Returns its file in `directory`."""
    path = directory + "/disk"
    with open(path, "wb") as f:
        f.truncate(size)
    output(find("mke2fs"), "-q", "-t", "ext4", "-d", tree.directory, path)
    return path


def initramfs(kernel, directory):
    """Mounts the disk and starts systemd."""
    tree = Initramfs(directory + "/tree")
    for module in kernel.module_files(MODULES):
        tree.module(module)
    tree.text("init", INIT)
    os.chmod(directory + "/tree/init", 0o755)
    tree.pack(directory + "/initramfs")
    return directory + "/initramfs"
