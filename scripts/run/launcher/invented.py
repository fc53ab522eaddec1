"""An invented cluster: nodes, jobs and their counters as functions of time, so that history and present fit together. Nothing of it is
measured; everything is the same again for the same origin."""

import math
import random

GIB = 1 << 30
MINUTE, HOUR, DAY = 60, 3600, 86400
CLUSTER = "demo"

# name, CPUs, GiB, GPUs, watts when nothing runs
NODES = (
    ("demo-c1", 64, 256, 0, 130.0), ("demo-c2", 64, 256, 0, 130.0), ("demo-c3", 64, 256, 0, 130.0), ("demo-c4", 64, 256, 0, 130.0),
    ("demo-g1", 64, 512, 4, 330.0), ("demo-g2", 64, 512, 4, 330.0),
)
GPU_BYTES = 80 * GIB
PROJECTS = {"demo-fluids": ("demo-user", "demo-ada"), "demo-ai": ("demo-user", "demo-lin"), "demo-genomics": ("demo-lin", "demo-grace")}


class Kind:
    """What jobs of one name are like. Shares are of what was reserved; `busy` and `sm` have a value for each GPU."""

    def __init__(self, name, user, project, cpus, gib, hours, limit, cpu, memory, busy=(), sm=0.0, state="COMPLETED", weight=2):
        self.name, self.user, self.project = name, user, project
        self.cpus, self.gib, self.hours, self.limit = cpus, gib, hours, limit
        self.cpu, self.memory, self.busy, self.sm, self.state, self.weight = cpu, memory, busy, sm, state, weight


KINDS = (
    Kind("channel-flow", "demo-user", "demo-fluids", 64, 200, (4, 9), 12, 0.96, 0.62, weight=4),
    Kind("wing-sweep-12", "demo-ada", "demo-fluids", 32, 128, (2, 6), 24, 0.91, 0.40, weight=3),
    Kind("post-process", "demo-user", "demo-fluids", 16, 200, (0.6, 2), 8, 0.0625, 0.04, weight=3),
    Kind("mesh-refine", "demo-ada", "demo-fluids", 32, 64, (0.5, 2), 4, 0.70, 0.99, state="OUT_OF_MEMORY", weight=1),
    Kind("align-genome", "demo-grace", "demo-genomics", 48, 128, (2, 7), 48, 0.55, 0.35, weight=3),
    Kind("assembly", "demo-lin", "demo-genomics", 32, 240, (6, 11), 11, 0.88, 0.85, state="TIMEOUT", weight=1),
    Kind("variant-calls", "demo-grace", "demo-genomics", 8, 32, (0.3, 1), 2, 0.93, 0.70, state="FAILED", weight=1),
    Kind("train-language-model", "demo-user", "demo-ai", 32, 256, (5, 10), 24, 0.45, 0.30, (0.92, 0.90, 0.0, 0.0), 0.55, weight=3),
    Kind("train-vision", "demo-lin", "demo-ai", 32, 128, (3, 8), 12, 0.60, 0.35, (0.95, 0.94, 0.95, 0.93), 0.62, weight=3),
    Kind("inference", "demo-lin", "demo-ai", 8, 64, (1, 4), 24, 0.30, 0.20, (0.11,), 0.05, weight=2),
    Kind("notebook", "demo-user", "demo-ai", 16, 128, (5, 9), 12, 0.004, 0.05, (0.0,), 0.0, state="CANCELLED by 1000", weight=2),
)


class Job:
    def __init__(self, identifier, kind, node, start, life, submit, state, shift):
        self.id, self.kind, self.node, self.start, self.end, self.submit = identifier, kind, node, start, start + life, submit
        self.state, self.shift = state, shift  # shift: of its waves, so that no two charts look the same
        self.idle_watts = 1.6 * kind.cpus + 45.0 * len(kind.busy)
        self.cpu = min(0.92, kind.cpu * (0.97 + 0.06 * shift))  # its waves reach all of them
        gpus = sum(kind.busy)
        self.gpu_watts = (45.0 * len(kind.busy), 260.0 * gpus)  # reserved, at work
        self.cpu_watts = (1.6 * kind.cpus, 4.2 * kind.cpus * self.cpu)

    def age(self, now):
        return max(0.0, min(now, self.end) - self.start)

    def work(self, age):
        """Seconds of work at a given age: the rate goes up and down around 1."""
        period = 900.0 + 1800.0 * self.shift
        turn = 2 * math.pi
        return age + 0.08 * period / turn * (1 - math.cos(turn * age / period))

    def joules(self, age):
        work = self.work(age)
        gpu = self.gpu_watts[0] * age + self.gpu_watts[1] * work
        cpu = self.cpu_watts[0] * age + self.cpu_watts[1] * work
        return {"node": cpu + gpu, "gpu": gpu, "package": 0.8 * cpu}

    def memory(self, age):
        share = self.kind.memory * (1 - math.exp(-age / 400.0))
        return self.kind.gib * GIB * share, self.kind.gib * GIB * share * 1.005

    def labels(self, more=""):
        return 'manager="slurm",hostname="%s",cgrouphostname="",uuid="%s"%s' % (self.node[0], self.id, more)

    def charts(self, now):
        """(series, value) of what is drawn over time."""
        age = self.age(now)
        seconds = self.kind.cpus * self.cpu * self.work(age)
        yield "ceems_compute_unit_cpu_user_seconds_total{%s}" % self.labels(), 0.96 * seconds
        yield "ceems_compute_unit_cpu_system_seconds_total{%s}" % self.labels(), 0.04 * seconds
        for domain, joules in self.joules(age).items():
            if domain != "gpu" or self.kind.busy:
                yield "ceems_compute_unit_energy_joules_total{%s}" % self.labels(',domain="%s"' % domain), joules

    def gauges(self, now):
        """(series, value) of what is averaged over time."""
        age = self.age(now)
        yield "ceems_compute_unit_memory_used_bytes{%s}" % self.labels(), self.memory(age)[0] * (1 - 0.03 * math.sin(age / 300.0) ** 2)
        if self.kind.busy:
            yield "uuid:ceems_gpu_usage:ratio{%s}" % self.labels(), 100 * sum(self.kind.busy) / len(self.kind.busy)

    def totals(self, now):
        """(series, value) of what lists and reports need besides."""
        kind, age = self.kind, self.age(now)
        unused = self.cpu_watts[0] * (1 - self.cpu) + 45.0 * sum(1 - busy for busy in kind.busy)
        for domain, joules in (("node", unused * age), ("gpu", 45.0 * sum(1 - busy for busy in kind.busy) * age)):
            if domain != "gpu" or kind.busy:
                yield "ceems_compute_unit_idle_energy_joules_total{%s}" % self.labels(',domain="%s"' % domain), joules
        yield "ceems_compute_unit_memory_total_bytes{%s}" % self.labels(), kind.gib * GIB
        yield "ceems_compute_unit_memory_peak_bytes{%s}" % self.labels(), self.memory(age)[1]
        yield "ceems_compute_unit_cpu_used_max{%s}" % self.labels(), min(kind.cpus, max(1.0, 1.05 * kind.cpus * self.cpu)) if age else 0
        yield "ceems_compute_unit_idle_seconds_total{%s}" % self.labels(), 0.995 * age if self.cpu < 0.01 else 0
        for index, busy in enumerate(kind.busy):
            labels = self.labels(',index="%d",gpuuuid="GPU-%s-%d",gpuiid=""' % (index, self.node[0], index))
            yield "ceems_compute_unit_gpu_busy_seconds_total{%s}" % labels, busy * age
            yield "ceems_compute_unit_gpu_sm_seconds_total{%s}" % labels, (kind.sm if busy else 0) * age
            yield "ceems_compute_unit_gpu_memory_peak_bytes{%s}" % labels, GPU_BYTES * (0.7 if busy > 0.5 else 0.1 if busy else 0.005)

    def present(self):
        """The series that says that the job was measured at this moment."""
        return "ceems_compute_unit_cpus{%s}" % self.labels(), self.kind.cpus


def facts(node):
    """(series, value) that a machine has at all times."""
    name, cpus, gib, gpus, _ = node
    yield 'ceems_cpu_count{hostname="%s"}' % name, cpus
    yield 'ceems_meminfo_MemTotal_bytes{hostname="%s"}' % name, gib * GIB
    yield 'ceems_energy_source_info{hostname="%s",domain="node",source="invented",method="modelled"}' % name, 1
    for index in range(gpus):
        yield 'ceems_gpu_memory_total_bytes{hostname="%s",index="%d",gpuuuid="GPU-%s-%d",gpuiid=""}' % (name, index, name, index), GPU_BYTES


def jobs_of(number, origin, until):
    """The jobs of a node from `origin` on, one after the other, up to the first that starts after `until`. One job at a time."""
    node = NODES[number]
    dice = random.Random("%s %d" % (node[0], origin))
    kinds = [kind for kind in KINDS if bool(kind.busy) == bool(node[3])]
    jobs, at = [], origin + dice.uniform(0, 2 * HOUR)
    while at <= until:
        kind = dice.choices(kinds, [kind.weight for kind in kinds])[0]
        life = int(HOUR * min(kind.limit, dice.uniform(*kind.hours)))
        if kind.state == "TIMEOUT":
            life = kind.limit * HOUR
        state = kind.state if kind.state != "FAILED" or dice.random() < 0.5 else "COMPLETED"
        wait = int(dice.expovariate(1 / (12.0 * MINUTE)))
        identifier = "%d%d%03d" % (origin // DAY % 1000, number + 1, len(jobs) + 1)
        jobs.append(Job(identifier, kind, node, int(at), life, int(at) - wait, state, dice.random()))
        at += life + dice.uniform(10 * MINUTE, 5 * HOUR)
    return jobs


def node_series(number, jobs, origin, now):
    """(series, value) of a machine. Its energy is exactly that of its jobs and of what no job had reserved."""
    node = NODES[number]
    name, cpus, gib, gpus, watts = node
    running = [job for job in jobs if job.start <= now < job.end]
    ended = sum(job.joules(job.end - job.start)["node"] for job in jobs if job.end <= now)
    current = sum(job.joules(job.age(now))["node"] for job in running)
    free = watts * (now - origin) - sum(job.idle_watts * job.age(now) for job in jobs if job.start <= now)
    seconds = sum(job.kind.cpus * job.cpu * job.work(job.age(now)) for job in jobs if job.start <= now)
    host = 'hostname="%s"' % name
    yield from facts(node)
    yield "ceems_compute_units{%s}" % host, len(running)
    yield 'ceems_cpu_seconds_total{%s,mode="user"}' % host, seconds
    yield 'ceems_cpu_seconds_total{%s,mode="idle"}' % host, cpus * (now - origin) - seconds
    yield "ceems_meminfo_MemAvailable_bytes{%s}" % host, gib * GIB * 0.97 - sum(job.memory(job.age(now))[0] for job in running) * 0.95
    yield 'ceems_unallocated_energy_joules_total{%s,domain="node"}' % host, free
    yield 'ceems_ended_units_energy_joules_total{%s,domain="node"}' % host, ended
    yield 'ceems_node_energy_joules_total{%s,domain="node",source="invented"}' % host, free + ended + current
    for index in range(gpus):
        busy = [job.kind.busy[index] for job in running if index < len(job.kind.busy)]
        yield 'ceems_gpu_utilization_ratio{%s,index="%d",gpuuuid="GPU-%s-%d",gpuiid=""}' % (host, index, name, index), busy[0] if busy else 0
