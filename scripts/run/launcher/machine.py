"""What was found on this machine, in words; the exporter's own page says most of it."""

import os
import re
import shutil

SAMPLE = re.compile(r'^([a-z_A-Z0-9]+)\{(.*)\} (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def samples(page, name):
    """[(labels, value)] of one metric of a text page."""
    found = []
    for line in page.splitlines():
        if line.startswith(name + "{"):
            match = SAMPLE.match(line)
            if match:
                found.append((dict(LABEL.findall(match.group(2))), float(match.group(3))))
    return found


def energy(page):
    """Sentences on where the numbers of energy come from, and advice where nothing is measured."""
    sources = [labels for labels, _ in samples(page, "ceems_energy_source_info")]
    # "other" is what is left of the node, not a meter.
    found = ["%s, %s by %s" % (s.get("domain", "?"), s.get("method", "?"), s.get("source", "?"))
             for s in sources if s.get("domain") != "other"]
    advice = []
    if not sources:
        advice.append("energy: the exporter names no source of energy; units will show none")
    elif not any(s.get("method") == "measured" for s in sources):
        advice.append("energy: nothing is measured here, so power is estimated from CPU use. " + why_no_meter())
    return found, advice


def why_no_meter():
    if not os.path.isdir("/sys/class/powercap/intel-rapl:0") and "hypervisor" in cpu_flags():
        return "This is a virtual machine: its host keeps the meters (RAPL) to itself."
    if not os.path.isdir("/sys/class/powercap"):
        return "The kernel has no power-capping interface (/sys/class/powercap); load the module intel_rapl_msr where the CPU has RAPL."
    if os.geteuid() != 0:
        return "RAPL counters can be read by root only: sudo make run"
    return "No RAPL, no hwmon energy or power sensor was found."


def cpu_flags():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("flags"):
                    return line.split(":", 1)[1].split()
    except OSError:
        pass
    return []


def managers():
    """(what was found, advice) on resource managers."""
    found, advice = [], []
    if shutil.which("sacct"):
        found.append("SLURM (sacct)")
        advice.append("SLURM: its jobs are not part of this demonstration; docs/quickstart.md shows how to add them")
    if os.path.exists("/run/libvirt") or shutil.which("virsh"):
        found.append("libvirt")
    if os.path.isdir("/run/systemd/system"):
        found.append("systemd (its services are shown as units)")
    return found or ["none: cgroups are the units"], advice
