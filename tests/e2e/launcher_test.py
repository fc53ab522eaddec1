#!/usr/bin/env python3
"""Tests what `make run` starts: the real stack with its demo units, and how the launcher behaves when things go wrong.

Needs the programs (CEEMS_BIN_DIR) and Debian's prometheus. Demo units need root and cgroups; the output says if they are left
out."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from harness import BIN, ROOT, free_port, get, need_programs, scratch, skip, wait_until  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "scripts", "run"))

from launcher import accounts, bills, cgroups, invented, machine, past  # noqa: E402
from launcher.demo_cluster import DemoCluster, sampled  # noqa: E402

RUN = os.path.join(ROOT, "scripts", "run", "ceems-run")
V2 = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
V1 = ("30 25 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw,nsdelegate\n"
      "31 25 0:28 / /sys/fs/cgroup/systemd rw shared:6 - cgroup cgroup rw,xattr,name=systemd\n"
      "33 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:8 - cgroup cgroup rw,cpu,cpuacct\n"
      "34 25 0:31 / /sys/fs/cgroup/my\\040memory rw shared:9 - cgroup cgroup rw,memory\n")
PAGE = """# TYPE ceems_energy_source_info gauge
ceems_energy_source_info{domain="package",hostname="n\\"1",method="measured",source="rapl"} 1
ceems_energy_source_info{domain="other",hostname="n",method="derived",source="wall"} 1
"""


def reads_what_the_machine_says():
    assert cgroups.hierarchies(V2) == ("v2", {"": "/sys/fs/cgroup"})
    both = "/sys/fs/cgroup/cpu,cpuacct"
    assert cgroups.hierarchies(V1) == ("v1", {"cpuacct": both, "cpu": both, "memory": "/sys/fs/cgroup/my memory"})
    assert cgroups.hierarchies("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n") == (None, {})
    assert machine.energy(PAGE) == (["package, measured by rapl"], [])
    found, advice = machine.energy(PAGE.replace("measured", "modelled"))
    assert found == ["package, modelled by rapl"] and "estimated" in advice[0]
    assert "no source" in machine.energy("")[1][0]
    print("PASS: mounts and meters are parsed")


def values(pairs):
    return dict(pairs)


def invents_a_consistent_cluster(directory):
    """The same for the same origin; one job at a time on a node; counters grow; the energy of a node is that of its jobs and what is left."""
    origin = 1_700_000_000 // invented.DAY * invented.DAY
    jobs = invented.jobs_of(origin, origin + 20 * invented.DAY)
    again = invented.jobs_of(origin, origin + 30 * invented.DAY)
    assert [(j.id, j.start, j.end, j.state, j.nodes) for j in jobs] == [(j.id, j.start, j.end, j.state, j.nodes) for j in again[:len(jobs)]]
    assert len({j.id for j in jobs}) == len(jobs) > 600
    assert {j.kind.name for j in jobs} == {kind.name for kind in invented.KINDS}
    assert len({user for users in invented.PROJECTS.values() for user in users}) == 9
    assert all(j.kind.user in invented.PROJECTS[j.kind.project] and len(j.nodes) == j.kind.nodes and j.submit <= j.start for j in jobs)
    tasks = [j for j in jobs if j.task and j.task[0].id == next(one for one in jobs if one.task).id]
    assert sorted(j.shown_id() for j in tasks) == ["%s_%d" % (tasks[0].id, number) for number in range(1, 7)], tasks
    assert [sum(1 for node in invented.NODES if node[0].startswith("demo-r%d-" % rack)) for rack in (1, 2, 3)] == [8, 8, 8]
    for node in invented.NODES:
        own = [j for j in jobs if node in j.nodes]
        assert len(own) > 20 and all(a.end < b.start for a, b in zip(own, own[1:]))
        assert all(j.kind.cpus <= node[1] and j.kind.gib <= node[2] and len(j.kind.busy) <= node[3] for j in own)
        machine, before = invented.Machine(node, own, origin), {}
        for at in range(origin, origin + 20 * invented.DAY, 7 * invented.HOUR):
            joules = {name.split("{")[0]: value for name, value in machine.energy(at)}
            parts = joules["ceems_unallocated_energy_joules_total"] + joules["ceems_ended_units_energy_joules_total"] + sum(
                values(j.charts(at, node))[j.series("compute_unit_energy_joules_total", node, ',domain="node"')] for j in own if j.start <= at < j.end)
            assert abs(joules["ceems_node_energy_joules_total"] - parts) <= 1e-6 * max(parts, 1)
            assert all(value >= before.get(name, 0) for name, value in joules.items()), (before, joules)
            before = joules
        for job in own[:4]:  # counters of a node never fall
            rows = [values([*machine.use(at), *machine.energy(at)]) for at in range(job.start, job.end, 300)]
            assert all(a[name] <= b[name] + 1e-6 for a, b in zip(rows, rows[1:]) for name in a if "_total{" in name)
            ends = [values([*job.charts(at, node), *job.lines(at, node), *job.totals(at, node), *job.reserved(at, node)])
                    for at in (job.start, (job.start + job.end) // 2, job.end, job.end + 99)]
            assert all(a[name] <= b[name] for a, b in zip(ends, ends[1:]) for name in a if "_total{" in name)
            assert ends[2] == ends[3], "nothing is counted after the end"
            agrees_with_itself(job, machine, ends[2])
    slow = next(j for j in jobs if j.kind.nodes > 1 and invented.SLOW in {node[0] for node in j.nodes})
    assert sorted(slow.cpus, key=slow.cpus.get)[0] == invented.SLOW and len(set(slow.cpus.values())) == 2, slow.cpus
    a_hot_gpu_is_throttled(jobs, origin)
    assert dict(sampled(lambda at: [("x", 2 * at)], 7, 31, 10)) == {"x": [(14, 7), (20, 10), (40, 20), (60, 30), (62, 31)]}
    cluster = DemoCluster(directory, 5)
    assert cluster.origin == cluster.until < time.time() - 32 * invented.DAY
    older_months_are_sums(cluster, directory)
    bills_are_of_the_meter(cluster)
    history_is_in_order(cluster)
    lists_jobs_as_slurm_does(cluster)


def agrees_with_itself(job, machine, end):
    """The domains of a job, its GPUs and what it did not use."""
    def of(name, **labels):
        found = [value for series, value in end.items() if series.startswith("ceems_compute_unit_%s{" % name)
                 and all('%s="%s"' % pair in series for pair in labels.items())]
        return sum(found)
    life, kind = job.end - job.start, job.kind
    domains = [of("energy_joules_total", domain=domain) for domain in ("package", "dram", "other", "gpu")]
    assert abs(of("energy_joules_total", domain="node") - sum(domains)) < 1e-6 * sum(domains)
    idle, unused = (of(name + "_joules_total", domain="package") for name in ("idle_energy", "unused_idle_energy"))
    assert abs(unused / idle - (1 - job.cpus[machine.node[0]])) < 1e-9, (unused, idle)
    assert 0 < of("unused_idle_energy_joules_total", domain="node") <= of("idle_energy_joules_total", domain="node") <= of("energy_joules_total", domain="node")
    if kind.busy:
        watts = sum(value for at in range(job.start, job.end, 60) for name, value in machine.gpus(at) if "_power_watts" in name) * 60
        reserved = invented.GPU_IDLE_WATTS * (machine.node[3] - len(kind.busy)) * life  # of GPUs that the job does not have
        assert abs(watts - reserved - domains[3]) < 0.02 * watts, (watts, reserved, domains)


def a_hot_gpu_is_throttled(jobs, origin):
    name, index = invented.HOT
    node = next(node for node in invented.NODES if node[0] == name)
    own = [j for j in jobs if node in j.nodes]
    job = next(j for j in own if len(j.kind.busy) == 4 and all(j.kind.busy))
    now = values(invented.Machine(node, own, origin).gpus((job.start + job.end) // 2))
    clocks, watts = ([value for series, value in now.items() if series.startswith(metric)] for metric in ("ceems_gpu_clock_hertz", "ceems_gpu_power_watts"))
    assert [clock < 1.2e9 for clock in clocks] == [i == index for i in range(4)] and min(watts) == watts[index], (clocks, watts)


def older_months_are_sums(cluster, directory):
    """What the database begins with has the energy of all jobs until the measured time, and is not written twice."""
    path = directory + "/older.db"
    past.write(path, cluster.older, cluster.origin)
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT project, last_updated_at, json_extract(total_cpu_energy_usage_kwh, '$.total') + "
                                "coalesce(json_extract(total_gpu_energy_usage_kwh, '$.total'), 0) FROM daily_usage").fetchall()
        lives = database.execute("SELECT max(last_updated_at), sum(num_units) FROM usage").fetchone()
    expected = sum(job.joules(job.age(cluster.origin), node)["node"] for job in cluster.older for node in job.nodes) / 3.6e6
    assert abs(sum(kwh for _, _, kwh in rows) - expected) < 1e-6 * expected, expected
    assert len({day for _, day, _ in rows}) == 363 and {project for project, *_ in rows} == set(invented.PROJECTS)
    assert lives == (time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(cluster.origin)), len(cluster.older)), lives
    written = os.stat(path).st_mtime_ns
    past.write(path, [], cluster.origin)
    assert os.stat(path).st_mtime_ns == written


def bills_are_of_the_meter(cluster):
    """One for each month, without a gap until today began; together they are what the nodes and the site used."""
    with open(cluster.write_bills()) as f:
        head, *rows = f.read().splitlines()
    assert head == "period_start,period_end,kwh,cost,currency,kgco2_market" and 12 <= len(rows) <= 13, rows
    parts = [row.split(",") for row in rows]
    assert all(one[1] == following[0] for one, following in zip(parts, parts[1:])), rows
    assert parts[0][0] > time.strftime("%Y-%m-%d", time.localtime(cluster.origin - 363 * invented.DAY))
    assert parts[-1][1] == time.strftime("%Y-%m-%d"), rows
    # Months that are over have their emissions; until then, the contract counts, which is the same.
    going_on = not parts[-1][1].endswith("-01")
    assert [one[5] != "" for one in parts] == [True] * (len(parts) - going_on) + [False] * going_on, rows
    assert all(abs(float(one[5]) - 0.06 * float(one[2])) < 1 for one in parts if one[5]), rows
    with open(os.path.join(ROOT, "packaging/demo/api_server_demo.yml")) as f:
        assert re.search(r"market:\n +- {clusters: \[demo\], g_kwh: 60, source: \".+\"}", f.read())
    # The last 30 days by counting the power of each hour.
    end = int(time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1)))
    machines = [(cluster.origin, end, cluster.machines)]
    begin = end - 30 * invented.DAY
    joules = sum(value for machine in cluster.machines for at, sign in ((end, 1), (begin, -1))
                 for name, value in ((name, sign * value) for name, value in machine.energy(at)) if name.startswith("ceems_node_energy"))
    joules += sum(value * invented.HOUR for at in range(begin, end, invented.HOUR) for _, value in invented.site_series(at))
    assert abs(bills.kwh_between(machines, begin, end) - 1.03 * joules / 3.6e6) < 0.01, (joules, begin)
    kwh = [float(one[2]) for one in parts[:12]]
    assert max(kwh) < 1.25 * min(kwh) and all(abs(float(one[3]) - 0.25 * float(one[2])) < 0.2 for one in parts), rows


def history_is_in_order(cluster):
    """promtool refuses a sample that is older than one before it; here with jobs that have just ended."""
    ended, last = max(job.end for job in cluster.jobs if job.end < time.time()), {}
    for series, points in cluster._missed(ended + invented.HOUR):
        for _, at in points:
            assert last.get(series, 0) < at, (series, last[series], at)
            last[series] = at
    assert len(last) > 10_000, len(last)


def lists_jobs_as_slurm_does(cluster):
    folder = cluster.write_slurm()
    now = int(time.time())
    job = next(j for j in cluster.jobs if j.kind.nodes == 2 and cluster.origin < j.start and j.end < now - invented.HOUR)

    def ask(program, *arguments):
        return subprocess.run([os.path.join(folder, program), *arguments], capture_output=True, text=True, check=True).stdout.splitlines()

    def stamp(at):
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    fields = "--format", "jobidraw,user,account,start,end,state,alloctres,timelimitraw,jobname"
    found = ask("sacct", *fields, "--starttime", stamp(job.start), "--endtime", stamp(job.start + 60), "--delimiter=<>")
    line = "<>".join([job.id, job.kind.user, job.kind.project, stamp(job.start) + "+0000", stamp(job.end) + "+0000", job.state,
                      "billing=128,cpu=128,mem=800G,node=2,gres/gpu=8",
                      str(60 * job.kind.limit), job.kind.name])
    assert line in found, (line, found)
    assert ask("sacct", *fields, "--jobs", job.id, "--delimiter=<>") == [line]
    assert not [j for j in ask("sacct", *fields, "--starttime", stamp(now + 60), "--endtime", stamp(now + invented.DAY)) if "PENDING" in j]
    assert "demo-ai|demo-user" in ask("sacctmgr", "list", "associations") and "timelimitraw" in ask("sacct", "--helpformat")[0]


def hashes_passwords():
    first, second = accounts.bcrypt("a b"), accounts.bcrypt("a b")
    assert first != second and first.startswith("$2b$10$") and len(first) == 60, first


def start(directory, ports, *arguments):
    env = dict(os.environ, CEEMS_BIN_DIR=BIN, CEEMS_STATE_DIR=directory, CEEMS_PORT_EXPORTER=str(ports[0]),
               CEEMS_PORT_API=str(ports[1]), CEEMS_PORT_PROMETHEUS=str(ports[2]))
    return subprocess.Popen([RUN, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True)


def finish(process, timeout=1300):
    output, _ = process.communicate(timeout=timeout)
    assert "Traceback" not in output, output
    return process.returncode, output


def run_file(directory):
    with open(directory + "/run.json") as f:
        return json.load(f)


def wait_url(directory):
    return wait_until("the launcher reports the URL of its page", lambda: run_file(directory)["url"])


def assert_nothing_left(children, ports):
    for child in children:
        wait_until("%s has ended" % child["name"], lambda pid=child["pid"]: not os.path.exists("/proc/%d" % pid))
    for port in ports:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))


def first_run(directory, ports):
    code, output = finish(start(directory, ports, "--once-check"))
    print(output)
    assert code == 0, "status %d" % code
    assert "FAIL" not in output and "PASS" in output
    assert not os.path.exists(directory + "/run.json"), "run.json still exists after everything has stopped"


def second_run(directory, ports):
    begin = time.monotonic()
    process = start(directory, ports)
    url = wait_url(directory)
    print("second start: %.1f s" % (time.monotonic() - begin))
    children = run_file(directory)["children"]
    base = "http://127.0.0.1:%d" % ports[1]
    admin = as_account(directory, "demo-admin")
    now = int(time.time())
    units = get("%s/api/v1/units/admin?running=1&from=%d&to=%d&cluster_id=local" % (base, now - 3600, now + 60), admin).json["data"]
    print("known from the first run: %s" % ", ".join(sorted(u["uuid"] for u in units)))
    if any("demo unit" in child["name"] for child in children):
        short = [u for u in units if u["uuid"].startswith("five-seconds-")]
        assert short, "state is not kept between runs"
        assert {(u["name"], u["username"], u["project"]) for u in short} == {("five-seconds", "demo-user", "this-machine")}, short

    demo_is_complete(directory, base, now)
    see_page(directory, url)
    rules_work("http://127.0.0.1:%d" % ports[2], units)

    code, output = finish(start(directory, ports))
    assert code == 1 and "the stack is already running (pid %d)" % process.pid in output, output

    process.send_signal(signal.SIGTERM)
    code, output = finish(process)
    assert code == 0, output
    assert_nothing_left(children, ports)
    assert not glob.glob("/sys/fs/cgroup/**/ceems_demo/*-%s" % last_token(children), recursive=True)
    print("PASS: SIGTERM stops everything")


def rules_work(prometheus, units):
    """The shipped rules are evaluated, and write the power of the machine and of its units."""
    def record(name):
        return get(prometheus + "/api/v1/query?query=" + name).json["data"]["result"]
    wait_until("the record of the node's power", lambda: record("hostname:ceems_node_power_watts:rate"), 100)
    if units:
        watts = wait_until("the record of units for CEEMS' dashboards", lambda: record("uuid:ceems_host_power_watts:pue"), 100)
        assert {"uuid", "manager", "hostname", "instance", "job"} <= set(watts[0]["metric"]), watts[0]
        assert any(float(one["value"][1]) > 0 for one in watts), watts
    groups = get(prometheus + "/api/v1/rules").json["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 100 and {"ceems-nodes", "ceems-compat-units", "ceems-energy-alerts"} <= {group["name"] for group in groups}
    wrong = [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] not in ("ok", "unknown")]
    assert not wrong, wrong
    print("PASS: %d rules are evaluated" % len(rules))


def as_account(directory, name):
    with open(directory + "/config/token") as f:
        return {"X-Ceems-Service-Token": f.read().strip(), "X-Grafana-User": name}


def demo_is_complete(directory, base, now):
    """Jobs of all states, people and projects, their months and advice; and nobody sees them without the password or the token."""
    def ask(path, name="demo-admin"):
        for wait in (1, 10, 10, None):  # a server that is busy says so, and wants to be asked later
            answer = get(base + "/api/v1/" + path, as_account(directory, name))
            if wait is None or "Retry-After" not in answer.headers:
                break
            print("%s: %d %s" % (path, answer.status, answer.text.strip()))
            time.sleep(wait)
        assert answer.status == 200 and answer.json["data"] is not None, (path, answer.status, answer.text)
        return answer.json["data"]
    month = "from=%d&to=%d" % (now - 30 * invented.DAY, now)
    wait_until("the history of the demo", lambda: ask("units/summary/admin?cluster_id=demo&" + "from=%d&to=%d" % (now - 6 * invented.HOUR, now))["count"], 900)
    facets = ask("units/summary/admin?cluster_id=demo&facets=state,project,user,partition&" + month)["facets"]
    assert {"COMPLETED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED"} <= {value for value, *_ in facets["state"]}, facets
    assert {value for value, *_ in facets["project"]} == set(invented.PROJECTS) and len(facets["user"]) == 9 and len(facets["partition"]) == 2, facets
    sums = ask("units/summary/admin?cluster_id=demo&" + month)
    assert sums["count"] > 200 and sums["gpu_hours"] > sums["gpu_hours_used"] > 0 and 0 < sums["not_used_kwh"] < sums["idle_kwh"] < sums["kwh"] and sums["cost"] > 0, sums
    own = ask("units/summary?facets=user&" + month, "demo-user")
    assert 0 < own["count"] < sums["count"] and [value for value, *_ in own["facets"]["user"]] == ["demo-user"], own
    days = ask("usage/series/admin?cluster_id=demo&by=project&" + month)
    assert set(days["groups"]) == set(invented.PROJECTS) and sum(1 for day in zip(*days["values"]["kwh"]) if sum(day) > 0) > 25, days
    year = ask("usage/series/admin?cluster_id=demo&by=project&from=%d&to=%d" % (now - 395 * invented.DAY, now))
    assert sum(1 for day in zip(*year["values"]["kwh"]) if sum(day) > 0) > 390, year
    if time.localtime(now).tm_mday > 1:  # on the first, the month has no bill yet
        parts = wait_until("the days of nodes", lambda: (lambda found: found if found[-1]["hours"] else None)(ask("insight/bill/admin")), 900)
        kwh = {part["part"]: part["kwh"] for part in parts}
        assert kwh["meter"] > kwh["nodes"] + kwh["other"] > kwh["nodes"] > 0, parts
    grid = ask("grid")
    assert [(one["provider"], len(one["points"]) > 600) for one in grid["series"]] == [(zone[0], True) for zone in invented.ZONES], grid["providers"]
    newest = ask("units/list/admin?q=train-language-model&state=COMPLETED&sort=ended&limit=1&columns=uuid,started,kwh,gpu&cluster_id=demo&" + month)["rows"][0]
    report = ask("units/report/admin?cluster_id=demo&uuid=%s&start=%d" % (newest[0], newest[1]))[0]
    assert report["coverage"] >= 0.9 and "gpu-unused" in [finding["rule"] for finding in report["findings"]], report
    assert report["findings"][0]["sbatch"] == ["--gres=gpu:2"], report["findings"]
    series = ask("units/series?cluster_id=demo&uuid=%s&from=%d&to=%d" % (newest[0], newest[1] // 1000, newest[1] // 1000 + 6 * invented.HOUR))
    assert all(len(one["points"]) > 50 for one in series), [len(one["points"]) for one in series]
    span = "units/series?cluster_id=demo&uuid=%s&from=%d&to=%d" % (newest[0], newest[1] // 1000, newest[1] // 1000 + 6 * invented.HOUR)
    charts = ask(span + "&metric=cpu,memory,power,gpu_use,gpu_sm,gpu_memory,gpu_clock,gpu_power,io_read,io_write,net_in,net_out,psi_cpu,psi_memory,ipc,"
                 "intensity,emissions")
    assert len(charts) == 17 and all(len(one["points"]) > 50 for one in charts), [(one["name"], len(one["points"])) for one in charts]
    gpus = [one["points"] for one in ask(span + "&metric=gpu_use&by=gpu")]
    assert [max(value for _, value in points) > 50 for points in gpus] == [True, True, False, False], gpus
    for headers in ({}, {"X-Grafana-User": "demo-admin"}, {"X-Grafana-User": "demo-admin", "X-Ceems-Service-Token": "0" * 43}):
        assert get(base + "/api/v1/units/list", headers).status == 401, headers
    for name in ("password", "token", "users.yml"):
        assert os.stat("%s/config/%s" % (directory, name)).st_mode & 0o077 == 0, name
    print("PASS: the demo has %d jobs of the last 30 days, %.0f kWh" % (sums["count"], sums["kwh"]))


def see_page(directory, url):
    """Logs in as a newcomer does, in a browser."""
    if not shutil.which("chromium") or not shutil.which("npm"):
        print("page: not checked, because chromium or npm is not installed")
        return
    if b'id="app"' not in get(url, {}).body:
        print("page: not checked, because the programs are built without it")
        return
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([os.path.join(ROOT, "web", "install"), here], check=True)
    with open(directory + "/config/password") as f:
        environment = dict(os.environ, CEEMS_DEMO_URL=url, CEEMS_DEMO_PASSWORD=f.read().strip(), CHROMIUM=shutil.which("chromium"))
    done = subprocess.run(["node", "--test", "demo_test.mjs"], cwd=here, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    print("PASS: a newcomer finds every kind of page")


def last_token(children):
    names = [c["name"] for c in children if c["name"].startswith("demo unit")]
    return names[0].rsplit("-", 1)[1] if names else "none"


def taken_port(directory, ports):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = s.getsockname()[1]
        code, output = finish(start(directory, [ports[0], taken, ports[2]]))
    assert code == 1, output
    assert "port %d, for the API server, is taken by" % taken in output and "(pid %d)" % os.getpid() in output, output
    assert "CEEMS_PORT_API=" in output, output
    print("PASS: " + output.strip().splitlines()[0])


def killed_launcher(directory, ports):
    process = start(directory, ports)
    wait_url(directory)
    children = run_file(directory)["children"]
    process.kill()
    finish(process)
    code, output = finish(start(directory, ports, "--duration", "1"))
    assert code == 0, output
    assert_nothing_left(children, ports)
    print("PASS: cleans up after a launcher that was killed")


def crashed_child(directory, ports):
    process = start(directory, ports)
    wait_url(directory)
    children = run_file(directory)["children"]
    api = next(c["pid"] for c in children if c["name"] == "ceems_api_server")
    os.kill(api, signal.SIGKILL)
    code, output = finish(process)
    assert code == 1 and "ceems_api_server was killed by signal SIGKILL" in output, output
    assert_nothing_left(children, ports)
    print("PASS: " + [line for line in output.splitlines() if "SIGKILL" in line][0])


def main():
    reads_what_the_machine_says()
    hashes_passwords()
    with scratch("ceems-demo-") as directory:
        invents_a_consistent_cluster(directory)
    need_programs("prometheus")
    for name in ("ceems_exporter", "ceems_api_server"):
        if not os.access(os.path.join(BIN, name), os.X_OK):
            skip("%s is not built in %s" % (name, BIN))
    with scratch("ceems-run-") as directory:
        ports = [free_port() for _ in range(3)]
        state = directory + "/state"
        first_run(state, ports)
        second_run(state, ports)
        taken_port(state, ports)
        killed_launcher(state, ports)
        crashed_child(state, ports)
    print("PASS: launcher")


if __name__ == "__main__":
    main()
