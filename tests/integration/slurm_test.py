#!/usr/bin/env python3
"""Real SLURM, exporter, Prometheus, API server, page: jobs are seen with owner, elapsed time, CPU and energy.

Needs root and Debian's slurm-wlm, slurmdbd, mariadb-server, munge, prometheus; chromium for the page. SLURM makes the
job cgroups where the kernel lets it (cgroup v1 controllers, or v2 under systemd); elsewhere a prolog of this test makes
them, and the output says so."""

import os
import shutil
import subprocess
import time

from harness import (get, need_programs, samples, scratch, skip, start_api_server, start_exporter, start_prometheus,
                     wait_until)

HERE = os.path.dirname(os.path.abspath(__file__))
ADMIN = {"X-Grafana-User": "operator"}


def cgroup_mode():
    """How job cgroups come to be on this kernel, and the sentence that says so."""
    v1 = all(os.path.isdir("/sys/fs/cgroup/" + c) for c in ("cpuacct", "memory", "cpuset", "freezer"))
    if v1:
        return "cgroup", "job cgroups: made by SLURM (cgroup v1)"
    return "prolog", "job cgroups: SLURM cannot make them here (no v1 controllers, no delegated v2); made by the test's prolog"


def slurm(directory, *command, user=None):
    env = dict(os.environ, SLURM_CONF=directory + "/etc/slurm.conf")
    prefix = ["setpriv", "--reuid=" + user, "--regid=nogroup", "--clear-groups"] if user else []
    done = subprocess.run(prefix + list(command), env=env, cwd="/tmp", stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, "%s: %s%s" % (command, done.stdout, done.stderr)
    return done.stdout.strip()


def submit(directory, mode, name, project, script, *options, user=None):
    join = ""
    if mode == "prolog":
        join = ('for t in $(find /sys/fs/cgroup -path "*job_$SLURM_JOB_ID/step_batch" -type d); '
                'do echo $$ > $t/cgroup.procs; done 2>/dev/null; ')
    text = slurm(directory, "sbatch", "--parsable", "-J", name, "-A", project, "-n1", "--mem=100M", "-o", "/dev/null",
                 *options, "--wrap", join + script, user=user)
    return text.split(";")[0]


def main():
    if os.geteuid() != 0:
        skip("root is needed to run slurmd")
    need_programs("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged", "sacct", "prometheus")
    mode, sentence = cgroup_mode()
    print(sentence)
    with scratch("ceems-slurm-") as directory:
        base = 11000 + os.getpid() % 200 * 100  # below the ports the kernel hands out by itself
        up = subprocess.run([HERE + "/slurm_up.sh", directory + "/slurm", str(base), mode], stdin=subprocess.DEVNULL)
        try:
            assert up.returncode == 0, "SLURM did not come up"
            run(directory, directory + "/slurm", mode)
        finally:
            subprocess.run([HERE + "/slurm_down.sh", directory + "/slurm"], stdin=subprocess.DEVNULL)
    print("PASS: real SLURM")


def run(directory, slurm_dir, mode):
    burn = "timeout 12 sh -c 'while :; do :; done'; true"
    jobs = {"burn": submit(slurm_dir, mode, "burn", "proj1", burn)}
    wait_until("the first job runs", lambda: slurm(slurm_dir, "squeue", "-h", "-t", "R", "-o", "%A"))
    exporter, exporter_url = start_exporter(directory, ["--collector.slurm", "--collector.slurm.psi-metrics"])
    with exporter:
        prometheus, prometheus_url = start_prometheus(directory, [exporter_url.split("//")[1]])
        with prometheus:
            api, api_url = start_api_server(directory, """
ceems_api_server:
  data:
    path: %s/data
    update_interval: 3s
    max_update_interval: 1h
    retention_period: 30d
  admin:
    users: [operator]
clusters:
  - id: test
    manager: slurm
    updaters: [prom]
    cli:
      path: %s
      environment_variables:
        SLURM_CONF: %s/etc/slurm.conf
updaters:
  - id: prom
    updater: tsdb
    web:
      url: %s
""" % (directory, os.path.dirname(shutil.which("sacct")), slurm_dir, prometheus_url), ["--security.run-as-user=root"])
            with api:
                observe(slurm_dir, mode, jobs, exporter_url, api_url)


def observe(slurm_dir, mode, jobs, exporter_url, api_url):
    jobs["light"] = submit(slurm_dir, mode, "light", "proj2",
                           "for i in 1 2 3 4 5 6 7 8; do sleep .7; timeout .3 sh -c 'while :; do :; done'; done; true",
                           user="nobody")

    page = wait_until("the exporter shows both jobs", lambda: has_units(exporter_url, [jobs["burn"], jobs["light"]]))
    cpu = {labels: v for labels, v in samples(page, "ceems_compute_unit_cpu_user_seconds_total")}
    assert any('uuid="%s"' % jobs["burn"] in k and v > 0 for k, v in cpu.items()), cpu
    success = dict(samples(page, "ceems_scrape_collector_success"))
    assert success['{collector="slurm"}'] == success['{collector="energy"}'] == 1, success

    jobs["bad"] = submit(slurm_dir, mode, "bad", "proj1", "exit 3")
    jobs["gone"] = submit(slurm_dir, mode, "gone", "proj1", "sleep 60")
    wait_until("job gone runs", lambda: jobs["gone"] in slurm(slurm_dir, "squeue", "-h", "-t", "R", "-o", "%A").split())
    time.sleep(2)
    slurm(slurm_dir, "scancel", jobs["gone"])
    array = submit(slurm_dir, mode, "many", "proj1", "sleep 1", "--array=0-2")
    wait_until("all jobs are over", lambda: not slurm(slurm_dir, "squeue", "-h", "-o", "%A"), 90)

    now = int(time.time())
    url = api_url + "/api/v1/units/admin?cluster_id=test&from=%d&to=%d" % (now - 3600, now + 600)

    def units():
        found = {u["uuid"]: u for u in get(url + "&running", ADMIN).json["data"]}
        burn = found.get(jobs["burn"], {})
        energy = burn.get("total_cpu_energy_usage_kwh", {}).get("total", 0)
        used = burn.get("total_time_seconds", {}).get("used_cputime", 0)
        ended = [u for u, unit in found.items() if unit.get("ended_at_ts", 0) > 0]
        if len(ended) == 7 and energy > 0 and used > 1:
            return found
        raise ValueError("units %s, ended %s, burn: energy %s kWh, %s CPU-seconds" % (sorted(found), ended, energy, used))

    found = wait_until("the API shows all seven jobs, ended, with energy", units, 60)
    by_name = {}
    for unit in found.values():
        by_name.setdefault(unit["name"], []).append(unit)
    check(by_name, found, jobs, slurm_dir)
    check_access(api_url, jobs, now)
    check_page(api_url, jobs)
    assert len(by_name["many"]) == 3, by_name["many"]
    assert array in found, "the last array task has the array's own id"


def has_units(exporter_url, ids):
    page = get(exporter_url + "/metrics").text
    return page if all('uuid="%s"' % i in page for i in ids) and "ceems_compute_unit_energy_joules_total" in page else None


def check(by_name, found, jobs, slurm_dir):
    rows = slurm(slurm_dir, "sacct", "-D", "-X", "-n", "-P", "--allusers", "--format=JobIDRaw,User,Account,State,ElapsedRaw,Elapsed")
    print("  job user   project state      elapsed  cpu s  energy kWh")
    for row in rows.splitlines():
        job, user, account, state, seconds, elapsed = row.split("|")
        unit = found[job]
        times = unit["total_time_seconds"]
        energy = unit.get("total_cpu_energy_usage_kwh", {}).get("total", 0)
        print("  %-3s %-6s %-7s %-10s %s %6.2f  %.8f" % (job, user, account, state.split()[0], elapsed,
                                                        times.get("used_cputime", 0), energy))
        assert (unit["username"], unit["project"]) == (user, account), unit
        assert unit["state"] == state, (unit["state"], state)
        assert unit["elapsed"] == elapsed, (unit["elapsed"], elapsed)
        assert abs(times["walltime"] - int(seconds)) <= 1, (times, seconds)
    burn, light = found[jobs["burn"]], found[jobs["light"]]
    minutes, seconds = slurm(slurm_dir, "sacct", "-n", "-P", "-j", jobs["burn"], "--format=TotalCPU").splitlines()[0].split(":")[-2:]
    accounted = 60 * int(minutes) + float(seconds)
    used = burn["total_time_seconds"]["used_cputime"]
    print("  CPU-seconds of job burn: %.2f here, %.2f by SLURM's own accounting" % (used, accounted))
    assert abs(used - accounted) <= 0.1 * accounted + 0.3, (used, accounted)
    assert burn["total_cpu_energy_usage_kwh"]["total"] > light["total_cpu_energy_usage_kwh"]["total"] > 0
    assert 30 < burn["avg_cpu_usage"]["global"] <= 115, burn["avg_cpu_usage"]
    assert by_name["bad"][0]["state"] == "FAILED"
    assert by_name["gone"][0]["state"].startswith("CANCELLED")


def check_access(api_url, jobs, now):
    own = get(api_url + "/api/v1/units?from=%d&to=%d" % (now - 3600, now + 600), {"X-Grafana-User": "nobody"}).json["data"]
    assert [u["uuid"] for u in own] == [jobs["light"]], own
    verify = api_url + "/api/v1/units/verify?cluster_id=test&uuid="
    assert get(verify + jobs["light"], {"X-Grafana-User": "nobody"}).status == 200
    assert get(verify + jobs["burn"], {"X-Grafana-User": "nobody"}).status == 403
    assert get(api_url + "/api/v1/units/admin", {"X-Grafana-User": "nobody"}).status == 403


def check_page(api_url, jobs):
    if not shutil.which("chromium"):
        print("page: not checked, chromium is not installed")
        return
    if "id=\"app\"" not in get(api_url + "/").text:
        print("page: not checked, the web UI is not built in (no npm)")
        return
    with scratch("ceems-chromium-") as profile:
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--user-data-dir=" + profile, "--virtual-time-budget=10000",
             "--dump-dom", api_url + "/?user=operator"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    for text in ("burn", "light", "root", "nobody", jobs["burn"]):
        assert text in done.stdout, "%r is not on the page:\n%s" % (text, done.stdout[-3000:])
    print("page: shows the jobs and their owners")


if __name__ == "__main__":
    main()
