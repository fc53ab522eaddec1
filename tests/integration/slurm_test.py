#!/usr/bin/env python3
"""Real SLURM, exporter, Prometheus, API server and web page: jobs that end in all ways are shown with owner, state, times, CPU and
energy. They are read by sacct and, if it is installed, by slurmrestd as well; both must give the same units.

Needs root and Debian's slurm-wlm, slurmdbd, mariadb-server, munge and prometheus; slurmrestd and chromium are optional. SLURM makes the
job cgroups if the kernel allows it (cgroup v1 controllers, or v2 under systemd). Otherwise, and with --prolog, a prolog of this test
makes them, and the output says so.

usage: slurm_test.py [--prolog] [--long]     --long: an array of 1,000 tasks instead of 40, a job that ends at its time limit, for which
                                             SLURM knows no less than a minute, and the web page in a browser"""

import os
import re
import shutil
import subprocess
import sys
import time

from harness import (free_ports, get, need_programs, samples, scratch, skip, start_api_server, start_exporter, start_prometheus,
                     wait_until)

HERE = os.path.dirname(os.path.abspath(__file__))
ADMIN = {"X-Grafana-User": "operator"}
ODD_NAME = "a|b\nc d\u00e9"
BURN = "timeout 12 sh -c 'while :; do :; done'; true"
BLINK = "for i in 1 2 3 4 5 6 7 8; do sleep .7; timeout .3 sh -c 'while :; do :; done'; done; true"
MOST_MEMORY = "python3 -c 'b=b\"x\"*400000000; import time; time.sleep(30)'"
LONG = "--long" in sys.argv[1:]
# name: (state, minimum time, whether it ran long enough to have energy)
EXPECTED = {
    "burn": ("COMPLETED", 11, True),
    "light": ("COMPLETED", 7, True),
    "bad": ("FAILED", 0, False),
    "gone": ("CANCELLED by 0", 3, True),
    "hungry": ("OUT_OF_MEMORY", 0, False),
    "frozen": ("COMPLETED", 1, True),  # a sleep goes on while it is suspended, so it may end as soon as it is resumed
    "gpus": ("COMPLETED", 4, True),
    "steps": ("COMPLETED", 0, False),
    "many": ("COMPLETED", 0, False),
    "alive": ("NODE_FAIL", 5, True),
    ODD_NAME: ("COMPLETED", 0, False),
}
if LONG:
    EXPECTED["over"] = ("TIMEOUT", 55, True)


def cgroup_mode(prolog):
    """How job cgroups are made on this kernel, and a sentence that describes it."""
    if prolog:
        return "prolog", "job cgroups: made by the test's prolog, as requested"
    v1 = all(os.path.isdir("/sys/fs/cgroup/" + c) for c in ("cpuacct", "memory", "cpuset", "freezer"))
    if v1:
        return "cgroup", "job cgroups: made by SLURM (cgroup v1)"
    return "prolog", "job cgroups: SLURM cannot make them here (no v1 controllers, no delegated v2); made by the test's prolog"


class Slurm:
    """The SLURM that slurm_up.sh started, and the jobs of the test."""

    def __init__(self, directory, mode, tasks):
        self.directory, self.mode, self.tasks = directory, mode, tasks
        self.jobs = {}  # name: id
        self.node = re.search(r"^NodeName=(\S+)", open(directory + "/etc/slurm.conf").read(), re.M).group(1)

    def run(self, *command, user=None, env=None):
        full = dict(os.environ, SLURM_CONF=self.directory + "/etc/slurm.conf", **(env or {}))
        prefix = ["setpriv", "--reuid=" + user, "--regid=nogroup", "--clear-groups"] if user else []
        done = subprocess.run(prefix + list(command), env=full, cwd="/tmp", stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, "%s: %s%s" % (command, done.stdout, done.stderr)
        return done.stdout.strip()

    def submit(self, name, project, script, *options, user=None, memory="20M"):
        join = ""
        if self.mode == "prolog":
            join = ('for t in $(find /sys/fs/cgroup -path "*job_$SLURM_JOB_ID/step_batch" -type d); '
                    'do echo $$ > $t/cgroup.procs; done 2>/dev/null; ')
        text = self.run("sbatch", "--parsable", "-J", name, "-A", project, "-n1", "--mem=" + memory,
                        "-o", "/dev/null", *options, "--wrap", join + script, user=user)
        self.jobs[name] = text.split(";")[0]
        return self.jobs[name]

    def state(self, name):
        return self.run("squeue", "-h", "-j", self.jobs[name], "-o", "%T")

    def wait_for(self, name, state, timeout=60):
        wait_until("job %s is %s" % (name, state), lambda: self.state(name) == state, timeout)

    def waiting(self):
        """IDs of the jobs that have not ended."""
        return set(self.run("squeue", "-h", "-o", "%A").split())


def main():
    if os.geteuid() != 0:
        skip("running slurmd needs root")
    need_programs("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged", "sacct", "prometheus")
    mode, sentence = cgroup_mode("--prolog" in sys.argv[1:])
    print(sentence)
    with scratch("ceems-slurm-") as directory:
        base = free_ports(14)  # slurm_up.sh says which
        up = subprocess.run([HERE + "/slurm_up.sh", directory + "/slurm", str(base), mode], stdin=subprocess.DEVNULL)
        try:
            assert up.returncode == 0, "SLURM did not start"
            tasks = 1000 if LONG else 40
            run(directory, Slurm(directory + "/slurm", mode, tasks))
        finally:
            subprocess.run([HERE + "/slurm_down.sh", directory + "/slurm"], stdin=subprocess.DEVNULL)
    print("PASS: real SLURM")


def run(directory, slurm):
    if LONG:
        slurm.submit("over", "proj1", "sleep 600", "--time=1")
    slurm.submit("stray", "proj1", "sleep 600", "--no-requeue")
    slurm.submit("burn", "proj1", BURN, memory="100M")
    slurm.wait_for("burn", "RUNNING")
    exporter, exporter_url = start_exporter(directory, ["--collector.slurm", "--collector.slurm.psi-metrics"])
    with exporter:
        prometheus, prometheus_url = start_prometheus(directory, [exporter_url.split("//")[1]])
        with prometheus:
            api, api_url = start_api_server(directory, configuration(directory, slurm, prometheus_url),
                                            ["--security.run-as-user=root"])
            with api:
                observe(slurm, exporter_url, api_url)


def rest_socket(slurm):
    """The socket of slurmrestd, or None if it is not installed."""
    path = slurm.directory + "/run/rest/socket"
    return path if os.path.exists(path) else None


def configuration(directory, slurm, prometheus_url):
    text = """
ceems_api_server:
  data:
    path: %s/data
    update_interval: 3s
    max_update_interval: 1h
    retention_period: 30d
  admin:
    users: [operator]
updaters:
  - id: prom
    updater: tsdb
    web:
      url: %s
clusters:
  - id: test
    manager: slurm
    updaters: [prom]
    cli:
      path: %s
      environment_variables:
        SLURM_CONF: %s/etc/slurm.conf
    extra_config:
      slurm_cluster: test
      coordinators_lead: true
""" % (directory, prometheus_url, os.path.dirname(shutil.which("sacct")), slurm.directory)
    if rest_socket(slurm):
        text += """
  - id: rest
    manager: slurm
    updaters: [prom]
    web:
      url: http://localhost
    extra_config:
      api: rest
      rest_socket: %s
      slurm_cluster: test
      coordinators_lead: true
""" % rest_socket(slurm)
    return text


def observe(slurm, exporter_url, api_url):
    slurm.submit("light", "proj2", BLINK, user="nobody", memory="100M")
    page = wait_until("the exporter shows both jobs",
                      lambda: has_units(exporter_url, [slurm.jobs["burn"], slurm.jobs["light"]]))
    cpu = {labels: v for labels, v in samples(page, "ceems_compute_unit_cpu_user_seconds_total")}
    assert any('uuid="%s"' % slurm.jobs["burn"] in k and v > 0 for k, v in cpu.items()), cpu
    success = dict(samples(page, "ceems_scrape_collector_success"))
    assert success['{collector="slurm"}'] == success['{collector="energy"}'] == 1, success
    slurm.wait_for("burn", "")
    slurm.wait_for("light", "")
    wait_until("the API shows both jobs", lambda: all(unit_of(api_url, slurm.jobs[name]) for name in ("burn", "light")))
    if LONG:
        check_page(slurm, api_url)

    submit_all(slurm)
    disturb(slurm, api_url)
    since = int(time.time()) - 3600
    wait_until("all jobs but two have ended", lambda: slurm.waiting() == {slurm.jobs["alive"], slurm.jobs["stray"]}, 600, 0.5)
    wait_until("the API shows the last job as running", lambda: unit_of(api_url, slurm.jobs["alive"]).get("ended_at_ts", 0) == 0)
    alive = unit_of(api_url, slurm.jobs["alive"])
    assert alive["state"] == "RUNNING" and alive["ended_at"] == "Unknown", alive
    assert alive["total_time_seconds"]["walltime"] > 3, alive
    print("  alive: RUNNING for %s, without an end while it ran" % alive["elapsed"])
    end_late(slurm, api_url)
    slurm.run("scontrol", "update", "NodeName=" + slurm.node, "State=DOWN", "Reason=test")
    wait_until("the last jobs are gone", lambda: not slurm.waiting())

    rows = wait_until("SLURM's accounting has all ends", lambda: accounted(slurm))
    found = wait_until("the API shows all jobs, ended, with energy", lambda: all_seen(api_url, "test", rows, since), 90, 0.5)
    check(slurm, rows, found)
    check_people(api_url)
    check_access(slurm, rows, api_url, since)
    if rest_socket(slurm):
        compare_ways(found, wait_until("slurmrestd returns all jobs", lambda: all_seen(api_url, "rest", rows, since), every=0.5))
    else:
        print("slurmrestd: not compared, because it is not installed")


def submit_all(slurm):
    slurm.submit("alive", "proj1", "sleep 600", "--no-requeue")
    slurm.submit("never", "proj1", "true", memory="1480M")  # this much memory is not free while other jobs run
    slurm.submit("gone", "proj1", "sleep 600")
    slurm.submit("frozen", "proj2", "sleep 15", user="nobody")
    slurm.submit("again", "proj2", 'if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then sleep 600; else sleep 6; fi', "--requeue",
                 user="daemon")
    slurm.submit("bad", "proj1", "exit 3")
    slurm.submit("hungry", "proj1", MOST_MEMORY, memory="60M")
    slurm.submit("gpus", "proj1", "sleep 5", "--gres=gpu:a100:2")
    slurm.submit("steps", "proj1", "srun -n1 true; srun -n1 true", user="daemon")
    slurm.submit(ODD_NAME, "proj2", "true")
    slurm.submit("many", "proj2", "exec true", "--array=0-%d%%20" % (slurm.tasks - 1), user="daemon")


def disturb(slurm, api_url):
    slurm.run("scancel", slurm.jobs["never"])
    slurm.wait_for("frozen", "RUNNING")
    time.sleep(2)
    slurm.run("scontrol", "suspend", slurm.jobs["frozen"])
    slurm.wait_for("gone", "RUNNING")
    slurm.wait_for("again", "RUNNING")
    wait_until("the API shows that the job is suspended", lambda: unit_of(api_url, slurm.jobs["frozen"])["state"] == "SUSPENDED")
    print("  frozen: SUSPENDED while it was suspended")
    slurm.run("scontrol", "resume", slurm.jobs["frozen"])
    time.sleep(2)
    slurm.run("scancel", slurm.jobs["gone"])
    slurm.run("scontrol", "requeue", slurm.jobs["again"])
    slurm.wait_for("again", "PENDING")
    time.sleep(3)  # slurmd rejects a credential that is as old as the one it just revoked
    slurm.run("scontrol", "update", "JobId=" + slurm.jobs["again"], "StartTime=now")


def end_late(slurm, api_url):
    """Gives the job stray an end in the past in SLURM's database, like `sacctmgr show runaway` does."""
    wait_until("stray has run for a while", lambda: unit_of(api_url, slurm.jobs["stray"])["total_time_seconds"]["walltime"] > 25)
    slurm.run("mariadb", "--no-defaults", "-uroot", "-S", slurm.directory + "/run/mysql.sock", "slurm_acct_db", "-e",
              "update test_job_table set state=3, time_end=unix_timestamp()-20 where id_job=" + slurm.jobs["stray"])
    stray = wait_until("the API shows the late end", lambda: (lambda u: u if u.get("ended_at_ts") else None)(
        unit_of(api_url, slurm.jobs["stray"])))
    lived = (stray["ended_at_ts"] - stray["started_at_ts"]) / 1000
    assert stray["state"] == "COMPLETED" and stray["total_time_seconds"]["walltime"] >= lived, stray
    print("  stray: closed as %s, %d s long, by an end recorded 20 s late" % (stray["state"], lived))


def has_units(exporter_url, ids):
    page = get(exporter_url + "/metrics").text
    return page if all('uuid="%s"' % i in page for i in ids) and "ceems_compute_unit_energy_joules_total" in page else None


def unit_of(api_url, job):
    return get(api_url + "/api/v1/units/admin?cluster_id=test&uuid=" + job, ADMIN).json["data"][0]


def units_of(api_url, cluster, since):
    url = "%s/api/v1/units/admin?cluster_id=%s&from=%d&to=%d&running" % (api_url, cluster, since, since + 7200)
    return {(unit["uuid"], unit.get("started_at_ts", 0)): unit for unit in get(url, ADMIN).json["data"]}


def accounted(slurm):
    """What sacct reports about jobs that had a node: user, account, state, seconds and elapsed text, by ID and start in ms. None as long
    as any of them has no end."""
    text = slurm.run("sacct", "-D", "-X", "-n", "-P", "--allusers", "-S", "now-1hour",
                     "--format=JobIDRaw,User,Account,State,ElapsedRaw,Elapsed,Start,NodeList",
                     env={"SLURM_TIME_FORMAT": "%s"})
    rows = {}
    for line in text.splitlines():
        job, user, account, state, seconds, elapsed, start, nodes = line.split("|")
        if state in ("RUNNING", "PENDING"):
            return None
        if nodes != "None assigned":
            rows[(job, int(start) * 1000 if start.isdigit() else 0)] = (user, account, state, int(seconds), elapsed)
    return rows


def energy_of(unit):
    return (unit.get("total_cpu_energy_usage_kwh") or {}).get("total", 0)


def all_seen(api_url, cluster, rows, since):
    found = units_of(api_url, cluster, since)
    open_ones = [key for key, unit in found.items() if unit.get("ended_at_ts", 0) == 0]
    missing = [key for key in rows if key not in found]
    dark = [unit["name"] for unit in found.values()
            if EXPECTED.get(unit["name"], (0, 0, False))[2] and energy_of(unit) <= 0]
    if open_ones or missing or dark:
        raise ValueError("open: %s, missing: %s, without energy: %s" % (open_ones[:5], missing[:5], dark))
    return found


def check(slurm, rows, found):
    print("  job    user   project name     state          elapsed   wall s   cpu s  energy kWh")
    tasks = 0
    for key, (user, account, state, seconds, elapsed) in sorted(rows.items(), key=lambda row: int(row[0][0])):
        unit = found[key]
        name, times = unit["name"], unit["total_time_seconds"]
        tasks += name == "many"
        if name == "stray":
            continue  # the test changed it, and SLURM repaired it
        if name != "many" or tasks <= 3:
            print("  %-6s %-6s %-7s %-8s %-14s %s %7d %7.2f  %.8f" % (
                key[0], user, account, name.split("\n")[0], state, elapsed, times["walltime"], times.get("used_cputime", 0),
                energy_of(unit)))
        assert (unit["username"], unit["project"]) == (user, account), unit
        assert unit["state"] == state, (name, unit["state"], state)
        assert unit["elapsed"] == elapsed or state == "RUNNING", (name, unit["elapsed"], elapsed)
        # Only one of the two includes suspended time.
        assert name == "frozen" or abs(times["walltime"] - seconds) <= 1, (name, times, seconds)
        if name in EXPECTED:
            expected, least, _ = EXPECTED[name]
            if name == "hungry" and slurm.mode == "prolog":
                expected = "FAILED"  # what SLURM reports if its own accounting, not the kernel, ends a job
            assert state == expected, (name, state, expected)
            assert seconds >= least, (name, seconds, least)
    print("  ... and %d more tasks of the array" % (tasks - 3))
    assert slurm.jobs["never"] not in {job for job, _ in found}, "a job that was cancelled before it got a node is a unit"
    assert set(found) == set(rows), set(found) ^ set(rows)
    names = [unit["name"] for unit in found.values()]
    assert set(names) == set(EXPECTED) | {"again", "stray"}, set(names) ^ set(EXPECTED)
    assert tasks == slurm.tasks, tasks
    again = sorted((unit["started_at_ts"], unit) for unit in found.values() if unit["name"] == "again")
    assert len(again) == 2 and again[0][1]["uuid"] == again[1][1]["uuid"] == slurm.jobs["again"], again
    assert again[1][1]["state"] == "COMPLETED", again
    assert min(energy_of(unit) for _, unit in again) > 0, again
    by_name = {unit["name"]: unit for unit in found.values()}
    assert by_name["gpus"]["allocation"]["gpus"] == 2, by_name["gpus"]
    assert by_name["gpus"]["total_time_seconds"]["alloc_gputime"] >= 8, by_name["gpus"]
    assert by_name["burn"]["allocation"]["mem"] == 100 << 20, by_name["burn"]
    asked = by_name["burn"]["allocation"]
    assert asked["req_mem"] == 100 << 20 and asked["req_cpus"] == 1 and "array_job" not in asked, asked
    assert asked["eligible"] == by_name["burn"]["created_at_ts"], by_name["burn"]
    assert asked["partition_time"] == 0 and asked["partition_mem"] > 100 << 20, asked  # MaxTime=INFINITE
    assert not LONG or by_name["over"]["allocation"]["time_limit"] == 60, by_name["over"]
    tasks_of = {(unit["allocation"]["array_job"], unit["allocation"]["array_task"])
                for unit in found.values() if unit["name"] == "many"}
    assert tasks_of == {(int(slurm.jobs["many"]), task) for task in range(slurm.tasks)}, sorted(tasks_of)[:3]
    assert by_name["gpus"]["tags"]["submit_line"].startswith("sbatch --parsable -J gpus -A proj1"), by_name["gpus"]["tags"]
    assert by_name["bad"]["tags"]["exit_code"] == "3:0", by_name["bad"]
    burn, light = by_name["burn"], by_name["light"]
    minutes, seconds = slurm.run("sacct", "-n", "-P", "-j", slurm.jobs["burn"],
                                 "--format=TotalCPU").splitlines()[0].split(":")[-2:]
    used, by_slurm = burn["total_time_seconds"]["used_cputime"], 60 * int(minutes) + float(seconds)
    print("  CPU-seconds of job burn: %.2f here, %.2f in SLURM's own accounting" % (used, by_slurm))
    assert abs(used - by_slurm) <= 0.1 * by_slurm + 0.3, (used, by_slurm)
    assert energy_of(burn) > energy_of(light) > 0
    # The prolog's cgroups do not limit CPUs, so the job's usage there is relative to the whole node.
    cpus = os.cpu_count() if slurm.mode == "prolog" else burn["allocation"]["cpus"]
    usage, expected = burn["avg_cpu_usage"]["global"], 100 * used / burn["total_time_seconds"]["walltime"] / cpus
    assert abs(usage - expected) <= 15, (usage, expected)


def check_people(api_url):
    """Only projects of this cluster; one user is in several of them."""
    users = {u["name"]: u["projects"] for u in
             get(api_url + "/api/v1/users/admin?cluster_id=test", ADMIN).json["data"]}
    assert users["daemon"] == ["proj1", "proj2"] and users["nobody"] == ["proj2"], users
    assert "games" not in users, users
    print("  users: daemon in proj1 and proj2, nobody in proj2; no user of the other cluster")


def check_access(slurm, rows, api_url, since):
    own = get(api_url + "/api/v1/units?cluster_id=test&from=%d&to=%d" % (since, since + 7200), {"X-Grafana-User": "nobody"}).json["data"]
    assert {u["uuid"] for u in own} == {job for (job, _), row in rows.items() if row[0] == "nobody"}, own
    verify = api_url + "/api/v1/units/verify?cluster_id=test&uuid="
    assert get(verify + slurm.jobs["light"], {"X-Grafana-User": "nobody"}).status == 200
    assert get(verify + slurm.jobs["burn"], {"X-Grafana-User": "nobody"}).status == 403
    assert get(api_url + "/api/v1/units/admin", {"X-Grafana-User": "nobody"}).status == 403
    check_leads(slurm, api_url)


def check_leads(slurm, api_url):
    """The coordinator of an account leads it until SLURM no longer lists them."""
    def led(user):
        data = get(api_url + "/api/v1/whoami", {"X-Grafana-User": user}).json["data"][0]
        return {(row["cluster_id"], row["project"]) for row in data["led"]}

    clusters = {"test"} | ({"rest"} if rest_socket(slurm) else set())
    assert led("daemon") == {(cluster, "proj1") for cluster in clusters}, led("daemon")
    assert led("nobody") == set(), led("nobody")
    slurm.run("sacctmgr", "-i", "delete", "coordinator", "account=proj1", "names=daemon")
    wait_until("the coordinator no longer leads", lambda: not led("daemon"))
    print("  daemon led proj1 while it was its coordinator")


def compare_ways(by_sacct, by_rest):
    assert set(by_sacct) == set(by_rest), set(by_sacct) ^ set(by_rest)
    fields = ("uuid", "name", "project", "groupname", "username", "created_at", "started_at", "ended_at", "created_at_ts",
              "started_at_ts", "ended_at_ts", "elapsed", "state", "allocation")
    for key, unit in by_sacct.items():
        other = by_rest[key]
        if unit["name"] == "stray":
            continue
        # slurmrestd 22.05 reports 0 for every exit status.
        tags, other_tags = dict(unit["tags"]), other["tags"]
        for late in ("constraints", "submit_line"):
            if late not in other_tags:
                tags.pop(late, None)  # slurmrestd 22.05 does not have it
        assert other_tags["exit_code"] in (tags["exit_code"], "0:0"), (unit, other)
        assert dict(tags, exit_code=0) == dict(other_tags, exit_code=0), (unit["name"], tags, other_tags)
        # What partitions allow is read from scontrol.
        unit = dict(unit, allocation={name: value for name, value in unit["allocation"].items() if not name.startswith("partition_")})
        for field in fields:
            assert unit.get(field) == other.get(field), (unit["name"], field, unit.get(field), other.get(field))
        # The two clusters have different windows, so a start that is recorded late may lack a fraction of a second.
        times, other_times = unit["total_time_seconds"], other["total_time_seconds"]
        assert abs(times["walltime"] - other_times["walltime"]) <= 1, (unit, other)
        for name in ("alloc_cputime", "alloc_cpumemtime", "alloc_gputime", "alloc_gpumemtime"):
            assert abs(times[name] * other_times["walltime"] - other_times[name] * times["walltime"]) < 1e-6, (name, unit, other)
    print("slurmrestd: %d units, all equal to those of sacct (except exit statuses, which 22.05 does not report)" % len(by_rest))


def check_page(slurm, api_url):
    if not shutil.which("chromium"):
        print("page: not checked, because chromium is not installed")
        return
    if "id=\"app\"" not in get(api_url + "/").text:
        print("page: not checked, because the web page is not built in (no npm)")
        return
    with scratch("ceems-chromium-") as profile:
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--user-data-dir=" + profile, "--virtual-time-budget=10000",
             "--dump-dom", api_url + "/?user=operator"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    for text in ("burn", "light", "root", "nobody", slurm.jobs["burn"]):
        assert text in done.stdout, "%r is not on the page:\n%s" % (text, done.stdout[-3000:])
    print("page: shows the jobs and their owners")


if __name__ == "__main__":
    main()
