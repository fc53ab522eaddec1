"""An invented cluster: nodes, jobs and their counters as functions of time, so that history and present fit together. Nothing of it is
measured; everything is the same again for the same origin."""

import bisect
import functools
import heapq
import math
import random

GIB = 1 << 30
MINUTE, HOUR, DAY = 60, 3600, 86400
CLUSTER = "demo"

# name, CPUs, GiB, GPUs, watts when nothing runs, how the node says that it knows its energy. The names begin with the rack.
NODES = (
    *(("demo-r1-n%02d" % n, 64, 256, 0, 130.0, "measured") for n in range(1, 9)),
    *(("demo-r2-n%02d" % n, 64, 256, 0, 130.0, "modelled") for n in range(1, 9)),
    *(("demo-r3-g%d" % n, 64, 512, 4, 330.0, "measured") for n in range(1, 9)),
)
SLOW = "demo-r1-n06"  # lags behind the other nodes of a job
HOT = ("demo-r3-g6", 2)  # a GPU that lowers its clock when it works
GPU_BYTES = 80 * GIB
GPU_IDLE_WATTS, GPU_WORK_WATTS, GPU_LIMIT_WATTS = 45.0, 260.0, 350.0
PROJECTS = {
    "demo-fluids": ("demo-user", "demo-ada", "demo-emmy"), "demo-ai": ("demo-user", "demo-lin", "demo-noor"),
    "demo-genomics": ("demo-lin", "demo-grace", "demo-paul"), "demo-climate": ("demo-mary", "demo-alan"),
}
# provider, country, mean g/kWh, how much of it the sun saves at noon, cluster of the series: the second zone is a neighbour's
ZONES = (("demo-north", "XN", 210.0, 0.55, CLUSTER), ("demo-south", "XS", 380.0, 0.25, "demo-neighbour"))
SERVICES = (("storage", 900.0), ("network", 350.0), ("service", 450.0))  # watts of everything but compute nodes and cooling


class Kind:
    """What jobs of one name are like, on each of their nodes. Shares are of what was reserved; `busy` and `sm` have a value for each
    GPU; `read` and `write` are bytes per second."""

    def __init__(self, name, user, project, cpus, gib, hours, limit, cpu, memory, busy=(), sm=0.0, state="COMPLETED", weight=2, nodes=1, tasks=1,
                 wave=0.05, ipc=1.4, read=2e6, write=1e6, waits=0.0, result=None):
        self.name, self.user, self.project = name, user, project
        self.cpus, self.gib, self.hours, self.limit = cpus, gib, hours, limit
        self.cpu, self.memory, self.busy, self.sm, self.state, self.weight = cpu, memory, busy, sm, state, weight
        self.nodes, self.tasks = nodes, tasks  # tasks: of a job array
        self.wave, self.ipc, self.read, self.write, self.waits = wave, ipc, read, write, waits  # waits: for memory
        self.result = result  # (name, seconds of work for each) of jobs that mark what they do


KINDS = (
    Kind("channel-flow", "demo-user", "demo-fluids", 64, 200, (4, 9), 12, 0.92, 0.62, weight=2, nodes=4, ipc=0.9, write=9e7, result=("step", 4.0)),
    Kind("wing-sweep", "demo-ada", "demo-fluids", 32, 128, (2.1, 5), 24, 0.88, 0.40, weight=1, tasks=6, ipc=1.1),
    Kind("post-process", "demo-user", "demo-fluids", 16, 200, (2.1, 4), 8, 0.0625, 0.04, weight=3, read=2.4e8),
    Kind("mesh-refine", "demo-emmy", "demo-fluids", 32, 64, (0.5, 2), 4, 0.70, 0.99, state="OUT_OF_MEMORY", weight=1, waits=0.12),
    Kind("ocean-model", "demo-mary", "demo-climate", 64, 128, (6, 12), 24, 0.90, 0.55, weight=1, nodes=8, ipc=1.0, write=6e7),
    Kind("downscale", "demo-alan", "demo-climate", 48, 160, (2.1, 5), 12, 0.81, 0.50, weight=3, read=8e7),
    Kind("align-genome", "demo-grace", "demo-genomics", 48, 128, (2.1, 7), 48, 0.55, 0.35, weight=3, wave=0.3, read=1.5e8),
    Kind("assembly", "demo-lin", "demo-genomics", 32, 240, (6, 11), 11, 0.88, 0.85, state="TIMEOUT", weight=1, waits=0.02),
    Kind("variant-calls", "demo-paul", "demo-genomics", 8, 32, (0.3, 1), 2, 0.90, 0.70, state="FAILED", weight=2),
    Kind("train-language-model", "demo-user", "demo-ai", 32, 256, (5, 10), 24, 0.45, 0.30, (0.92, 0.90, 0.0, 0.0), 0.55, weight=3, read=4e8),
    Kind("train-vision", "demo-lin", "demo-ai", 32, 128, (3, 8), 12, 0.60, 0.35, (0.94, 0.93, 0.94, 0.92), 0.62, weight=3, read=6e8,
         result=("batch", 0.25)),
    Kind("pretrain", "demo-noor", "demo-ai", 64, 400, (8, 14), 24, 0.35, 0.45, (0.95, 0.95, 0.95, 0.95), 0.81, weight=1, nodes=2, read=3e8, write=5e7),
    Kind("inference", "demo-noor", "demo-ai", 8, 64, (2.1, 5), 24, 0.30, 0.20, (0.11,), 0.05, weight=2, wave=0.8),
    Kind("notebook", "demo-user", "demo-ai", 16, 128, (5, 9), 12, 0.004, 0.05, (0.0,), 0.0, state="CANCELLED by 1000", weight=2, wave=0.8),
)


class Job:
    def __init__(self, kind, nodes, start, life, submit, state, shift, task=None):
        self.kind, self.nodes, self.start, self.end, self.submit = kind, nodes, start, start + life, submit
        self.state, self.shift = state, shift  # shift: of its waves, so that no two charts look the same
        self.task = task  # (first job of the array, number) of a task
        self.id = None
        self.idle_watts = 1.6 * kind.cpus + GPU_IDLE_WATTS * len(kind.busy)  # on each node
        self.cpus, self.gpu_work = {}, {}
        for node in nodes:
            slow = 0.55 if node[0] == SLOW and len(nodes) > 1 else 1.0
            self.cpus[node[0]] = kind.cpu * (0.97 + 0.06 * shift) * slow  # busy part of what is reserved
            self.gpu_work[node[0]] = [busy * (0.6 if (node[0], i) == HOT else 1.0) for i, busy in enumerate(kind.busy)]

    def shown_id(self):
        return "%s_%d" % (self.task[0].id, self.task[1]) if self.task else self.id

    def age(self, now):
        return max(0.0, min(now, self.end) - self.start)

    def rate(self, now):
        """Of its work at this moment, around 1."""
        return 1 + self.kind.wave * math.sin(2 * math.pi * self.age(now) / (900.0 + 1800.0 * self.shift))

    def work(self, age):
        """Seconds of work at a given age: the integral of the rate."""
        period = (900.0 + 1800.0 * self.shift) / (2 * math.pi)
        return age + self.kind.wave * period * (1 - math.cos(age / period))

    def joules(self, age, node):
        """On one of its nodes. The domain `node` is the sum of the others."""
        work = self.work(age)
        gpu = GPU_IDLE_WATTS * len(self.kind.busy) * age + GPU_WORK_WATTS * sum(self.gpu_work[node[0]]) * work
        cpu = 1.6 * self.kind.cpus * age + 4.2 * self.kind.cpus * self.cpus[node[0]] * work
        return {"node": cpu + gpu, "gpu": gpu, "package": 0.8 * cpu, "dram": 0.12 * cpu, "other": 0.08 * cpu}

    def memory(self, age):
        share = self.kind.memory * (1 - math.exp(-age / 400.0))
        return self.kind.gib * GIB * share, self.kind.gib * GIB * share * 1.005

    @functools.lru_cache(None)
    def series(self, name, node, more=""):
        return 'ceems_%s{manager="slurm",hostname="%s",cgrouphostname="",uuid="%s"%s}' % (name, node[0], self.id, more)

    def charts(self, now, node):
        """(series, value) of what is drawn over time and added up."""
        age = self.age(now)
        seconds = self.kind.cpus * self.cpus[node[0]] * self.work(age)
        yield self.series("compute_unit_cpu_user_seconds_total", node), 0.96 * seconds
        yield self.series("compute_unit_cpu_system_seconds_total", node), 0.04 * seconds
        for domain, joules in self.joules(age, node).items():
            if domain != "gpu" or self.kind.busy:
                yield self.series("compute_unit_energy_joules_total", node, ',domain="%s"' % domain), joules
        for index, busy in enumerate(self.kind.busy):
            labels = ',index="%d",gpuuuid="GPU-%s-%d",gpuiid=""' % (index, node[0], index)
            sm = self.kind.sm * self.gpu_work[node[0]][index] / busy if busy else 0
            yield self.series("compute_unit_gpu_busy_seconds_total", node, labels), busy * self.work(age)
            yield self.series("compute_unit_gpu_sm_seconds_total", node, labels), sm * self.work(age)

    def lines(self, now, node):
        """(series, value) of further charts."""
        kind, age = self.kind, self.age(now)
        work = self.work(age)
        seconds = kind.cpus * self.cpus[node[0]] * work
        traffic = 9e8 if kind.nodes > 1 else 4e5
        for name, value in (("ebpf_read_bytes_total", kind.read * work), ("ebpf_write_bytes_total", kind.write * work),
                            ("ebpf_ingress_bytes_total", traffic * work), ("ebpf_egress_bytes_total", 0.97 * traffic * work),
                            ("compute_unit_cpu_psi_seconds", 0.004 * work), ("compute_unit_memory_psi_seconds", kind.waits * work),
                            ("perf_cpucycles_total", 2.6e9 * seconds), ("perf_instructions_total", 2.6e9 * kind.ipc * seconds)):
            yield self.series(name, node, ',mountpoint="/scratch"' if name[:6] == "ebpf_r" or name[:6] == "ebpf_w" else ""), value
        for index, busy in enumerate(kind.busy):
            labels = ',index="%d",gpuuuid="GPU-%s-%d",gpuiid=""' % (index, node[0], index)
            yield self.series("compute_unit_gpu_index_flag", node, labels), 1
            yield self.series("compute_unit_gpu_memory_used_bytes", node, labels), GPU_BYTES * (
                (0.62 if busy > 0.5 else 0.08) * (1 - math.exp(-age / 200.0)) if busy else 0.005)

    def gauges(self, now, node):
        """(series, value) of what is averaged over time."""
        age = self.age(now)
        yield self.series("compute_unit_memory_used_bytes", node), self.memory(age)[0] * (1 - 0.03 * math.sin(age / 300.0) ** 2)
        if self.kind.busy:
            yield "uuid:" + self.series("gpu_usage:ratio", node), 100 * sum(self.kind.busy) / len(self.kind.busy)

    def reserved(self, now, node):
        """(series, value) of what the days of nodes are made of."""
        idle = sum(joules for domain, joules, _ in self.unused(self.age(now), node) if domain != "gpu" or self.kind.busy)
        yield self.series("compute_unit_idle_energy_joules_total", node, ',domain="node"'), idle

    def present(self, _, node):
        """The series that says that the job was measured at this moment."""
        yield self.series("compute_unit_cpus", node), self.kind.cpus

    def unused(self, age, node):
        """Idle energy of what was reserved, and the part of what was not used of it, by domain."""
        kind = self.kind
        for domain, watts, used in (("gpu", GPU_IDLE_WATTS * len(kind.busy), sum(kind.busy) / max(len(kind.busy), 1)),
                                    ("package", 1.28 * kind.cpus, self.cpus[node[0]]), ("other", 0.128 * kind.cpus, self.cpus[node[0]]),
                                    ("dram", 0.192 * kind.cpus, kind.memory)):
            yield domain, watts * age, watts * age * (1 - used)

    def totals(self, now, node):
        """(series, value) of what lists and reports need besides."""
        kind, age = self.kind, self.age(now)
        parts = [part for part in self.unused(age, node) if part[0] != "gpu" or kind.busy]
        for domain, idle, unused in parts:
            yield self.series("compute_unit_idle_energy_joules_total", node, ',domain="%s"' % domain), idle
            yield self.series("compute_unit_unused_idle_energy_joules_total", node, ',domain="%s"' % domain), unused
        yield self.series("compute_unit_unused_idle_energy_joules_total", node, ',domain="node"'), sum(part[2] for part in parts)
        yield self.series("compute_unit_memory_total_bytes", node), kind.gib * GIB
        yield self.series("compute_unit_memory_peak_bytes", node), self.memory(age)[1]
        yield self.series("compute_unit_cpu_used_max", node), min(kind.cpus, max(1.0, 1.05 * kind.cpus * self.cpus[node[0]])) if age else 0
        yield self.series("compute_unit_idle_seconds_total", node), 0.995 * age if kind.cpu < 0.01 else 0
        for index, busy in enumerate(kind.busy):
            labels = ',index="%d",gpuuuid="GPU-%s-%d",gpuiid=""' % (index, node[0], index)
            yield self.series("compute_unit_gpu_memory_peak_bytes", node, labels), GPU_BYTES * (0.7 if busy > 0.5 else 0.1 if busy else 0.005)
        if kind.result:
            yield from self.marks(age, node)

    def marks(self, age, node):
        """(series, value) of a job that marks what it does: it reads for a while, then it solves. One of its nodes counts results."""
        life = self.end - self.start
        read = 0.06 * life * (1.1 if node[0] == SLOW else 1.0)
        for region, begin, end in (("read", 0.0, read), ("solve", read, life)):
            if age <= begin:
                continue
            labels, until = ',region="%s"' % region, min(age, end)
            before, joules = self.joules(begin, node), self.joules(until, node)
            yield self.series("compute_unit_region_seconds_total", node, labels), until - begin
            yield self.series("compute_unit_region_count_total", node, labels), int(age >= end)
            yield self.series("compute_unit_region_self_energy_joules_total", node, labels), joules["node"] - before["node"]
            for domain in joules:
                if domain != "gpu" or self.kind.busy:
                    yield self.series("compute_unit_region_energy_joules_total", node, '%s,domain="%s"' % (labels, domain)), joules[domain] - before[domain]
        if node == self.nodes[0]:
            name, seconds = self.kind.result
            done = self.work(age) - self.work(min(age, read))
            yield self.series("compute_unit_results_total", node, ',result="%s",unit=""' % name), int(done / seconds)


def facts(node):
    """(series, value) that a machine has at all times."""
    name, cpus, gib, _, _, method = node
    yield 'ceems_cpu_count{hostname="%s"}' % name, cpus
    yield 'ceems_meminfo_MemTotal_bytes{hostname="%s"}' % name, gib * GIB
    yield 'ceems_energy_source_info{hostname="%s",domain="node",source="invented",method="%s"}' % (name, method), 1


def jobs_of(origin, until):
    """The jobs that start from `origin` until `until`, in this order. A node has one job at a time; a job waits for its nodes."""
    jobs = []
    for partition, gpus in (("cpu", 0), ("gpu", 4)):
        dice = random.Random("%s %d" % (partition, origin))
        kinds = [kind for kind in KINDS if bool(kind.busy) == bool(gpus)]
        free = sorted((origin + dice.uniform(0, 2 * HOUR), number) for number, node in enumerate(NODES) if node[3] == gpus)
        while free[0][0] <= until:
            kind = dice.choices(kinds, [kind.weight for kind in kinds])[0]
            submit, first = None, None
            for task in range(1, kind.tasks + 1):
                taken = [heapq.heappop(free) for _ in range(kind.nodes)]
                start = int(taken[-1][0])
                submit = submit or start - int(dice.expovariate(1 / (12.0 * MINUTE)))
                life = int(HOUR * (kind.limit if kind.state == "TIMEOUT" else min(kind.limit, dice.uniform(*kind.hours))))
                state = kind.state if kind.state != "FAILED" or dice.random() < 0.5 else "COMPLETED"
                job = Job(kind, [NODES[number] for number in sorted(number for _, number in taken)], start, life, submit, state, dice.random())
                first = first or job
                job.task = (first, task) if kind.tasks > 1 else None
                jobs.append(job)
                for _, number in taken:
                    heapq.heappush(free, (start + life + dice.uniform(10 * MINUTE, 3 * HOUR), number))
    jobs = sorted((job for job in jobs if job.start <= until), key=lambda job: (job.start, job.nodes[0][0]))
    for number, job in enumerate(jobs):
        job.id = str(4_200_001 + number)
    return jobs


class Machine:
    """A node since a moment. Its energy is exactly that of its jobs and of what no job had reserved."""

    def __init__(self, node, jobs, since):
        self.node, self.jobs, self.since = node, jobs, since
        self.starts = [job.start for job in jobs]
        self.ended = [(0.0, 0.0, 0.0)]  # sums of the first jobs: joules, joules when they do nothing, seconds of CPUs
        for job in jobs:
            self.ended.append(tuple(a + b for a, b in zip(self.ended[-1], self._of(job, job.end))))

    def _of(self, job, now):
        age, before, name = job.age(now), job.age(self.since), self.node[0]
        return (job.joules(age, self.node)["node"] - job.joules(before, self.node)["node"], job.idle_watts * (age - before),
                job.kind.cpus * job.cpus[name] * (job.work(age) - job.work(before)))

    def running(self, now):
        """The job that runs, or None, and how many have started before it."""
        count = bisect.bisect_right(self.starts, now)
        if count and now < self.jobs[count - 1].end:
            return self.jobs[count - 1], count - 1
        return None, count

    def energy(self, now):
        """(series, value) of its counters of energy."""
        job, count = self.running(now)
        joules, reserved, _ = self._of(job, now) if job else (0.0, 0.0, 0.0)
        ended, before, _ = self.ended[count]
        free = self.node[4] * (now - self.since) - before - reserved
        host = 'hostname="%s",domain="node"' % self.node[0]
        yield "ceems_unallocated_energy_joules_total{%s}" % host, free
        yield "ceems_ended_units_energy_joules_total{%s}" % host, ended
        yield 'ceems_node_energy_joules_total{%s,source="invented"}' % host, free + ended + joules

    def use(self, now):
        """(series, value) of the rest of the machine."""
        name, cpus, gib, *_ = self.node
        job, count = self.running(now)
        seconds = self.ended[count][2] + (self._of(job, now)[2] if job else 0)
        used = job.memory(job.age(now))[0] if job else 0
        host = 'hostname="%s"' % name
        yield from facts(self.node)
        yield "ceems_compute_units{%s}" % host, int(job is not None)
        yield 'ceems_cpu_seconds_total{%s,mode="user"}' % host, seconds
        yield 'ceems_cpu_seconds_total{%s,mode="idle"}' % host, cpus * (now - self.since) - seconds
        yield "ceems_meminfo_MemAvailable_bytes{%s}" % host, gib * GIB * 0.97 - used * 0.95

    def gpus(self, now):
        """(series, value) of the devices; their watts are those of the energy of the job."""
        name = self.node[0]
        job, _ = self.running(now)
        for index in range(self.node[3]):
            busy = job.kind.busy[index] if job and index < len(job.kind.busy) else 0.0
            work = job.gpu_work[name][index] * job.rate(now) if busy else 0.0
            labels = 'hostname="%s",index="%d",gpuuuid="GPU-%s-%d",gpuiid=""' % (name, index, name, index)
            clock = 2.1e8 if not busy else 1.11e9 if (name, index) == HOT else 1.98e9
            yield "ceems_gpu_utilization_ratio{%s}" % labels, busy * job.rate(now) if busy else 0
            yield "ceems_gpu_power_watts{%s}" % labels, GPU_IDLE_WATTS + GPU_WORK_WATTS * work
            yield "ceems_gpu_power_limit_watts{%s}" % labels, GPU_LIMIT_WATTS
            yield "ceems_gpu_memory_total_bytes{%s}" % labels, GPU_BYTES
            yield 'ceems_gpu_clock_hertz{%s,clock="graphics"}' % labels, clock


def intensity(zone, now):
    """Grams per kWh: low at noon, high in the evening, and not the same every day."""
    _, _, mean, sun, _ = next(one for one in ZONES if one[0] == zone)
    hour = now % DAY / HOUR
    weather = 0.75 + 0.25 * math.sin(now / (2.3 * DAY) + mean)
    noon = max(0.0, math.cos((hour - 12.5) / 24 * 2 * math.pi)) ** 1.5
    evening = math.exp(-((hour - 19.0) / 2.2) ** 2)
    return mean * (1 - sun * weather * noon + 0.3 * evening)


def grid_series(now):
    """(series, value) of the carbon intensity of the zones."""
    for zone, country, _, _, cluster in ZONES:
        yield 'ceems_emissions_gCo2_kWh{provider="%s",country_code="%s",ceems_id="%s"}' % (zone, country, cluster), intensity(zone, now)


def cooling_watts(now):
    """More in the afternoon."""
    return 1700.0 + 450.0 * math.cos((now % DAY / HOUR - 15.0) / 24 * 2 * math.pi)


def site_series(now):
    """(series, value) of what draws power beside the nodes."""
    for role, watts in SERVICES:
        yield 'demo_pdu_power_watts{role="%s"}' % role, watts
    yield 'demo_chiller_power_watts{role="cooling"}', cooling_watts(now)
