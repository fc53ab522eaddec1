#!/usr/bin/env python3
"""Jobs of LSF and OpenPBS whose ids mean something else as regular expressions, `6[1]` and `12[3].srv`, from their cgroups through the
exporter, Prometheus, the updater and the database to the API and the load balancer. Beside each runs the job that its id would match,
`61` and `123.srv`, of somebody else. bjobs, bacct and qstat are fake_batch.py; cgroups are plain files."""

import contextlib
import json
import os
import sqlite3
import sys
import time
import urllib.parse

import harness
from harness import get, need_programs, run_tests, samples, start_api_server, start_exporter, start_prometheus, wait_for_rounds, wait_until, write

HERE = os.path.dirname(os.path.abspath(__file__))
ADA, BOB = {"X-Grafana-User": "ada"}, {"X-Grafana-User": "bob"}
# cluster: [(id, user, cgroup, memory in use)]
JOBS = {
    "lsf": [("6[1]", "ada", "lsf/gold/job.6[1].101.1767225600", 1000000), ("61", "bob", "lsf/gold/job.61.102.1767225600", 2000000)],
    "openpbs": [("12[3].srv", "ada", "pbs_jobs.service/jobs/12[3].srv", 3000000),
                ("123.srv", "bob", "pbs_jobs.service/jobs/123.srv", 4000000)],
}
USED = "ceems_compute_unit_memory_used_bytes"
HOST = "n1"


def make_node(root):
    """A node with cgroup v2 on which all jobs run."""
    write(root + "/proc/meminfo", "MemTotal: 67108864 kB\nSwapTotal: 0 kB\n")
    write(root + "/proc/diskstats", "")
    write(root + "/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    pid = 100
    for jobs in JOBS.values():
        for _, _, path, used in jobs:
            pid += 1
            cgroup = root + "/sys/fs/cgroup/" + path + "/"
            write(root + "/proc/%d/cmdline" % pid, "x\0")
            for name, text in (("cgroup.controllers", "cpu memory\n"), ("cgroup.procs", "%d\n" % pid),
                               ("cgroup.events", "populated 1\nfrozen 0\n"), ("cpuset.cpus.effective", "0-1\n"),
                               ("cpu.stat", "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000\n"),
                               ("memory.stat", "anon %d\nfile 0\n" % used), ("memory.current", "%d\n" % used),
                               ("memory.max", "2147483648\n"), ("memory.events", "oom 0\n")):
                write(cgroup + name, text)


def install_commands(directory, begin):
    """The commands of both systems, each with its jobs."""
    for cluster, jobs in JOBS.items():
        write(directory + "/%s.json" % cluster, json.dumps(
            [{"id": i, "user": user, "project": "of-" + user, "host": HOST, "slots": 2, "start": begin, "end": 0}
             for i, user, _, _ in jobs]))
        for name in ("bjobs", "bacct", "qstat"):
            path = directory + "/%s-bin/%s" % (cluster, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(os.path.join(HERE, "fake_batch.py"), path)


def finish_jobs(directory, cluster, end):
    path = directory + "/%s.json" % cluster
    with open(path) as f:
        jobs = json.load(f)
    write(path + ".new", json.dumps([dict(job, end=end) for job in jobs]))
    os.rename(path + ".new", path)


def api_config(directory, begin, prometheus):
    clusters, updaters = "", ""
    # Both kinds of quotes that CEEMS has generated around {{.UUIDs}}.
    for cluster, quote in (("lsf", '"'), ("openpbs", "`")):
        clusters += """
  - id: %s-0
    manager: %s
    updaters: [%s]
    cli:
      path: %s/%s-bin
      environment_variables: {CEEMS_FAKE_JOBS: %s/%s.json, PATH: '/usr/bin:/bin', PYTHONDONTWRITEBYTECODE: '1'}
""" % (cluster, cluster, cluster, directory, cluster, directory, cluster)
        updaters += """
  - id: %s
    updater: tsdb
    web: {url: %s}
    extra_config:
      queries:
        avg_cpu_mem_usage:
          global: 'avg by (uuid) (avg_over_time(%s{uuid=~%s{{.UUIDs}}%s}[{{.Range}}]))'
""" % (cluster, prometheus, USED, quote, quote)
    return """
ceems_api_server:
  data: {path: %s/data, update_interval: 1s, max_update_interval: 1h, update_from: %s, time_zone: Europe/Paris}
  admin: {users: [operator]}
clusters:%s
updaters:%s
""" % (directory, time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin)), clusters, updaters)


def check_exporter(page):
    for cluster, jobs in JOBS.items():
        for uuid, _, _, used in jobs:
            labels = '{cgrouphostname="",hostname="%s",manager="%s",uuid="%s"}' % (HOST, cluster, uuid)
            assert (labels, used) in samples(page, USED), (labels, samples(page, USED))
            assert (labels, 2.0) in samples(page, "ceems_compute_unit_cpus"), samples(page, "ceems_compute_unit_cpus")


def check_api(url, directory):
    def units(user, uuid, cluster):
        query = urllib.parse.urlencode({"uuid": uuid, "cluster_id": cluster + "-0", "running": ""})
        return get(url + "/api/v1/units?" + query, user).json["data"]

    for cluster, jobs in JOBS.items():
        (mine, _, _, my_memory), (others, _, _, other_memory) = jobs

        def averages(user, uuid, cluster=cluster):
            return [unit.get("avg_cpu_mem_usage", {}).get("global") for unit in units(user, uuid, cluster)]
        # The value of the other job, or a sum of both, would show that the updater asked for a pattern.
        wait_until("the average of %s" % mine, lambda: averages(ADA, mine) == [my_memory], timeout=90)
        wait_until("the average of %s" % others, lambda: averages(BOB, others) == [other_memory], timeout=90)
        unit = units(ADA, mine, cluster)[0]
        assert unit["uuid"] == mine and unit["resource_manager"] == cluster and unit["project"] == "of-ada", unit
        requested = {"req_mem": 2 << 30, "time_limit": 3600} if cluster == "lsf" else {}
        assert unit["allocation"] == {"cpus": 2, "gpus": 0, "mem": 2 << 30, "nodes": 1} | requested, unit["allocation"]
        assert not units(ADA, others, cluster) and not units(BOB, mine, cluster)

        def verify(user, uuid, cluster=cluster):
            query = urllib.parse.urlencode({"uuid": uuid, "cluster_id": cluster + "-0"})
            return get(url + "/api/v1/units/verify?" + query, user).status
        assert (verify(ADA, mine), verify(ADA, others), verify(BOB, mine), verify(BOB, others)) == (200, 403, 403, 200)
    with contextlib.closing(sqlite3.connect("file:%s/data/ceems.db?mode=ro" % directory, uri=True)) as db:
        stored = {row[0] for row in db.execute("SELECT uuid FROM units")}
    assert stored == {job[0] for jobs in JOBS.values() for job in jobs}, stored


def check_load_balancer(url):
    def ask(user, cluster, selector):
        """The status, and the values of the series that were returned."""
        query = urllib.parse.urlencode({"query": USED + "{" + selector + "}"})
        answer = get(url + "/api/v1/query?" + query, dict(user, **{"X-Ceems-Cluster-Id": cluster + "-0"}))
        rows = answer.json["data"]["result"] if answer.status == 200 else []
        return answer.status, sorted(float(row["value"][1]) for row in rows)

    refused = (403, [])
    for cluster, jobs in JOBS.items():
        (mine, _, _, my_memory), (others, _, _, other_memory) = jobs
        literal = "".join("[%s]" % c if c in "[]." else c for c in mine)  # 6[[]1[]]
        escaped = "".join("\\" + c if c in "[]." else c for c in mine)  # 6\[1\]
        for selector in ('uuid="%s"' % mine, "uuid='%s'" % mine, "uuid=`%s`" % mine, 'uuid=~"%s"' % literal, "uuid=~`%s`" % literal,
                         "uuid=~`%s`" % escaped, 'uuid=~"%s"' % escaped.replace("\\", "\\\\")):
            assert ask(ADA, cluster, selector) == (200, [my_memory]), (selector, ask(ADA, cluster, selector))
            assert ask(BOB, cluster, selector) == refused, selector
        # As a pattern the text of the id matches the other job alone. It must open that to its owner only.
        as_pattern = mine.replace(".", "[.]")
        assert ask(ADA, cluster, 'uuid=~"%s"' % as_pattern) == refused
        assert ask(BOB, cluster, 'uuid=~"%s"' % as_pattern) == (200, [other_memory])
        assert ask(ADA, cluster, 'uuid=~"%s|%s"' % (literal, others)) == refused
        assert ask(ADA, cluster, 'uuid=~"%s.*"' % literal) == refused
    # The dot of 12[3].srv stands for any character, so nobody can own all that it matches.
    assert ask(ADA, "openpbs", 'uuid=~"12[3].srv"') == refused and ask(BOB, "openpbs", 'uuid=~"12[3].srv"') == refused


def ids_with_brackets(directory):
    begin = int(time.time()) - 30
    make_node(directory + "/node")
    install_commands(directory, begin)
    root = directory + "/node"
    user = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
    exporter, exporter_url = start_exporter(directory, [
        "--path.procfs=%s/proc" % root, "--path.sysfs=%s/sys" % root, "--path.cgroupfs=%s/sys/fs/cgroup" % root,
        "--collector.cgroups.force-version=v2", "--collector.disable-defaults", "--no-security.drop-privileges", "--collector.lsf",
        "--collector.lsf.bjobs-path=%s/lsf-bin" % directory, "--collector.openpbs", "--no-collector.energy"],
        {"NODE_NAME": HOST, "CEEMS_FAKE_JOBS": directory + "/lsf.json", "PYTHONDONTWRITEBYTECODE": "1"})
    with exporter:
        page = wait_until("the CPUs that LSF allocated", lambda: (
            lambda text: text if 'manager="lsf",uuid="6[1]"} 2\n' in text else None)(get(exporter_url + "/metrics").text))
        check_exporter(page)
        prometheus, prometheus_url = start_prometheus(directory, [urllib.parse.urlsplit(exporter_url).netloc])
        with prometheus:
            api, api_url = start_api_server(directory, api_config(directory, begin, prometheus_url), user)
            with api:
                check_api(api_url, directory)
                port = harness.free_port()
                config = write(directory + "/lb.yml", "ceems_lb:\n  strategy: round-robin\n  backends:\n%sceems_api_server:\n  web: {url: '%s'}\n"
                               % ("".join("    - {id: %s-0, tsdb: [{web: {url: '%s'}}]}\n" % (c, prometheus_url) for c in JOBS), api_url))
                with harness.Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config,
                                      "--web.listen-address=127.0.0.1:%d" % port], directory + "/lb.log") as balancer:
                    url = "http://127.0.0.1:%d" % port
                    balancer.wait_ready(url + "/-/healthy")
                    check_load_balancer(url)
                check_end(directory, api_url)


def check_end(directory, url):
    """The jobs end; the units get their end, and the members of the projects stay."""
    end = int(time.time())
    for cluster in JOBS:
        finish_jobs(directory, cluster, end)
    for cluster, state in (("lsf", "DONE"), ("openpbs", "FINISHED")):
        uuid = JOBS[cluster][0][0]
        query = urllib.parse.urlencode({"uuid": uuid, "cluster_id": cluster + "-0", "from": end - 600, "to": end + 600})
        unit = wait_until("the end of %s" % uuid, lambda query=query: next(
            (u for u in get(url + "/api/v1/units?" + query, ADA).json["data"] if u["ended_at_ts"]), None))
        assert unit["state"] == state and unit["ended_at_ts"] == end * 1000, unit
        assert abs(unit["total_time_seconds"]["walltime"] - (end - unit["started_at_ts"] / 1000)) < 0.01, unit
    wait_for_rounds(url, 3)  # some windows without any job
    for cluster in JOBS:
        rows = get(url + "/api/v1/projects?project=of-ada&cluster_id=%s-0" % cluster, ADA).json["data"]
        assert any(row["users"] == ["ada"] for row in rows), rows


if __name__ == "__main__":
    need_programs("prometheus")
    sys.exit(run_tests([ids_with_brackets], "ceems-batch-"))
