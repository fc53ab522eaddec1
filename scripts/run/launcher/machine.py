"""Describes in words what was found on this machine, mostly from the exporter's own page."""

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
    """Where the energy values come from, and advice if nothing is measured. Both are lists of texts."""
    sources = [labels for labels, _ in samples(page, "ceems_energy_source_info")]
    # "other" is the rest of the node's energy, not a meter.
    found = ["%s, %s by %s" % (s.get("domain", "?"), s.get("method", "?"), s.get("source", "?"))
             for s in sources if s.get("domain") != "other"]
    advice = []
    if not sources:
        advice.append("energy: the exporter reports no source of energy; units will show none")
    elif not any(s.get("method") == "measured" for s in sources):
        advice.append("energy: nothing is measured here, so power is estimated from CPU use. " + why_no_meter())
    return found, advice


def why_no_meter():
    if not os.path.isdir("/sys/class/powercap/intel-rapl:0") and "hypervisor" in cpu_flags():
        return "This is a virtual machine, and its host does not give it access to the meters (RAPL)."
    if not os.path.isdir("/sys/class/powercap"):
        return "The kernel has no power-capping interface (/sys/class/powercap). If the CPU has RAPL, load the module intel_rapl_msr."
    if os.geteuid() != 0:
        return "Only root can read RAPL counters: sudo make run"
    return "Found no RAPL and no hwmon sensor for energy or power."


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
    """(found resource managers, advice), both as lists of texts."""
    found, advice = [], []
    if shutil.which("sacct"):
        found.append("SLURM (sacct)")
        advice.append("SLURM: its jobs are not part of this demonstration; docs/quickstart.md explains how to add them")
    if os.path.exists("/run/libvirt") or shutil.which("virsh"):
        found.append("libvirt")
    if os.path.isdir("/run/systemd/system"):
        found.append("systemd (its services are shown as units)")
    return found or ["none: cgroups are the units"], advice
