#!/usr/bin/env python3
"""Sources of the exporter that lie, flood, hang or count down. Each gives one line in the log, not one per scrape. The other
collectors continue, memory stays small, and the program ends as usual. One function for each kind; to run some of them:
`exporter_hostile_test.py NAME...`."""

import concurrent.futures
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time

from harness import BIN, FakeHttp, get, run_together, samples, scratch, start_exporter, wait_until, write
from slurm_node import FILES_OF_JOB, NVIDIA_SMI, SlurmNode, redfish_service

MAX_MEMORY = 100 << 20  # for programs without sanitizers
ROOT = os.geteuid() == 0
with open(os.path.join(BIN, "ceems_exporter"), "rb") as program:
    SANITIZED = b"__asan_init" in program.read()
GIGABYTE = "while :; do echo %s; done | head -c 1000000000" % ("x" * 4000)


def failed_collectors(page):
    return sorted(labels.split('"')[1] for labels, value in samples(page, "ceems_scrape_collector_success") if value != 1)


class Case:
    """A running exporter on a SLURM node that `spoil(node)` has damaged."""

    def __init__(self, directory, flags, spoil=None, env=None):
        os.makedirs(directory)
        self.node = SlurmNode(directory + "/node")
        self.node.add_job()
        if spoil:
            spoil(self.node)
        more = flags(self.node) if callable(flags) else flags
        if "--path.procfs=" + self.node.proc not in more:
            more = self.node.paths() + more
        self.exporter, self.url = start_exporter(directory, ["--no-collector.gpu"] + more,
                                                 dict(self.node.env(), **(env or {})))

    def page(self, failing=(), timeout=90):
        """A page on which exactly the collectors in `failing` have failed."""
        answer = get(self.url + "/metrics", timeout=timeout)
        assert answer.status == 200, answer.text
        failed = failed_collectors(answer.text)
        assert failed == sorted(failing), "failed: %s, expected %s\n%s" % (failed, list(failing), self.exporter.output()[-2000:])
        return answer.text

    def problems(self):
        """Warnings and errors, except the one that every node with GPUs and without a prolog causes."""
        return [line for line in self.exporter.output().splitlines()
                if re.search(r"level=(WARN|ERROR)", line) and "only known from the environment of their processes" not in line]

    def one_problem(self, *parts):
        lines = self.problems()
        assert len(lines) == 1 and all(part in lines[0] for part in parts), "expected one line with %s, got\n%s" % (
            parts, "\n".join(line[:600] for line in lines))
        assert len(lines[0]) < 2000, "a line has %d characters" % len(lines[0])

    def memory(self):
        """The peak resident memory in bytes; None for programs with sanitizers."""
        with open("/proc/%d/status" % self.exporter.pid) as f:
            peak = next(line for line in f if line.startswith("VmHWM:"))
        return None if SANITIZED else int(peak.split()[1]) << 10

    def end(self):
        memory = self.memory()
        code = self.exporter.stop()
        text = self.exporter.output()
        assert code == 0 and "Sanitizer" not in text and "terminate called" not in text, (code, text[-3000:])
        assert memory is None or memory < MAX_MEMORY, "%.0f MB resident" % (memory / 1e6)
        return memory

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.exporter.__exit__()
        self.node.__exit__()


def quick_scrapes(case, count, limit, failing=(), **more):
    """(seconds that half of `count` scrapes did not exceed, the last page). If scrapes waited for a source, they would take longer than the
    limit, each or many of them. A busy machine slows all of them down, the quickest as well. Sources that are read in the background
    answer some time after the start, so the first scrape that counts is the first on which only `failing` have failed."""
    wait_until("the other collectors answer", lambda: failed_collectors(get(case.url + "/metrics", timeout=90).text) == sorted(failing))
    times = []
    for _ in range(count):
        begin = time.monotonic()
        page = case.page(failing=failing, **more)
        times.append(time.monotonic() - begin)
    quickest, median = min(times), sorted(times)[count // 2]
    assert quickest < limit and median < max(limit, 20 * quickest), "the quickest scrape took %.2f s, half took %.2f s" % (quickest, median)
    return median, page


def together(cases, check):
    """Runs check(name, what) for all items of a dict in parallel. The first error is raised with its name."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = {name: pool.submit(check, name, what) for name, what in cases.items()}
    for name, future in futures.items():
        if future.exception() is not None:
            raise AssertionError("%s: %s" % (name, future.exception())) from future.exception()


# Vendor tools ---------------------------------------------------------------------------------------------------------

def shell(script):
    return "#!/bin/sh\n" + script + "\n"


def saying(node, text):
    """A tool that prints this text."""
    path = tempfile.mkstemp(dir=node.root)[1]
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, 0o644)
    return shell("exec cat " + path)


def tools_of_gpus_lie():
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
        "<!ENTITY %s '%s'>" % (chr(98 + i), "&%s;" % chr(97 + i) * 10) for i in range(12)) + "]><nvidia_smi_log>&m;</nvidia_smi_log>"
    lies = {
        "nvidia-smi": {"empty": "", "cut": NVIDIA_SMI[NVIDIA_SMI.index("<?xml"):-200], "binary": bytes(range(256)) * 1000,
                       "deep": "<nvidia_smi_log>" + "<a>" * 5000000, "wide": "<nvidia_smi_log>" + "<a/>" * 3900000 + "</nvidia_smi_log>",
                       "bomb": bomb, "number": "<nvidia_smi_log><gpu><mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>"
                       "<mig_device><index>1e99</index></mig_device></mig_devices></gpu></nvidia_smi_log>",
                       "gigabyte": shell(GIGABYTE), "error": shell("echo NVML: no driver >&2; exit 9"), "killed": shell("kill -9 $$")},
        "amd-smi": {"cut": '[{"gpu": 0, "bus": {"bdf": "0000', "deep": "[" * 15000000, "wide": "[0" + ",0" * 7500000 + "]",
                    "types": '[{"gpu": {}, "bus": 7, "board": [1], "partition": null}]', "gigabyte": shell(GIGABYTE)},
        "rocm-smi": {"cut": '{"card0": {"PCI Bus"', "types": '{"card0": 7, "cardx": {}}', "wide": "{" + '"card0":{},' * 1000000 + '"a":0}',
                     "gigabyte": shell(GIGABYTE)},
    }

    def check(name, what):
        tool, lie = what

        def spoil(node):
            os.unlink(node.bin + "/nvidia-smi")
            text = lie if isinstance(lie, str) and lie.startswith("#!") else saying(node, lie)
            write("%s/%s" % (node.bin, tool), text, 0o755)
            for n in range(4):
                write(node.sys + "/bus/pci/devices/0000:1%d:00.0/vendor" % n, "0x10de\n" if tool == "nvidia-smi" else "0x1002\n")
        with Case("%s/%s" % (directory, name), ["--collector.slurm"], spoil) as case:
            for _ in range(5):
                assert not samples(case.page(), "ceems_compute_unit_gpu_index_flag")
            wait_until("the failure is in the log", case.problems)
            case.one_problem("GPUs cannot be listed", "vendor=" + ("nvidia" if tool == "nvidia-smi" else "amd"))
            peaks.append(case.end() or 0)

    peaks = []
    with scratch("ceems-hostile-") as directory:
        together({"%s-%s" % (tool, kind): (tool, lie) for tool in lies for kind, lie in lies[tool].items()}, check)
    return "peak memory %.1f MB" % (max(peaks) / 1e6) if any(peaks) else ""


def tools_never_end():
    """Tools that hang at the start, when the exporter lists GPUs and tests how to count queue pairs, and later in the power command."""
    def spoil(node):
        for tool in ("nvidia-smi", "rdma", "ipmitool"):
            write(node.bin + "/" + tool, shell("sleep 3600 & sleep 3600"), 0o755)

    with scratch("ceems-hostile-") as directory:
        begin = time.monotonic()
        with Case(directory + "/case", SlurmNode.flags, spoil) as case:
            started = time.monotonic() - begin
            assert started < 90, "the start took %.1f s\n%s" % (started, case.exporter.output())
            quick_scrapes(case, 50, 1, failing=["ipmi_dcmi"])
            for part in ("GPUs cannot be listed", "queue pairs", "collector=ipmi_dcmi"):
                wait_until("one line about " + part, lambda p=part: sum(p in line for line in case.problems()) == 1)
            case.end()
        left = [pid for pid in os.listdir("/proc") if pid.isdigit() and directory.encode() in environment(pid)]
        assert not left, "processes were left behind: %s" % left
    return "start %.1f s" % started


def environment(pid):
    try:
        with open("/proc/%s/environ" % pid, "rb") as f:
            return f.read()
    except OSError:
        return b""


def power_command_lies():
    """A tool for the BMC. The numbers in its errors differ from run to run."""
    def check(name, script):
        def spoil(node):
            write(node.bin + "/ipmitool", shell(script), 0o755)
        with Case("%s/%s" % (directory, name), lambda node: ["--collector.slurm", "--collector.ipmi_dcmi",
                                                           "--collector.ipmi_dcmi.cmd=%s/ipmitool" % node.bin], spoil) as case:
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                case.page(failing=["ipmi_dcmi"])
                time.sleep(0.1)
            wait_until("the failure is in the log", case.problems)
            case.one_problem("reading failed", "collector=ipmi_dcmi")
            peaks.append(case.end() or 0)

    peaks = []
    with scratch("ceems-hostile-") as directory:
        together({"gigabyte": GIGABYTE, "errors": GIGABYTE + " >&2; exit 1", "changing": "echo $$ is no power; exit $(($$ % 7 + 1))",
                  "silent": "exit 0", "absurd": "echo 'Current Power : 99999999999999999999999 Watts'",
                  "negative": "echo 'Current Power : -5 Watts'", "group": "sleep 3600 & echo no >&2; exit 1"}, check)
    return "peak memory %.1f MB" % (max(peaks) / 1e6) if any(peaks) else ""


def root_runs_nothing_that_others_can_change():
    if not ROOT:
        return "not root, skipped"
    with scratch("ceems-hostile-") as directory:
        marks = directory + "/marks"
        os.mkdir(marks)
        os.chmod(marks, 0o777)

        def tool(node, name, mark):
            # It prints nothing unless it runs as root, so that the exporter also tries to run it as root.
            return write("%s/%s" % (node.bin, name), shell("[ $(id -u) = 0 ] || exit 1\necho > %s/%s\necho 'Power Measurement : Active'; echo 'Current Power : 7 Watts'" % (
                marks, mark)), 0o755)

        def own(node):
            tool(node, "ipmitool", "own")

        def others(node):
            os.chown(tool(node, "ipmitool", "others"), 65534, 65534)

        def link(node):
            os.chown(tool(node, "evil", "link"), 65534, 65534)
            os.unlink(node.bin + "/ipmitool")
            os.symlink(node.bin + "/evil", node.bin + "/ipmitool")

        def writable(node):
            os.chmod(tool(node, "ipmitool", "writable"), 0o777)

        def place(node):
            tool(node, "ipmitool", "place")
            os.chown(node.bin, 65534, 65534)

        def dangling(node):
            os.unlink(node.bin + "/ipmitool")
            os.symlink(node.bin + "/nothing", node.bin + "/ipmitool")

        def check(name, spoil):
            with Case("%s/%s" % (directory, name), lambda node: ["--collector.ipmi_dcmi", "--no-collector.slurm",
                                                               "--collector.ipmi_dcmi.cmd=%s/ipmitool" % node.bin], spoil) as case:
                for _ in range(3):
                    page = case.page(failing=[] if name == "own" else ["ipmi_dcmi"])
                assert bool(samples(page, "ceems_ipmi_dcmi_current_watts")) == (name == "own"), page
                if name != "own":
                    case.one_problem("reading failed", "No such file" if name == "dangling" else "must belong to root")
                case.end()
            assert os.path.exists("%s/%s" % (marks, name)) == (name == "own"), "ran as root"

        together({f.__name__: f for f in (own, others, link, writable, place, dangling)}, check)


def rdma_is_switched_by_a_trusted_program_only():
    if not ROOT:
        return "not root, skipped"
    with scratch("ceems-hostile-") as directory:
        marks = directory + "/marks"
        os.mkdir(marks)
        os.chmod(marks, 0o777)

        def spoil(node):
            path = write(node.bin + "/rdma", shell("[ $(id -u) = 0 ] && echo > %s/ran\ncase \"$*\" in\n"
                                                   "'statistic qp mode') echo 'link mlx5_0/1 auto off' ;;\nesac" % marks), 0o755)
            os.chown(path, 65534, 65534)
        # The exporter asks the tool at its start as root, unless it was started by an ordinary user.
        with Case(directory + "/case", lambda node: ["--collector.slurm", "--collector.rdma.stats",
                                                     "--collector.rdma.cmd=%s/rdma" % node.bin], spoil) as case:
            for _ in range(5):
                case.page()
            # On a busy machine the question before that may fail because the tool does not start in time.
            lines = [line for line in case.problems() if "queue pairs" in line and "not started after" not in line]
            assert len(lines) == 1 and "must belong to root" in lines[0], case.problems()
            case.end()


# Web services and sockets ---------------------------------------------------------------------------------------------

def redfish_flags(node):
    return ["--collector.slurm", "--collector.redfish", "--collector.redfish.config.file=%s/redfish.yml" % node.root]


def redfish_lies():
    big = b'{"Chassis":{"@odata.id":"/redfish/v1/Chassis"},"x":"' + b"y" * (10 << 20) + b'"}'
    power = "/redfish/v1/Chassis/Node/Power"

    def power_is(text):
        return lambda path, query, body: (200, "application/json", text) if path.endswith("/Power") else redfish_service(path, query, body)

    lies = {
        "circle": lambda path, *_: (302, "text/html", b"", {"Location": path}),
        "elsewhere": lambda path, *_: (307, "text/html", b"", {"Location": trap.url + path}),
        "file": lambda path, *_: (301, "text/html", b"", {"Location": "file:///etc/passwd"}),
        "refused": lambda *_: (401, "text/html", b"no"),
        "big": lambda *_: (200, "application/json", big),
        "deep": lambda *_: (200, "application/json", b"[" * 1000000),
        "list": lambda *_: (200, "application/json", b"[1, 2]"),
        "types": power_is(b'{"PowerControl": {"PowerConsumedWatts": "many"}}'),
        "text": power_is(b'{"PowerControl": [{"PowerConsumedWatts": "a lot"}]}'),
        "absurd": power_is(b'{"PowerControl": [{"PowerConsumedWatts": 1e300}]}'),
        "cut": power_is(b'{"PowerControl": [{"PowerCons'),
        "error": lambda path, query, body: (500, "text/html", b"x") if path == power else redfish_service(path.replace("Tray", "-"), query, body),
        "closed": lambda *_: None,
    }

    def check(name, lie):
        def spoil(node):
            node.bmc.handler = lie
        with Case("%s/%s" % (directory, name), redfish_flags, spoil) as case:
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                page = case.page(failing=["redfish"])
                time.sleep(0.1)
            assert not samples(page, "ceems_redfish_current_watts") and "root:" not in page, page
            wait_until("the failure is in the log", case.problems)
            case.one_problem("reading failed", "collector=redfish")
            assert len(case.node.bmc.seen) < 40, "%d requests" % len(case.node.bmc.seen)
            if name == "refused":
                assert len(case.node.bmc.seen) == 1, "the account would get locked: %s" % case.node.bmc.seen
            peaks.append(case.end() or 0)

    peaks = []
    with scratch("ceems-hostile-") as directory, FakeHttp(redfish_service) as trap:
        together(lies, check)
        assert not trap.seen, trap.seen
    return "peak memory %.1f MB" % (max(peaks) / 1e6) if any(peaks) else ""


def redfish_hangs():
    """Scrapes do not wait for a BMC that hangs. The age of the value grows until the BMC responds again."""
    with scratch("ceems-hostile-") as directory:
        def rest(path, query, body):
            release.wait(300)
            return redfish_service(path, query, body)

        release = threading.Event()
        with Case(directory + "/case", redfish_flags) as case:
            wait_until("the first reading", lambda: len(samples(get(case.url + "/metrics").text, "ceems_redfish_current_watts")) == 2)

            def age(page):
                return dict(samples(page, "ceems_exporter_source_age_seconds"))['{collector="redfish",source="redfish"}']
            case.node.bmc.handler = rest
            time.sleep(1.1)  # the value counts as current for a second
            first = age(case.page())
            begin = time.monotonic()
            median, _ = quick_scrapes(case, 100, 1)
            elapsed = time.monotonic() - begin
            page = case.page()
            assert age(page) - first > elapsed - 0.1, "the age grew by %.2f s in %.2f s" % (age(page) - first, elapsed)
            assert len(samples(page, "ceems_redfish_current_watts")) == 2, "the last value is gone"
            wait_until("the exporter gives up on the BMC", case.problems)  # the next reading, with its requests one by one
            case.page()
            case.one_problem("reading failed", "collector=redfish")
            case.node.bmc.handler = redfish_service
            release.set()
            wait_until("the BMC is read again", lambda: age(case.page()) < 2)
            assert "source answers again" in case.exporter.output()
            assert len(case.problems()) == 1, case.problems()
            case.end()
    return "median %.1f ms" % (1e3 * median)


def pod_resources_socket_hangs():
    with scratch("ceems-hostile-") as directory:
        def pods(path, _query, _body):
            return 200, "application/json", (b'{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"p","namespace":"n",'
                                             b'"uid":"6232f0c5-57fa-409a-b026-0919f60e24a6"}}]}')

        def spoil(node):
            pod = node.cgroup + "/kubepods.slice/kubepods-pod6232f0c5_57fa_409a_b026_0919f60e24a6.slice"
            for name, text in FILES_OF_JOB.items():
                write(pod + "/" + name, text)
            write(pod + "/cgroup.procs", "5000000\n")

        path = directory + "/kubelet.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)  # the kernel accepts connections, but nobody responds
        os.chmod(path, 0o777)
        with listener, FakeHttp(pods) as api:
            config = write(directory + "/kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: "
                           "{cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: \"%s\"}}]\n" % api.url)
            with Case(directory + "/case", ["--collector.k8s", "--collector.k8s.kubeconfig.file=" + config,
                                            "--collector.k8s.kubelet-podresources-socket.file=" + path], spoil) as case:
                median, page = quick_scrapes(case, 100, 0.5)
                wait_until("the failure is in the log", case.problems)
                assert samples(page, "ceems_compute_units")[0][1] == 1 and samples(page, "ceems_compute_unit_cpu_user_seconds_total"), page
                lines = case.problems()
                assert sum("kubelet" in line for line in lines) == 1 and len(lines) == 1, lines
                case.end()
    return "median %.0f ms" % (1e3 * median)


# Files ----------------------------------------------------------------------------------------------------------------

def definitions_of_virtual_machines_are_bombs():
    uuid = "<uuid>4de89c5b-50d7-4d30-a630-14e135380fe8</uuid>"
    entities = "".join("<!ENTITY x%d '%s'>" % (i + 1, "&x%d;" % i * 10) for i in range(12))
    bombs = {
        "00000001": "<!DOCTYPE d [<!ENTITY x0 'lol'>%s]><domain><uuid>&x12;</uuid></domain>" % entities,
        "00000002": "<!DOCTYPE d [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><domain><uuid>&f;</uuid></domain>",
        "00000003": "<domain>" + uuid + "<a>" * 300000,
        "00000004": "<domain>" + uuid + "<a/>" * 8000000 + "</domain>",
        "00000005": "<domain>%s<devices>%s</devices></domain>" % (uuid, "<hostdev/>" * 40000),
        "00000006": "\0" * 100000,
        "00000007": "",
    }
    with scratch("ceems-hostile-") as directory:
        def spoil(node):
            for number, text in bombs.items():
                scope = "%s/machine.slice/machine-qemu\\x2d1\\x2dinstance\\x2d%s.scope" % (node.cgroup, number)
                for name, content in FILES_OF_JOB.items():
                    write(scope + "/" + name, content)
                write(scope + "/cgroup.procs", "5000000\n")
                write("%s/qemu/instance-%s.xml" % (directory, number), text)
        with Case(directory + "/case", ["--collector.libvirt", "--collector.libvirt.xml-dir=%s/qemu" % directory], spoil) as case:
            for _ in range(10):
                page = case.page()
            assert samples(page, "ceems_compute_units")[0][1] == len(bombs), page
            assert "root:" not in page and "lollol" not in page, page
            for number in bombs:
                assert sum("vm=instance-" + number in line for line in case.problems()) == 1, (number, case.problems())
            assert len(case.problems()) == len(bombs), case.problems()
            memory = case.end()
    return "peak memory %.1f MB" % (memory / 1e6) if memory else ""


def a_hundred_thousand_processes():
    count = 5000 if SANITIZED else 100000  # ten times slower with sanitizers, and the machine may be busy
    first = 5000000  # above all pids of Linux
    with scratch("ceems-hostile-") as directory:
        def spoil(node):
            if os.path.isdir("/dev/shm"):  # a disk takes long to make and remove so many files
                memory.append(tempfile.mkdtemp(prefix="ceems-hostile-", dir="/dev/shm"))
                os.chmod(memory[0], 0o755)
                shutil.move(node.proc, memory[0] + "/proc")
                node.proc = memory[0] + "/proc"
            for pid in range(first + 1, first + count):
                home = "%s/%d" % (node.proc, pid)
                os.mkdir(home)
                with open(home + "/stat", "w") as f:
                    f.write("%d (a) b) S 1 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 1 0 %d 1 1\n" % (pid, pid))
            job = "%s/job_%d" % (node.scope, min(node.jobs))
            pids = "".join("%d\n" % pid for pid in range(first, first + count))
            write(job + "/step_0/user/task_0/cgroup.procs", pids)

        memory = []
        try:
            with Case(directory + "/case", lambda node: SlurmNode.flags(node) + ["--discoverer.alloy-targets"], spoil) as case:
                def whole():
                    """A page without failures. On a busy machine, what is last may be left out of the first pages."""
                    begin, answer = time.monotonic(), get(case.url + "/metrics")
                    failed = [labels for labels, value in samples(answer.text, "ceems_scrape_collector_success") if value != 1]
                    if failed:
                        raise ValueError(failed)
                    return time.monotonic() - begin, answer.text
                took, page = min(wait_until("all collectors succeed", whole) for _ in range(3))
                assert took < 10, "the fastest of three pages took %.1f s" % took
                assert samples(page, "ceems_compute_units")[0][1] == 1, page
                begin = time.monotonic()
                assert get(case.url + "/alloy-targets").status == 200
                targets = time.monotonic() - begin
                problems = [line for line in case.problems() if "took too long" not in line]
                assert not problems, problems
                peak = case.end()
        finally:
            for path in memory:
                shutil.rmtree(path)
    return "page %.2f s, targets %.2f s%s" % (took, targets, ", peak memory %.1f MB" % (peak / 1e6) if peak else "")


def write_in_place(path, text):
    """Files that the exporter keeps open. The test never leaves them half written."""
    with open(path, "r+b", buffering=0) as f:
        f.write(text.encode())
        f.truncate()


def write_anew(path, text):
    os.rename(write(path + ".new", text), path)


def counters_go_back():
    """Hardware that restarts, jumps or counts down: counted energy is never taken back, and none is invented."""
    with scratch("ceems-hostile-") as directory:
        with Case(directory + "/case", ["--collector.slurm", "--collector.netdev", "--collector.energy",
                                        "--collector.energy.interval=100ms"]) as case:
            node = case.node
            job = "%s/job_%d" % (node.scope, min(node.jobs))
            stat = open(node.proc + "/stat").read()
            seen, begin = {}, time.monotonic()
            values = [258218293244, 258228293244, 5, 262143328849, 0, 2 ** 64 - 1, 1000, 262143328850 * 5, 10, 0, 258218293244]
            for step, value in enumerate(values * 2):
                for n in range(2):
                    write_in_place("%s/class/powercap/intel-rapl:%d/energy_uj" % (node.sys, n), "%020d\n" % value)
                usage = (60491070351 - value % 60000000000,) * 2
                write_in_place(job + "/cpu.stat", "usage_usec %020d\nuser_usec %020d\nsystem_usec 0\n" % usage)
                if step == len(values):
                    write_anew(node.proc + "/stat", re.sub(r"\d+", "7", stat))
                write_anew(node.proc + "/net/dev", "h\nh\n  eth0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n" % (value % 2 ** 63, 2 ** 63 - value % 2 ** 63))
                time.sleep(0.15)
                page = case.page()
                for name in ("ceems_node_energy_joules_total", "ceems_compute_unit_energy_joules_total", "ceems_system_energy_joules_total",
                             "ceems_unallocated_energy_joules_total", "ceems_cpu_seconds_total"):
                    for labels, now in samples(page, name):
                        if name == "ceems_cpu_seconds_total" and "idle" not in labels:
                            continue  # kernel counters restart when a CPU comes back
                        if name != "ceems_cpu_seconds_total":
                            assert now >= seen.get((name, labels), 0), "%s%s went from %r to %r" % (name, labels, seen[name, labels], now)
                        seen[name, labels] = now
            assert any(name == "ceems_node_energy_joules_total" for name, _ in seen), page
            watts = max(v for (name, _), v in seen.items() if name == "ceems_node_energy_joules_total") / (time.monotonic() - begin)
            assert watts < 2000, "%.0f invented watts" % watts
            # Each counter jumped several times, which is said once, and so is that its value with all bits set is not believed. The CPU
            # times of processes went back once, so the power model that replaces meters has no value for one sample.
            packages = ["rapl-package-0", "rapl-package-1"]
            jumps = [line for line in case.problems() if "a counter jumped" in line]
            doubts = [line for line in case.problems() if "is not believed" in line]
            for lines in (jumps, doubts):
                assert sorted(re.search(r"source=(\S+-\d) ", line).group(1) for line in lines) == packages, lines
            others = [line for line in case.problems() if line not in jumps + doubts]
            assert all("power-model" in line for line in others) and len(others) <= 1, others
            case.end()


def forged_environments_take_no_gpu():
    """A job names the GPU that a prolog gave to another job, and a GPU that no job has."""
    if not ROOT:
        return "not root, skipped"

    def spoil(node):
        owner, forger = node.next_job - 1, node.add_job()
        os.makedirs(node.root + "/map")
        os.chmod(node.root + "/map", 0o755)
        write("%s/map/%d" % (node.root, owner), "2\n")
        write("%s/%d/environ" % (node.proc, node.jobs[forger][0]), "SLURM_JOB_ID=%d\0SLURM_JOB_GPUS=0,2\0" % forger)
        jobs.update(owner=str(owner), forger=str(forger))

    jobs = {}
    flag = "ceems_compute_unit_gpu_index_flag"
    with scratch("ceems-hostile-") as directory:
        for evidence, expected, hints in (("any", {("2", "owner"), ("0", "forger")}, [1]), ("trusted", {("2", "owner")}, [0])):
            with Case("%s/%s" % (directory, evidence),
                      lambda node, e=evidence: ["--collector.slurm", "--collector.slurm.gpu-map-dir=%s/map" % node.root,
                                                "--collector.slurm.gpu-evidence=" + e], spoil) as case:
                names = {number: name for name, number in jobs.items()}
                for _ in range(3):
                    page = case.page()
                    held = {(re.search(r'[{,]index="(\d+)"', labels).group(1), names[re.search(r'uuid="(\d+)"', labels).group(1)])
                            for labels, _value in samples(page, flag)}
                    assert held == expected, (evidence, held, page)
                    assert [value for _, value in samples(page, "ceems_exporter_unit_gpu_hints")] == hints, page
                case.end()


# They run three at a time; those that mostly wait come first.
TESTS = [tools_never_end, redfish_hangs, redfish_lies, power_command_lies, tools_of_gpus_lie, a_hundred_thousand_processes,
         root_runs_nothing_that_others_can_change, rdma_is_switched_by_a_trusted_program_only, pod_resources_socket_hangs,
         definitions_of_virtual_machines_are_bombs, counters_go_back, forged_environments_take_no_gpu]


def run(test):
    said = test()
    if said:
        print("%s: %s" % (test.__name__, said), flush=True)


def main():
    wanted = sys.argv[1:]
    return run_together([test for test in TESTS if not wanted or test.__name__ in wanted], run, 3)


if __name__ == "__main__":
    sys.exit(main())
