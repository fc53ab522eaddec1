#!/usr/bin/env python3
"""Parses the samples for programs around CEEMS: those of Prometheus by promtool, that of the load balancer by ceems_tool, and the others,
whose checkers Debian does not have, as far as their syntax goes."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import dashboards  # noqa: E402
from harness import BIN, ROOT, need_programs, scratch, write  # noqa: E402

SAMPLES = os.path.join(ROOT, "packaging", "samples")
CHECKED = set()


def sample(name):
    CHECKED.add(name)
    return os.path.join(SAMPLES, name)


def text_of(name):
    with open(sample(name), encoding="utf-8") as f:
        return f.read()


def prometheus():
    def accepts(path):
        return subprocess.run(["promtool", "check", "config", "--syntax-only", path], capture_output=True).returncode == 0
    with scratch("ceems-samples-") as directory:
        for name in ("prometheus-gpu-exporters.yml", "prometheus-remote-write.yml"):
            text = text_of(name)
            assert accepts(sample(name)), name
            assert not accepts(write(os.path.join(directory, name), text.replace("metric_relabel_configs", "metric_relabel_config")
                                     .replace("write_relabel_configs", "write_relabel_config"))), name


def load_balancer():
    tool = os.path.join(BIN, "ceems_tool")

    def accepts(path):
        made = subprocess.run([tool, "check", "config", path], capture_output=True, text=True)
        return made.returncode == 0, made.stdout + made.stderr
    good, output = accepts(sample("lb-thanos.yml"))
    assert good, output
    with scratch("ceems-samples-") as directory:
        good, output = accepts(write(directory + "/lb.yml", text_of("lb-thanos.yml").replace("pin_cluster", "pin_clusters")))
        assert not good and "pin_cluster" in output, output


def yaml():
    read = {name: dashboards.read_yaml(sample(name)) for name in ("thanos-bucket.yml", "pyroscope.yml", "litestream.yml")}
    assert read["thanos-bucket.yml"]["type"] == "S3" and read["thanos-bucket.yml"]["config"]["bucket"] == "ceems-metrics"
    assert read["pyroscope.yml"]["server"]["http_listen_port"] == 4040 and read["pyroscope.yml"]["analytics"]["reporting_enabled"] is False
    assert [replica["type"] for replica in read["litestream.yml"]["dbs"][0]["replicas"]] == ["s3", "file"]
    assert read["litestream.yml"]["dbs"][0]["path"] == "/var/lib/ceems/ceems.db"


def dcgm():
    """Three columns without commas in them, each field once; the fields that ceems_tool looks for are there."""
    rows = [line.split(", ") for line in text_of("dcgm-counters.csv").splitlines() if line and not line.startswith("#")]
    assert all(len(row) == 3 and re.fullmatch(r"DCGM_FI_(DEV|PROF)_[A-Z0-9_]+", row[0]) and row[1] in ("gauge", "counter") for row in rows)
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))
    assert {"DCGM_FI_DEV_POWER_USAGE_INSTANT", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_SM_ACTIVE"} <= set(names)


def alloy():
    """Blocks are closed, attributes are `name = value`, and each component that is referred to exists."""
    text = re.sub(r"//.*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r'(\w) "(\w+)" \{', r"\1.\2 {", text_of("alloy-profiles.alloy"))))
    assert text.count("{") == text.count("}") and text.count("[") == text.count("]")
    for line in filter(None, (line.strip() for line in text.splitlines())):
        assert re.fullmatch(r'[\w.]+ \{|\}|[\w"]+ *= (\{|.+)|"" = "",', line), line
    components = set(re.findall(r"^([\w.]+) \{", text, re.M))
    references = {found.rsplit(".", 1)[0] for found in re.findall(r"[ \[]((?:discovery|pyroscope)(?:\.\w+)+)", text.split("\n", 1)[1])
                  if found.rsplit(".", 1)[-1] in ("targets", "output", "receiver")}
    assert references == {"discovery.http.units", "discovery.relabel.units", "pyroscope.write.server"} <= components, (references, components)


def main():
    need_programs("promtool")
    for check in (prometheus, load_balancer, yaml, dcgm, alloy):
        check()
    missing = set(os.listdir(SAMPLES)) - CHECKED
    assert not missing, "not checked: %s" % missing
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
