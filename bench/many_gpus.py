"""Jobs with many GPUs that ended an hour ago: their series in a Prometheus, their rows in the database of a real ceems_api_server. The counters
are those of the invented cluster of `make run`."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "integration"))
sys.path.insert(0, os.path.join(HERE, "..", "scripts", "run"))
import harness  # noqa: E402
from launcher import invented  # noqa: E402
from launcher.demo_cluster import STAND_IN, DemoCluster, sampled  # noqa: E402

LIFE = 3600
# name, ID, nodes, GPUs on each, seconds between readings
JOBS = (("8 nodes x 8 GPUs", "808", 8, 8, 15), ("512 nodes x 4 GPUs", "5124", 512, 4, 60))


def made(name, number, nodes, gpus, start):
    """A GPU of each node does nothing, so that there is something to see."""
    busy = tuple(0.95 - 0.01 * i for i in range(gpus - 1)) + (0.0,)
    kind = invented.Kind(name, "root", "demo-ai", 64, 512, (1, 1), 2, 0.45, 0.3, busy, 0.6, nodes=nodes)
    job = invented.Job(kind, [("%s-n%03d" % (number, n), 64, 512, gpus, 330.0, "measured") for n in range(nodes)], start, LIFE, start - 60, "COMPLETED", 0.5)
    job.id = number
    return job


def write_history(path, jobs):
    with open(path, "w", encoding="ascii") as f:
        for job, step in jobs:
            for node in job.nodes:
                for values in (job.charts, job.lines, job.gauges, job.present, job.totals):
                    for series, points in sampled(lambda at, values=values, job=job, node=node: values(at, node), job.start, job.end, step):
                        labels = DemoCluster._labels(series)
                        f.writelines("%s %.10g %d\n" % (labels, value, at) for value, at in points)
        f.write("# EOF\n")


def write_slurm(folder, jobs):
    """The folder with sacct and sacctmgr."""
    rows = [{"id": job.id, "shown": job.id, "name": job.kind.name, "user": job.kind.user, "account": job.kind.project, "partition": "gpu", "submit": job.submit,
             "start": job.start, "end": job.end, "state": job.state, "cpus": 64 * len(job.nodes), "gib": 512 * len(job.nodes),
             "gpus": len(job.kind.busy) * len(job.nodes), "nodes": [node[0] for node in job.nodes], "limit": 120} for job, _ in jobs]
    with open(os.path.join(folder, "jobs.json"), "w", encoding="ascii") as f:
        json.dump({"jobs": rows, "projects": {"demo-ai": ["root"]}}, f)
    for name in ("sacct", "sacctmgr"):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexec '%s' -S -E '%s' %s '%s/jobs.json' \"$@\"\n" % (sys.executable, STAND_IN, name, folder))
        os.chmod(path, 0o755)


@contextlib.contextmanager
def prometheus(work, jobs):
    """Its address. It has the series of the jobs."""
    history, tsdb = os.path.join(work, "history.txt"), os.path.join(work, "tsdb")
    write_history(history, jobs)
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", history, tsdb], check=True, stdout=subprocess.DEVNULL)
    os.remove(history)
    with open(os.path.join(work, "prometheus.yml"), "w", encoding="ascii") as f:
        f.write("global: {scrape_interval: 15s}\n")
    port = harness.free_port()
    url = "http://127.0.0.1:%d" % port
    with open(os.path.join(work, "prometheus.log"), "w", encoding="ascii") as log:
        program = subprocess.Popen([shutil.which("prometheus"), "--config.file=%s/prometheus.yml" % work, "--storage.tsdb.path=" + tsdb,
                                    "--web.listen-address=127.0.0.1:%d" % port, "--log.level=warn"], stdout=log, stderr=log)
    try:
        harness.wait_until("Prometheus is ready", lambda: harness.get(url + "/-/ready").status == 200, 60)
        yield url
    finally:
        program.terminate()
        program.wait(60)


@contextlib.contextmanager
def server(bin_dir, work):
    """(program, address) of a server that knows the jobs, and their addresses on the page by name."""
    harness.BIN = bin_dir
    start = int(time.time()) - 2 * LIFE
    jobs = [(made(name, number, nodes, gpus, start), step) for name, number, nodes, gpus, step in JOBS]
    for name in ("data", "slurm"):
        os.mkdir(os.path.join(work, name))
    write_slurm(os.path.join(work, "slurm"), jobs)
    with prometheus(work, jobs) as tsdb:
        config = ("ceems_api_server:\n  data: {path: %s/data, update_interval: 10s, max_update_interval: 1d, update_from: \"%s\"}\n  admin: {users: [root]}\n"
                  "clusters:\n  - {id: %s, manager: slurm, updaters: [tsdb], cli: {path: %s/slurm}}\n"
                  "updaters:\n  - {id: tsdb, updater: tsdb, web: {url: '%s'}}\n"
                  % (work, time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(start - 600)), invented.CLUSTER, work, tsdb))
        program, url = harness.start_api_server(work, config, ["--no-security.drop-privileges", "--log.level=warn"])
        with program:
            asked = urllib.request.Request("%s/api/v1/units/list?from=%d&limit=9" % (url, start - 600), headers={"X-Grafana-User": "root"})

            def known():
                with urllib.request.urlopen(asked, timeout=20) as answer:
                    return len(json.load(answer)["data"]["rows"]) == len(jobs)
            harness.wait_until("the jobs are known", known, 120)
            yield program, url, {job.kind.name: "#/unit/%s/%s" % (invented.CLUSTER, job.id) for job, _ in jobs}
