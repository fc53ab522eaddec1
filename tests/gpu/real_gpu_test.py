#!/usr/bin/env python3
"""ceems_exporter on a machine with a real GPU: what it says of the GPU can be true, the energy counter moves as the power says,
GPM figures are there on Hopper and newer, and the energy of the GPU is in the books. Prints the page for people to look at."""

import glob
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import get, samples, scratch, skip, start_exporter, wait_until  # noqa: E402

HOPPER_AND_NEWER = re.compile(r"H100|H200|H800|H20\b|GH200|B100|B200|B300|GB200")


def gpu_present():
    return bool(glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/kfd") or
                glob.glob("/sys/bus/pci/drivers/xe/0*") or glob.glob("/proc/driver/nvidia/gpus/*"))


def by_device(page, name):
    """{uuid: value} of whole GPUs."""
    found = {}
    for labels, value in samples(page, name):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if not label.get("gpuiid"):
            found[label["gpuuuid"]] = value
    return found


def main():
    if not gpu_present():
        skip("no GPU here")
    with scratch("ceems-gpu-") as d:
        exporter, url = start_exporter(d, ["--collector.gpu"])
        with exporter:
            def page():
                return get(url + "/metrics").text
            wait_until("the first reading", lambda: samples(page(), "ceems_gpu_info") or exporter.output(), timeout=30)
            time.sleep(3)  # GPM figures need two readings
            first = page()
            begin = time.monotonic()
            assert samples(first, "ceems_gpu_info"), "no GPU on the page\n" + exporter.output()
            print("\n".join(line for line in first.splitlines() if line.startswith("ceems_gpu_")))
            power = by_device(first, "ceems_gpu_power_watts")
            assert power, "no power"
            for uuid, watts in power.items():
                assert 20 <= watts <= 2000, (uuid, watts)
            memory = by_device(first, "ceems_gpu_memory_total_bytes")
            for labels, total in samples(first, "ceems_gpu_memory_total_bytes"):
                assert total > 2**30, (labels, total)
            for name in ("utilization", "memory_busy", "sm_active", "sm_occupancy", "tensor_active", "dram_active"):
                for labels, value in samples(first, "ceems_gpu_%s_ratio" % name):
                    assert 0 <= value <= 1, (name, labels, value)
            for labels, celsius in samples(first, "ceems_gpu_temperature_celsius"):
                assert 5 <= celsius <= 120, (labels, celsius)
            for labels, _ in samples(first, "ceems_gpu_info"):
                if HOPPER_AND_NEWER.search(labels) and memory and not re.search(r'index=""', labels):
                    assert samples(first, "ceems_gpu_sm_active_ratio"), "no GPM figures on " + labels
            time.sleep(10)
            second = page()
            seconds = time.monotonic() - begin
            before = by_device(first, "ceems_gpu_energy_joules_total")
            after = by_device(second, "ceems_gpu_energy_joules_total")
            for uuid, joules in after.items():
                watts = (joules - before[uuid]) / seconds
                print("%s: %.1f J in %.1f s, %.1f W; power says %.1f W" %
                      (uuid, joules - before[uuid], seconds, watts, power[uuid]))
                assert 10 <= watts <= 2000, (uuid, watts)
            in_books = sum(value for labels, value in samples(second, "ceems_node_energy_joules_total")
                           if 'domain="gpu"' in labels)
            assert in_books > 0, "energy of the GPUs is not in the books"
            times = []
            for _ in range(20):
                start = time.monotonic()
                page()
                times.append(time.monotonic() - start)
            print("slowest of 20 scrapes: %.1f ms" % (1000 * max(times)))
            with open("/proc/%d/status" % exporter.pid) as f:
                print(re.search(r"^VmRSS:.*", f.read(), re.M).group(0))
        assert exporter.process.returncode == 0, exporter.output()
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
