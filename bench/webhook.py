#!/usr/bin/env python3
"""Measures the admission controller: latency at 1,000 reviews a second, CPU time and memory.

    cmake --preset bench && cmake --build build/bench --target ceems_k8s_admission_controller webhook
    bench/webhook.py --bin build/bench/bin [--write bench/RESULTS.md]

`webhook` sends the reviews over 10 kept connections at a fixed rate, without TLS. A review counts from the time at which it was due. CPU
time is that of the whole process. The table shows the round with the lowest p99, because whatever else the machine does can only add
to it, and the highest p99 of all rounds beside it."""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

from cpu_time import process_cpu_seconds
from section import write_section

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))
from harness import Program, free_port, get, wait_until  # noqa: E402

PATH = "/ceems-admission-controller/mutate"


def pod_spec(containers):
    """The specification of a pod as the API server writes it, with all defaults: about 1.3 KB for each container."""
    return {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "securityContext": {}, "serviceAccountName": "default", "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                                                                                   "effect": "NoExecute", "tolerationSeconds": 300}],
            "containers": [{"name": "c%d" % i, "image": "registry.example.org/science/solver:2026.11", "command": ["/bin/solver", "--steps=100"],
                            "env": [{"name": "VARIABLE_%d" % j, "value": "value %d" % j} for j in range(20)],
                            "resources": {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}},
                            "volumeMounts": [{"name": "kube-api-access", "readOnly": True,
                                              "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                            "imagePullPolicy": "IfNotPresent"} for i in range(containers)]}


def review(thing, old=None):
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "b1d6a2ba-4ac1-4b5c-9f9e-0a4ad6a4e8b1", "operation": "UPDATE" if old else "CREATE", "namespace": "science", "name": "solver",
        "userInfo": {"username": "ann", "uid": "7f0c", "groups": ["users", "system:authenticated"]}, "object": thing, "oldObject": old,
        "dryRun": False, "options": None}}


def reviews():
    """(name, review)"""
    metadata = {"name": "solver", "namespace": "science", "labels": {"app": "solver"},
                "annotations": {"example.org/%d" % i: "x" * 40 for i in range(10)}}
    yield "pod", review({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(2)})
    template = {"metadata": metadata, "spec": pod_spec(4)}
    before, after = ({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": n, "template": template}}
                     for n in (1, 2))
    yield "Deployment, scaled", review(after, before)
    yield "pod with 1 MiB of annotations", review({"apiVersion": "v1", "kind": "Pod", "spec": pod_spec(2), "metadata": {
        "annotations": {"example.org/%d" % i: "x" * 4096 for i in range(256)}}})


def resident_mb(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as text:
        return sum(int(line.split()[1]) for line in text if line.startswith("VmRSS:")) / 1024


def measure(options):
    rows = []
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as directory:
        os.chmod(directory, 0o755)
        for name, document in reviews():
            body = json.dumps(document, separators=(",", ":"))
            request = os.path.join(directory, "request")
            with open(request, "w", encoding="utf-8") as out:
                out.write("POST %s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                          % (PATH, len(body), body))
            rate = 1000 if len(body) < 100_000 else 10
            port = free_port()
            with Program([os.path.join(options.bin, "ceems_k8s_admission_controller"), "--web.listen-address=127.0.0.1:%d" % port,
                          "--log.level=warn"], os.path.join(directory, "log")) as program:
                wait_until("health", lambda port=port: get("http://127.0.0.1:%d/health" % port).status == 200)
                rounds = []
                for _ in range(options.rounds):
                    before = process_cpu_seconds(program.pid)
                    text = subprocess.run([os.path.join(options.bin, "webhook"), str(port), str(rate), str(options.seconds), "10", request],
                                          capture_output=True, text=True, check=True).stdout
                    found = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", text)}
                    assert found["errors"] == 0, text
                    found["cpu"] = (process_cpu_seconds(program.pid) - before) / found["reviews"] * 1e6
                    rounds.append(found)
                best = min(rounds, key=lambda one: one["p99_ms"])
                rows.append((name, len(body), rate, min(one["cpu"] for one in rounds), best["p50_ms"], best["p99_ms"],
                             max(one["p99_ms"] for one in rounds), resident_mb(program.pid)))
    return rows


def table(rows, load):
    lines = ["Measured on %s: %d CPUs, Linux %s; load average of other work before it: %.1f." % (datetime.date.today(), os.cpu_count(),
                                                                                              platform.release(), load), "",
             "| review | bytes | reviews/s | CPU, µs | p50, ms | p99, ms | worst p99, ms | RSS, MB |", "|---|---|---|---|---|---|---|---|"]
    return "\n".join(lines + ["| %s | %d | %d | %.0f | %.2f | %.2f | %.2f | %.1f |" % row for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seconds", type=int, default=5, help="of one round (default: 5)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--write")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    text = table(measure(options), load)
    print(text)
    if options.write:
        write_section(options.write, "webhook", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
