"""A SLURM node that a test or benchmark makes from plain files: everything that the collectors of such a node read, the tools that it
runs, a Redfish BMC, and jobs that start and end. Needs only Python 3.9 and its library."""

import json
import os
import shutil
import subprocess

from harness import FakeHttp, write

FILES_OF_JOB = {
    "cgroup.controllers": "cpuset cpu io memory pids\n",
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cgroup.procs": "",
    "cpu.stat": "usage_usec 60491070351\nuser_usec 60375292848\nsystem_usec 115777502\nnr_periods 0\nnr_throttled 0\n"
                "throttled_usec 0\n",
    "cpu.max": "max 100000\n",
    "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4000\n",
    "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=400\n",
    "cpuset.cpus.effective": "0-1\n",
    "memory.current": "4111491072\n",
    "memory.max": "4294967296\n",
    "memory.swap.current": "4096\n",
    "memory.swap.max": "max\n",
    "memory.swap.events": "high 0\nmax 0\nfail 0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "rdma.current": "mlx5_0 hca_handle=2 hca_object=40\n",
    "io.stat": "8:0 rbytes=1048576 wbytes=2097152 rios=64 wios=128 dbytes=0 dios=0\n",
    "memory.stat": "".join("%s %d\n" % (key, 4096 * (i + 1)) for i, key in enumerate(
        "anon file kernel kernel_stack pagetables percpu sock vmalloc shmem file_mapped file_dirty file_writeback swapcached "
        "anon_thp file_thp shmem_thp inactive_anon active_anon inactive_file active_file unevictable slab_reclaimable "
        "slab_unreclaimable slab workingset_refault_anon workingset_refault_file pgscan pgsteal pgfault pgmajfault".split())),
}
STEPS = ("step_batch/user/task_0", "step_extern/user/task_special", "step_0/user/task_0")
GPUS = 4

NVIDIA_SMI = """#!/bin/sh
[ "$1" = --query ] || exit 0
echo '<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>'
for n in 0 1 2 3; do
echo "<gpu id=\\"00000000:1$n:00.0\\"><product_name>NVIDIA A100-SXM4-80GB</product_name><uuid>GPU-0000000$n</uuid>
<minor_number>$n</minor_number><mig_mode><current_mig>Disabled</current_mig></mig_mode></gpu>"
done
echo '</nvidia_smi_log>'
"""
IPMITOOL = """#!/bin/sh
echo '
    Instantaneous power reading:                   412 Watts
    Minimum during sampling period:                150 Watts
    Maximum during sampling period:                700 Watts
    Average power reading over sample period:      405 Watts
    IPMI timestamp:                           Sat Nov 21 12:00:00 2026
    Sampling period:                          00000005 Seconds.
    Power reading state is:                   activated
'
"""
RDMA = """#!/bin/sh
read -r pid < "$0.pid"  # PID of the newest job
case "$1 $2 $3" in
"statistic qp mode") echo 'link mlx5_0/1 auto type,pid on optional-counters off' ;;
"resource show mr") echo "dev mlx5_0 mrn 7 mrlen 4096 pdn 3 pid $pid comm app" ;;
"resource show cq") echo "dev mlx5_0 cqn 8 cqe 1023 users 2 adaptive-moderation off ctxn 4 pid $pid comm app" ;;
"resource show qp") echo "link mlx5_0/1 lqpn 813 type RC state RTS path-mig-state MIGRATED pdn 8 pid $pid comm app" ;;
"statistic qp show") echo "link mlx5_0/1 cntn 5 qp-type RC pid $pid comm app rx_write_requests 41 rx_read_requests 2" ;;
esac
"""


def redfish_service(path, _query, _body):
    """A BMC with two chassis, without login."""
    documents = {
        "/redfish/v1/": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
        "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/Node"}, {"@odata.id": "/redfish/v1/Chassis/Tray"}]},
    }
    for name, watts in (("Node", 410), ("Tray", 900)):
        link = "/redfish/v1/Chassis/" + name
        documents[link] = {"Id": name, "Power": {"@odata.id": link + "/Power"},
                           "Links": {"ComputerSystems": [{"@odata.id": "/redfish/v1/Systems/1"}] if name == "Node" else []}}
        documents[link + "/Power"] = {"PowerControl": [{"PowerConsumedWatts": watts, "PowerMetrics": {
            "MinConsumedWatts": 100, "MaxConsumedWatts": 1000, "AverageConsumedWatts": watts}}]}
    found = documents.get(path)
    return (200, "application/json", json.dumps(found).encode()) if found else (404, "text/plain", b"no")


class SlurmNode:
    """The tree below `root`, its BMC and its jobs. With `processes`, each job has a process of this machine that does nearly nothing, so
    that perf events can be counted; otherwise its process exists only as files."""

    def __init__(self, root, processes=False):
        self.root, self.processes = root, processes
        self.proc, self.sys, self.cgroup, self.bin = (root + part for part in ("/proc", "/sys", "/sys/fs/cgroup", "/bin"))
        self.scope = self.cgroup + "/system.slice/slurmstepd.scope"
        self.jobs = {}  # number: (pid, process or None)
        self.next_job, self.next_pid = 1000000, 5000000  # PIDs above all those of Linux
        self.bmc = FakeHttp(redfish_service)
        self.make_host()
        self.make_tools()
        write(root + "/redfish.yml", "redfish_collector:\n  protocol: http\n  hostname: 127.0.0.1\n  port: %s\n" %
              self.bmc.url.rsplit(":", 1)[1])

    def make_host(self):
        for name in ("stat", "cpuinfo", "meminfo"):
            with open("/proc/" + name) as f:
                write("%s/%s" % (self.proc, name), f.read())
        write(self.proc + "/diskstats", "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n")
        write(self.proc + "/net/dev", "Inter-|   Receive                                                |  Transmit\n"
              " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
              + "".join("%6s: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n" % name for name in ("lo", "eth0", "eth1", "ib0")))
        for n in range(2):
            zone = self.sys + "/class/powercap/intel-rapl:%d" % n
            for path, name in ((zone, "package-%d" % n), (zone + ":0", "dram")):
                for file, text in (("name", name + "\n"), ("energy_uj", "258218293244\n"), ("max_energy_range_uj", "262143328850\n"),
                                   ("constraint_0_power_limit_uw", "180000000\n"), ("constraint_0_time_window_us", "999424\n")):
                    write(path + "/" + file, text)
        write(self.sys + "/class/hwmon/hwmon0/name", "power_meter\n")
        write(self.sys + "/class/hwmon/hwmon0/power1_average", "395000000\n")
        write(self.sys + "/class/hwmon/hwmon0/power1_average_interval", "1000\n")
        adapter = self.sys + "/class/infiniband/mlx5_0"
        for file, text in (("fw_ver", "20.31.1014\n"), ("board_id", "MT_0000000223\n"), ("hca_type", "MT4123\n")):
            write(adapter + "/" + file, text)
        for file, text in (("state", "4: ACTIVE\n"), ("phys_state", "5: LinkUp\n"), ("rate", "200 Gb/sec (4X HDR)\n")):
            write(adapter + "/ports/1/" + file, text)
        for file in ("port_rcv_data port_xmit_data port_rcv_packets port_xmit_packets port_rcv_errors link_downed "
                     "port_xmit_wait symbol_error unicast_rcv_packets").split():
            write(adapter + "/ports/1/counters/" + file, "4711\n")
        for file in "out_of_sequence rx_write_requests rnr_nak_retry_err".split():
            write(adapter + "/ports/1/hw_counters/" + file, "17\n")
        for n in range(GPUS):
            device = self.sys + "/bus/pci/devices/0000:1%d:00.0" % n
            write(device + "/class", "0x030200\n")
            write(device + "/vendor", "0x10de\n")
        write(self.cgroup + "/cgroup.controllers", "cpuset cpu io memory pids rdma\n")
        os.makedirs(self.scope)

    def make_tools(self):
        write(self.bin + "/nvidia-smi", NVIDIA_SMI, 0o755)
        write(self.bin + "/ipmitool", IPMITOOL, 0o755)
        write(self.bin + "/rdma", RDMA, 0o755)

    def paths(self):
        return ["--path.procfs=" + self.proc, "--path.sysfs=" + self.sys, "--path.cgroupfs=" + self.cgroup,
                "--collector.cgroups.force-version=v2"]

    def flags(self):
        """The flags for all collectors of a SLURM node except perf, which depends on the kernel."""
        return self.paths() + [
            "--collector.slurm", "--collector.slurm.swap-memory-metrics", "--collector.slurm.psi-metrics", "--collector.rapl",
            "--collector.hwmon", "--collector.netdev", "--collector.infiniband", "--collector.energy", "--collector.ipmi_dcmi",
            "--collector.ipmi_dcmi.cmd=%s/ipmitool dcmi power reading" % self.bin, "--collector.redfish",
            "--collector.redfish.config.file=%s/redfish.yml" % self.root, "--collector.emissions",
            "--collector.emissions.provider=owid", "--collector.emissions.provider=global", "--collector.rdma.stats",
            "--collector.rdma.cmd=%s/rdma" % self.bin]

    def env(self):
        return {"PATH": self.bin + ":" + os.environ["PATH"]}

    def add_job(self):
        number, process = self.next_job, None
        self.next_job += 1
        if self.processes:
            process = subprocess.Popen(["sh", "-c", "while :; do sleep 1; done"], stdin=subprocess.DEVNULL)
            pid = process.pid
        else:
            pid = self.next_pid
            self.next_pid += 1
        home = "%s/%d" % (self.proc, pid)
        write(home + "/status", "Name:\twork\nUid:\t1000\t1000\t1000\t1000\n")
        write(home + "/cmdline", "/usr/bin/work\0")
        write(home + "/stat", "%d (work) S 1 %d %d 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 %d 1 1\n" % (pid, pid, pid, number))
        write(home + "/environ", "SLURM_JOB_ID=%d\0SLURM_JOB_GPUS=%d\0" % (number, number % GPUS))
        os.makedirs("%s/task/%d" % (home, pid))
        write(self.bin + "/rdma.pid", "%d\n" % pid)
        job = self.root + "/new_job"  # renamed into place at once, so that a count of jobs is reliable
        for name, text in FILES_OF_JOB.items():
            write(job + "/" + name, text)
        for step in STEPS:
            path = job
            for part in step.split("/"):
                path += "/" + part
                for name in ("cgroup.controllers", "cgroup.events"):
                    write(path + "/" + name, FILES_OF_JOB[name])
                write(path + "/cgroup.procs", "")
            write(path + "/cgroup.procs", "%d\n" % pid)
        os.rename(job, "%s/job_%d" % (self.scope, number))
        self.jobs[number] = (pid, process)
        return number

    def end_job(self, number):
        pid, process = self.jobs.pop(number)
        if process:
            process.kill()
            process.wait()
        shutil.rmtree("%s/%d" % (self.proc, pid))
        os.rename("%s/job_%d" % (self.scope, number), self.root + "/old_job")
        shutil.rmtree(self.root + "/old_job")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _pid, process in self.jobs.values():
            if process:
                process.kill()
                process.wait()
        self.bmc.__exit__()
