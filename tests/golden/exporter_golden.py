#!/usr/bin/env python3
"""Compares whole pages of the real exporter, on the machines in tests/fixtures, with tests/golden/exporter/*.txt.

    tests/golden/exporter_golden.py [--bin PROGRAM] [--update] [--no-promtool] [--ebpf] [--patience X] [--together N] [CASE ...]

--update rewrites the golden pages. Each page is also checked with `promtool check metrics`, and the OpenMetrics page must have the
same series. --ebpf switches on eBPF metrics and the profiler, whose own series are checked to be there where the kernel permits
them; nothing else on a page may change. --patience multiplies the times after which an exporter that does not answer has failed.
Most of the time of a case is waiting, so N cases (three unless --together says otherwise) run at the same time."""

import argparse
import collections
import concurrent.futures
import dataclasses
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import ebpf_flags
import services

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = os.path.join(TESTS, "golden", "exporter")
patience = 1.0


@dataclasses.dataclass
class Case:
    """One consistent machine per page. Add a row for each new one."""

    machine: str  # a folder of tests/fixtures
    flags: list  # {root} is the folder of the machine; the service's settings replace other {names}
    commands: bool = False  # put the machine's bin/ first on PATH
    service: type = None  # a class of services.py
    wait_for: tuple = ()  # series of slow sources that must be on the page before it counts
    scenario: str = ""  # what the libraries of tests/fake_gpu_libraries ({libraries}) simulate
    cgroups: str = ""  # the folder with the cgroups, if it is another one
    host: str = ""  # NODE_NAME
    parts: dict = dataclasses.field(default_factory=dict)  # watts by domain; what the counters gain between two pages has their proportions
    compared: bool = True  # False: values depend on time, so the first page is only checked with promtool and for wait_for


ONLY = "--collector.disable-defaults"
V1 = "--collector.cgroups.force-version=v1"
V2 = "--collector.cgroups.force-version=v2"
SLURM = [ONLY, "--collector.slurm", "--collector.slurm.swap-memory-metrics", "--collector.slurm.psi-metrics"]
SLURM_GPU = [V2, ONLY, "--collector.slurm", "--collector.slurm.gpu-map-dir="]
LSF = [ONLY, "--collector.lsf", "--collector.lsf.swap-memory-metrics", "--collector.lsf.psi-metrics"]
OPENPBS = [ONLY, "--collector.openpbs", "--collector.openpbs.swap-memory-metrics", "--collector.openpbs.psi-metrics"]
LIBVIRT = [ONLY, "--collector.libvirt", "--collector.libvirt.xml-dir={root}/etc/libvirt/qemu",
           "--collector.libvirt.swap-memory-metrics", "--collector.libvirt.psi-metrics",
           "--collector.libvirt.blkio-metrics"]
IPMI = [ONLY, "--collector.ipmi_dcmi"]
IPMI_CMD = "--collector.ipmi_dcmi.cmd={root}/bin/"
REDFISH = ["--collector.redfish", "--collector.redfish.config.file={root}/etc/redfish.yml",
           "--collector.redfish.config.file.expand-env-vars"]
ENERGY = [V2, ONLY, "--collector.slurm", "--collector.hwmon", "--collector.gpu", "--collector.gpu.interval=100ms", "--collector.energy",
          "--collector.energy.interval=200ms"]
# The GPUs answer a moment after the others.
SOURCES = (r'(?=ceems_energy_source_info\{domain="gpu")ceems_energy_source_info', "ceems_node_energy_joules_total")
WATTS = ("ceems_ipmi_dcmi_current_watts",)
FLAG = ("ceems_compute_unit_gpu_index_flag",)
# Parts of GPUs are known from a second command.
PARTS = tuple(r'(?=ceems_compute_unit_gpu_index_flag\{.*,uuid="c0ffee5%d-)ceems_compute_unit_gpu_index_flag' % number for number in (1, 2, 3, 4))

CASES = {
    "empty": Case("empty", ["--collector.hwmon"]),
    "intel-2s": Case("intel-2s", ["--collector.hwmon"]),
    "intel-2s-options": Case("intel-2s", [ONLY, "--collector.meminfo", "--collector.rapl", "--collector.meminfo.all-stats",
                                          "--collector.rapl.enable-zone-label"]),
    "slurm-v1": Case("slurm-v1", [V1, *SLURM]),
    "slurm-v2": Case("slurm-v2", [V2, *SLURM]),
    "energy": Case("intel-2s", [V2, *SLURM, "--collector.energy"], cgroups="slurm-v2", compared=False,
                   wait_for=("ceems_node_energy_joules_total", "ceems_system_energy_joules_total", "ceems_energy_source_info",
                             "ceems_node_info")),
    "unit-use": Case("slurm-v2", [V2, *SLURM, "--collector.energy"], compared=False,
                     wait_for=("ceems_compute_unit_memory_shmem_bytes", "ceems_compute_unit_memory_peak_bytes",
                               "ceems_compute_unit_idle_seconds_total")),
    "fabric": Case("fabric", [ONLY, "--collector.netdev", "--collector.infiniband"]),
    "fabric-include": Case("fabric", [ONLY, "--collector.netdev", "--collector.netdev.device-include=^(ib|opa)"]),
    "lustre": Case("filesystems", [ONLY, "--collector.lustre"]),
    "nfs": Case("filesystems", [ONLY, "--collector.nfs"]),
    "rdma": Case("fabric", [V2, ONLY, "--collector.slurm", "--collector.rdma.stats"], commands=True,
                 wait_for=("ceems_rdma_qps_active", "ceems_rdma_state_id")),
    "cray-ex": Case("cray-ex", [*IPMI, IPMI_CMD + "capmc get_system_power -w 600", "--collector.cray_pm_counters"],
                    wait_for=WATTS),
    "bmc": Case("bmc", [*IPMI, IPMI_CMD + "ipmi-dcmi --get-system-power-statistics", *REDFISH], service=services.Redfish,
                wait_for=(*WATTS, "ceems_redfish_current_watts")),
    # As a site with CEEMS 0.11 starts it, and one with 0.10.
    "bmc-ipmitool": Case("bmc", [ONLY, "--collector.ipmi", "--collector.ipmi.dcmi.cmd={root}/bin/ipmitool dcmi power reading",
                                 "--collector.power-metric-names=v0.11"], wait_for=("ceems_ipmi_dcmi_power_current_watts",)),
    "bmc-ipmiutil": Case("bmc", [*IPMI, IPMI_CMD + "ipmiutil dcmi power", "--collector.power-metric-names=v0.10"], wait_for=WATTS),
    "emissions": Case("empty", [ONLY, "--collector.emissions", "--collector.emissions.provider=owid",
                                "--collector.emissions.provider=global"], wait_for=("ceems_emissions_gCo2_kWh",)),
    "nvidia-mig": Case("nvidia-mig", [*SLURM_GPU, "--collector.slurm.gres-config-file={root}/etc/gres.conf"],
                       commands=True, wait_for=FLAG),
    "nvidia-mig-order": Case("nvidia-mig", [*SLURM_GPU, "--collector.slurm.gres-config-file=",
                                            "--collector.slurm.gpu-order-map=0:1.9,1:1.1,2:1.2,3:0"],
                             commands=True, wait_for=FLAG),
    "gpu-nvml": Case("gpu-nvml", [*SLURM_GPU, "--collector.gpu", "--collector.gpu.interval=100ms",
                                  "--collector.gpu.library-path.nvidia={libraries}/libfake_nvml.so"],
                     commands=True, scenario="nvml.scenario",
                     wait_for=(*FLAG, "ceems_gpu_sm_active_ratio", "ceems_compute_unit_gpu_utilization_ratio")),
    "gpu-rocm": Case("amd-cpx", [*SLURM_GPU, "--collector.gpu", "--collector.gpu.interval=100ms",
                                 "--collector.gpu.library-path.amd={libraries}/libfake_rocm_smi.so"],
                     commands=True, scenario="rocm.scenario",
                     wait_for=(*FLAG, "ceems_gpu_power_watts", "ceems_compute_unit_gpu_memory_used_bytes")),
    "gpu-level-zero": Case("intel-gpu", [*SLURM_GPU, "--collector.gpu", "--collector.gpu.interval=100ms",
                                         "--collector.gpu.library-path.intel={libraries}/libfake_level_zero.so"],
                           scenario="level_zero.scenario",
                           wait_for=(*FLAG, "ceems_gpu_energy_joules_total", "ceems_compute_unit_gpu_memory_used_bytes")),
    "nvidia-gh200": Case("nvidia-gh200", [*ENERGY, "--collector.gpu.library-path.nvidia={libraries}/libfake_nvml.so"],
                         scenario="nvml.scenario", cgroups="slurm-v2", wait_for=SOURCES,
                         parts={"package": 150, "dram": 50, "gpu": 400, "other": 0, "node": 600}),
    "amd-mi300a": Case("amd-mi300a", [*ENERGY, "--collector.gpu.library-path.amd={libraries}/libfake_rocm_smi.so"],
                       scenario="rocm.scenario", cgroups="slurm-v2", service=services.Sockets,
                       wait_for=(*SOURCES, r'(?=ceems_energy_source_info\{domain="node".*source="sum")ceems_energy_source_info'),
                       parts={"package": 0, "gpu": 448, "other": 0, "node": 448}),
    "amd-cpx": Case("amd-cpx", SLURM_GPU, commands=True, wait_for=FLAG),
    "lsf-v1": Case("lsf-v1", [V1, *LSF], commands=True, host="gold1",
                   wait_for=(r'(?=ceems_compute_unit_cpus\{.*,uuid="6"\} 4$)ceems_compute_unit_cpus',)),
    "lsf-v2": Case("lsf-v2", [V2, *LSF], commands=True, host="gold2", wait_for=FLAG),
    "openpbs-v1": Case("openpbs-v1", [V1, *OPENPBS], commands=True, wait_for=FLAG),
    "openpbs-v2": Case("openpbs-v2", [V2, *OPENPBS]),
    "libvirt-v1": Case("libvirt-v1", [V1, *LIBVIRT], commands=True, wait_for=FLAG),
    "libvirt-v2": Case("libvirt-v2", [V2, *LIBVIRT], commands=True, wait_for=PARTS),
    "k8s-cgroupfs": Case("k8s-cgroupfs", [V1, ONLY, "--collector.k8s", "--collector.k8s.psi-metrics"]),
    "k8s-systemd": Case("k8s-systemd", [V2, ONLY, "--collector.k8s", "--collector.k8s.psi-metrics",
                                        "--collector.k8s.kubeconfig.file={kubeconfig}",
                                        "--collector.k8s.kubelet-podresources-socket.file={kubelet}"],
                        commands=True, service=services.Kubernetes, wait_for=FLAG),
}

# Series that differ from run to run. Only these are removed from the pages.
NOT_DETERMINISTIC = re.compile(
    r"(# (HELP|TYPE) )?(ceems_scrape_collector_duration_seconds|ceems_exporter_build_info|process_|promhttp_)")
# Of cases with parts, the page contains only series that do not depend on the time since the start; `other` depends on
# whether the GPUs or the wall meter answered first.
STEADY = re.compile(r"(# (HELP|TYPE) )?ceems_(hwmon_power|energy_source_info(?!\{domain=.other)|gpu_power|gpu_info)")
BETWEEN = 5  # seconds between the two pages of such a case
# Series whose values differ. The pages contain * instead.
ANY_VALUE = re.compile(r"(ceems_(?:exporter_source_age_seconds|gpu_clock_reason_seconds_total)\{.*\}) .*")

# Every complaint of promtool is about a name of the reference, which dashboards rely on. Names of our own follow the conventions.
KNOWN_LINT = {
    "metric names should be written in 'snake_case' not 'camelCase'": {"ceems_emissions_gCo2_kWh"},
    'counter metrics should have "_total" suffix': {"ceems_rdma_" + name for name in (
        "req_cqe_error", "req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request", "resp_cqe_error",
        "resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors", "rx_atomic_requests", "rx_read_requests",
        "rx_write_requests")},
    'non-histogram and non-summary metrics should not have "_count" suffix': {"ceems_" + name for name in (
        "compute_unit_gpu_sm_count", "compute_unit_memory_fail_count", "compute_unit_memsw_fail_count", "cpu_count",
        "cpu_per_core_count")},
}
# Of the fields of /proc/meminfo, whose names come from the kernel, promtool may complain about the mixed case.
MEMINFO_LINT = re.compile(r"ceems_meminfo_\w+ metric names should be written in 'snake_case' not 'camelCase'")


def libraries(program):
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program))), "tests", "fake_gpu_libraries")


class Exporter:
    """The program on a free port. Fixture roots are relative to tests/, so that labels contain no local path."""

    def __init__(self, program, case, settings, environment):
        root = "fixtures/" + case.machine
        settings = {"libraries": libraries(program), **settings}
        arguments = [program, "--web.listen-address=127.0.0.1:0", "--collector.empty-hostname-label",
                     "--no-security.drop-privileges", "--path.procfs=%s/proc" % root,
                     "--path.sysfs=" + settings.get("sysfs", "%s/sys" % root),
                     "--path.cgroupfs=fixtures/%s/sys/fs/cgroup" % (case.cgroups or case.machine)]
        arguments += [flag.format(root=root, **settings) for flag in case.flags]
        self.process = subprocess.Popen(arguments, cwd=TESTS, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, bufsize=1, env=environment)
        self.log = []
        self.address = None
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"msg=listening.* address=([0-9.]+:\d+)", line)
            if found:
                self.address = found.group(1)
                return
        raise SystemExit("the exporter ended with status %s:\n%s" % (self.process.wait(), "".join(self.log)))

    def page(self, accept="text/plain"):
        request = urllib.request.Request("http://%s/metrics" % self.address, headers={"Accept": accept})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=90 * patience) as answer:
            return answer.read().decode("utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        rest = self.process.stderr.read()
        status = self.process.wait(90 * patience)
        if status != 0:
            raise SystemExit("the exporter ended with status %d:\n%s" % (status, "".join(self.log) + rest))


def deterministic(page):
    return [ANY_VALUE.sub(r"\1 *", line) for line in page.splitlines() if not NOT_DETERMINISTIC.match(line)]


def ebpf_series(lines):
    """(the lines without eBPF metrics and those of the profiler, the rows of ebpf_flags.SERIES to which the others belong)"""
    found = [re.match(r"(?:# (?:HELP|TYPE) )?(%s)" % "|".join(ebpf_flags.SERIES.values()), line) for line in lines]
    names = {match.group(1) for match in found if match}
    return ([line for line, match in zip(lines, found) if not match],
            [name for name, prefix in ebpf_flags.SERIES.items() if prefix in names])


def lint(page):
    """The complaints of promtool except the known ones."""
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True)
    lines = [line for line in (checked.stdout + checked.stderr).splitlines() if line.strip()]
    return [line for line in lines if not is_known_lint(line)]


def is_known_lint(line):
    name, _, complaint = line.partition(" ")
    return name in KNOWN_LINT.get(complaint, ()) or MEMINFO_LINT.fullmatch(line)


def samples(page):
    return sorted(line for line in deterministic(page) if not line.startswith("#"))


def complete(page, case):
    return all(re.search("^%s[{ ]" % name, page, re.M) for name in case.wait_for)


def pages(case, program):
    """The text and the OpenMetrics page of a case."""
    machine = os.path.join(TESTS, "fixtures", case.machine)
    environment = {name: value for name, value in os.environ.items() if name != "NODE_NAME"}
    if case.commands:
        environment["PATH"] = os.path.join(machine, "bin") + ":/usr/bin:/bin"
    if case.host:
        environment["NODE_NAME"] = case.host
    if case.scenario:
        environment["CEEMS_FAKE_GPU"] = os.path.join(machine, case.scenario)
    with tempfile.TemporaryDirectory(prefix="ceems-golden-") as folder:
        service = case.service(machine, folder) if case.service else None
        try:
            environment.update(service.environment if service else {})
            with Exporter(program, case, service.settings if service else {}, environment) as exporter:
                page = exporter.page()
                deadline = time.monotonic() + (90 * patience if case.compared else 0)
                while not complete(page, case) and time.monotonic() < deadline:
                    time.sleep(0.05)
                    page = exporter.page()
                if case.parts:
                    time.sleep(BETWEEN)
                    return page, exporter.page()
                return page, exporter.page("application/openmetrics-text; version=1.0.0")
        finally:
            if service:
                service.close()


def node_energy(page):
    """Joules by domain."""
    joules = collections.Counter()
    for domain, value in re.findall(r'^ceems_node_energy_joules_total\{domain="(\w+)".*\} (\S+)$', page, re.M):
        joules[domain] += float(value)
    return joules


def wrong_parts(case, first, second):
    """What the domains gain from one page to the next has to be in the proportions of case.parts, whatever time that took."""
    before, after = node_energy(first), node_energy(second)
    gains = {domain: after[domain] - before[domain] for domain in after}
    node = gains.get("node", 0)
    if node <= 0:
        return ["the node gains no energy: %s" % gains]
    return ["%s gains %.1f %% of the node's energy, expected %.1f %%" % (domain, 100 * have, 100 * want)
            for domain in sorted({*gains, *case.parts})
            for have, want in [(gains.get(domain, 0) / node, case.parts.get(domain, 0) / case.parts["node"])]
            if abs(have - want) > 0.03]


def check(name, program, update, with_promtool, works):
    page, open_metrics = pages(CASES[name], program)
    failures = lint(page) if with_promtool else []
    if not CASES[name].compared:
        return failures + ([] if complete(page, CASES[name]) else ["the first page lacks series, expected %s" % (CASES[name].wait_for,)])
    if CASES[name].parts:
        failures += wrong_parts(CASES[name], page, open_metrics)
    elif not open_metrics.endswith("# EOF\n") or samples(open_metrics) != samples(page):
        failures.append("the OpenMetrics page does not have the same series as the text page")
    path = os.path.join(GOLDEN, name + ".txt")
    have = deterministic(page)
    if works:
        have, rows = ebpf_series(have)
        wanted = ebpf_flags.shown(CASES[name].flags, works, os.path.join(TESTS, "fixtures", CASES[name].machine, "sys"))
        if rows != wanted:
            failures.append("the page has series of %s instead of %s" % (rows, wanted))
    if CASES[name].parts:
        have = [line for line in have if STEADY.match(line)]
    if update:
        os.makedirs(GOLDEN, exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(have) + "\n")
        return failures
    want = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            want = f.read().splitlines()
    return failures + list(difflib.unified_diff(want, have, path, "the exporter's page", lineterm=""))


def main():
    default = os.path.join(os.environ.get("CEEMS_BIN_DIR", os.path.join(TESTS, "..", "build", "bin")), "ceems_exporter")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=default)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--ebpf", action="store_true", help="with eBPF metrics and the profiler")
    parser.add_argument("--no-promtool", action="store_true", help="do not check the pages with promtool")
    parser.add_argument("--patience", type=float, default=1.0)
    parser.add_argument("--together", type=int, default=3, help="how many cases run at the same time")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    global patience
    patience = options.patience
    if not options.no_promtool and not shutil.which("promtool"):
        print("promtool is missing (Debian package prometheus)")
        return 1
    works = None
    if options.ebpf:
        works = ebpf_flags.states(os.path.abspath(options.bin))
        print("eBPF: %s" % ", ".join("%s %s" % (name, "works" if state else "refused") for name, state in works.items()))
        for case in CASES.values():
            case.flags = case.flags + ebpf_flags.FLAGS
    names = []
    for name in options.cases or sorted(CASES, key=lambda name: (not CASES[name].parts, name)):  # those that take longest first
        if CASES[name].scenario and not os.path.exists(os.path.join(libraries(options.bin), "libfake_nvml.so")):
            print("skipped %s: the fake libraries are not built" % name)
        else:
            names.append(name)

    def run(name):
        start = time.monotonic()
        try:
            differences = check(name, os.path.abspath(options.bin), options.update and not works, not options.no_promtool, works)
        except (OSError, subprocess.SubprocessError, SystemExit) as error:
            differences = ["the exporter does not answer: %s" % error]
        return differences, time.monotonic() - start
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.together) as pool:
        for name, (differences, seconds) in zip(names, pool.map(run, names)):
            print("%-4s %s (%.2f s)" % ("FAIL" if differences else "ok", name, seconds))
            for line in differences:
                print("     " + line)
            failed += bool(differences)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
