#!/usr/bin/env python3
"""ceems_exporter started as root: every thread runs as the unprivileged user with nothing but the capability that opens energy
counters, and that one works, also for a counter that comes back later."""

import glob
import os
import re
import shutil
import sys

from harness import ROOT, scratch, get, samples, skip, start_exporter

CAP_DAC_READ_SEARCH = 2


def field(status, name):
    return re.search(r"^%s:[ \t]*(.*)$" % name, status, re.M).group(1)


def main():
    if os.geteuid() != 0:
        skip("needs root")
    with scratch("ceems-privileges-") as d:
        shutil.copytree(os.path.join(ROOT, "tests", "fixtures", "intel-2s"), d + "/host", symlinks=True)
        counters = sorted(glob.glob(d + "/host/sys/class/powercap/*/energy_uj"))
        for path in counters:
            os.chmod(path, 0o400)
        exporter, url = start_exporter(d, ["--path.sysfs=" + d + "/host/sys", "--collector.disable-defaults", "--collector.rapl"])
        with exporter:
            def packages():
                return len(samples(get(url + "/metrics").text, "ceems_rapl_package_joules_total"))
            assert packages() == 2, exporter.output()
            for path in glob.glob("/proc/%d/task/*/status" % exporter.pid):
                with open(path) as f:
                    status = f.read()
                assert set(field(status, "Uid").split()) == {"65534"}, status
                assert int(field(status, "CapPrm"), 16) == 1 << CAP_DAC_READ_SEARCH, status
                assert int(field(status, "CapEff"), 16) == 0, status
                assert field(status, "Groups").split() == [], status
            os.rename(counters[0], counters[0] + ".gone")
            shutil.copyfile(counters[0] + ".gone", counters[0])
            os.chmod(counters[0], 0o400)
            os.unlink(counters[0] + ".gone")
            assert packages() == 2, exporter.output()
        assert exporter.process.returncode == 0, exporter.output()
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
