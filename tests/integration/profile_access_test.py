#!/usr/bin/env python3
"""Profiles from end to end: ceems_exporter samples the jobs of two users and pushes to a stand-in for Pyroscope, in front of which
ceems_lb lets each of them see the profiles of the own jobs only. The program of one is stripped, so that its names come from a stand-in
for debuginfod. Needs root and a kernel that permits eBPF and perf events."""

import http.server
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import api_database  # noqa: E402
import harness  # noqa: E402
from harness import Program, free_port, get, scratch, skip, wait_until  # noqa: E402
from profile_store import ProfileStore  # noqa: E402

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
JOBS = {"alice": 1700001, "bob": 1700002}  # a user and the job
BUILD_IDS = {"alice": 20 * "a1", "bob": 20 * "b0"}
STRIPPED = "bob"
SOURCE = """
volatile double x;
__attribute__((noinline)) void secret_of_%(user)s(void) { for (int i = 0; i < 1000; ++i) x = x + 1.0 / (i + 1); }
int main(void) { for (;;) { secret_of_%(user)s(); x = x * 0.5; } }
"""


class Jobs:
    """The cgroups of SLURM jobs in cgroup v2 or v1, each with a process."""

    def __init__(self):
        self.processes, self.made = {}, []
        self.v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.roots = ["/sys/fs/cgroup"] if self.v2 else sorted({os.path.realpath("/sys/fs/cgroup/" + name) for name in CONTROLLERS
                                                                if os.path.isdir("/sys/fs/cgroup/" + name)})

    def start(self, user, program):
        process = subprocess.Popen([program], stdin=subprocess.DEVNULL)
        self.processes[user] = process
        folder = "system.slice/slurmstepd.scope/job_%d/step_0" if self.v2 else "slurm_profiles/uid_1000/job_%d/step_0"
        for root in self.roots:
            path = root
            for part in (folder % JOBS[user]).split("/"):
                above, path = path, path + "/" + part
                if not os.path.isdir(path):
                    os.mkdir(path)
                    self.made.append(path)
                for name in ("cpuset.cpus", "cpuset.mems") if os.path.basename(root) == "cpuset" else ():
                    with open(above + "/" + name) as f, open(path + "/" + name, "w") as g:
                        g.write(f.read())
            with open(path + "/cgroup.procs", "w") as f:
                f.write("%d\n" % process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()
        for path in reversed(self.made):
            wait_until("the cgroup is empty", lambda: os.rmdir(path) is None)


def make_database(directory):
    """Each user has a job in a project of their own, on the cluster c0."""
    path = os.path.join(directory, "data")
    os.makedirs(path)
    db = sqlite3.connect(os.path.join(path, "ceems.db"))
    for statement in api_database.SCHEMA:
        db.execute(statement)
    db.execute("INSERT INTO admin_users (cluster_id, name) VALUES ('all', 'root')")
    for user, job in JOBS.items():
        db.execute("INSERT INTO projects (cluster_id, name, users) VALUES ('c0', ?, ?)", ("p" + user, json.dumps([user])))
        db.execute("INSERT INTO units (cluster_id, resource_manager, uuid, project, username) VALUES ('c0', 'slurm', ?, ?, ?)",
                   (str(job), "p" + user, user))
    db.commit()
    db.close()
    os.chmod(directory, 0o755)
    os.chmod(path, 0o700)  # a load balancer started by root runs as nobody by then


class Gate:
    """A load balancer in front of the store."""

    def __init__(self, directory, store):
        config = os.path.join(directory, "lb.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("ceems_lb:\n  backends:\n    - id: c0\n      pyroscope:\n        - web:\n            url: http://127.0.0.1:%d\n"
                    "ceems_api_server:\n  data: {path: %s}\n" % (store.port, os.path.join(directory, "data")))
        self.port = free_port()
        self.program = Program([os.path.join(harness.BIN, "ceems_lb"), "--config.file=" + config,
                                "--web.listen-address=127.0.0.1:%d" % self.port], os.path.join(directory, "lb.log"))

    def __enter__(self):
        self.program.__enter__()
        self.program.wait_ready("http://127.0.0.1:%d/-/healthy" % self.port)
        return self

    def __exit__(self, *_):
        self.program.__exit__()

    def ask(self, user, call, **fields):
        now = int(time.time() * 1000)
        body = json.dumps(dict(fields, start=str(now - 60_000), end=str(now))).encode()
        return get("http://127.0.0.1:%d/querier.v1.QuerierService/%s" % (self.port, call), data=body,
                   headers={"X-Grafana-User": user, "X-Ceems-Cluster-Id": "c0", "Content-Type": "application/json"})

    def functions(self, user, job):
        """What a user is shown of a job: the functions, or the status."""
        answer = self.ask(user, "SelectMergeStacktraces", profileTypeID="process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                          labelSelector='{service_name="%s"}' % job)
        return [name for name in answer.json["flamegraph"]["names"] if name.startswith("secret_of_")] if answer.status == 200 else answer.status


class Debuginfod:
    """Has the debug file of one program. `asked` are the paths of all requests."""

    def __init__(self, build_id, path):
        outer = self
        self.asked = []
        with open(path, "rb") as f:
            content = f.read()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                found = self.path == "/buildid/%s/debuginfo" % build_id
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(content) if found else 0))
                self.end_headers()
                self.wfile.write(content if found else b"")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def build(directory, user):
    """The program of a user."""
    program = "%s/%s" % (directory, user)
    with open(program + ".c", "w", encoding="utf-8") as f:
        f.write(SOURCE % {"user": user})
    subprocess.run(["gcc", "-O1", "-Wl,--build-id=0x" + BUILD_IDS[user], "-o", program, program + ".c"], check=True)
    if user == STRIPPED:
        subprocess.run(["objcopy", "--only-keep-debug", program, program + ".served"], check=True)
        subprocess.run(["strip", program], check=True)
    return program


def need_profiler(exporter):
    """Skips where the kernel permits no profiles."""
    said = subprocess.run([exporter, "doctor", "--collector.slurm", "--profiling.ebpf"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True).stdout
    row = re.search(r"^profiling\s+(\S+)\b(.*(?:\n\s+.*)*)", said, re.M)
    assert row, said
    if row.group(1) != "works":
        skip("no profiles on this machine: %s" % " ".join(row.group(2).split()))


def check(gate, store, outsider):
    mine, other = str(JOBS["alice"]), str(JOBS["bob"])
    # Exactly these labels are pushed: what the gate decides by, and what the site adds.
    for labels, _, _ in store.profiles:
        user = {mine: "alice", other: "bob"}[labels["service_name"]]
        assert set(labels) == {"__name__", "__process_pid__", "service_name", "site"}, labels
        assert labels["__name__"] == "process_cpu" and labels["site"] == "test", labels
        assert labels["__process_pid__"] != str(outsider), "a process that is in no job was pushed"
        assert user in ("alice", "bob")
    for user, job, foreign in (("alice", mine, other), ("bob", other, mine)):
        assert gate.functions(user, job) == ["secret_of_" + user], gate.functions(user, job)
        assert gate.functions(user, foreign) == 403, (user, gate.functions(user, foreign))
        for selector in ("{}", '{service_name=~"%s|%s"}' % (job, foreign), '{service_name!="%s"}' % foreign, '{site="test"}',
                         '{__process_pid__="%s"}' % next(labels["__process_pid__"] for labels, _, _ in store.profiles)):
            answer = gate.ask(user, "SelectMergeStacktraces", profileTypeID="process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                              labelSelector=selector)
            assert answer.status == 403, (user, selector, answer.text)
        own = {"matchers": ['{service_name="%s"}' % job]}
        assert gate.ask(user, "LabelValues", name="service_name", **own).json == {"names": [job]}
        assert gate.ask(user, "LabelValues", name="service_name", matchers=['{service_name="%s"}' % foreign]).status == 403
        assert gate.ask(user, "LabelValues", name="service_name").status == 403
        series = gate.ask(user, "Series", **own).json["labelsSet"]
        assert series and all({"name": "service_name", "value": job} in each["labels"] for each in series), series
    assert gate.functions("mallory", mine) == 403
    everything = gate.ask("root", "LabelValues", name="service_name").json
    assert everything == {"names": [mine, other]}, everything
    assert gate.functions("root", mine) == ["secret_of_alice"] and gate.functions("root", other) == ["secret_of_bob"]


def main():
    if os.geteuid() != 0:
        skip("making cgroups needs root")
    harness.need_programs("gcc", "objcopy", "strip")
    exporter = os.path.join(harness.BIN, "ceems_exporter")
    need_profiler(exporter)
    store = ProfileStore()
    with scratch("ceems-profiles-") as directory, Jobs() as jobs:
        make_database(directory)
        for user in JOBS:
            jobs.start(user, build(directory, user))
        debuginfod = Debuginfod(BUILD_IDS[STRIPPED], "%s/%s.served" % (directory, STRIPPED))
        os.mkdir(directory + "/kept")
        os.chown(directory + "/kept", 65534, 65534)  # the exporter runs as nobody by then
        with open(directory + "/profiler.yml", "w", encoding="utf-8") as f:
            f.write("ceems_profiler:\n  ebpf:\n    collect_interval: 1s\n    discover_interval: 1s\n  pyroscope:\n"
                    "    url: http://127.0.0.1:%d\n    external_labels:\n      site: test\n  debuginfod:\n    urls: [http://127.0.0.1:%d]\n"
                    "    directory: %s/kept\n" % (store.port, debuginfod.port, directory))
        outsider = subprocess.Popen([directory + "/alice"], stdin=subprocess.DEVNULL)  # in no job
        try:
            with Program([exporter, "--collector.slurm", "--no-collector.energy", "--profiling.ebpf",
                          "--profiling.ebpf.config.file=%s/profiler.yml" % directory,
                          "--web.listen-address=127.0.0.1:0"], directory + "/exporter.log") as program, Gate(directory, store) as gate:
                def complete():
                    assert program.alive(), program.output()
                    return all(any(labels["service_name"] == str(job) and "secret_of_" + user in functions
                                   for labels, functions, _ in list(store.profiles)) for user, job in JOBS.items())
                wait_until("profiles of both jobs with the names of their functions", complete, 120)
                check(gate, store, outsider.pid)
                path = "/buildid/%s/debuginfo"
                assert debuginfod.asked.count(path % BUILD_IDS[STRIPPED]) == 1, debuginfod.asked
                assert path % BUILD_IDS["alice"] not in debuginfod.asked, "it has symbols"
                assert os.listdir(directory + "/kept") == [BUILD_IDS[STRIPPED] + ".debug"], os.listdir(directory + "/kept")
        finally:
            outsider.kill()
            outsider.wait()
    print("profile_access: %d profiles pushed; each user reads the own ones and no others" % len(store.profiles))
    return 0


if __name__ == "__main__":
    sys.exit(main())
