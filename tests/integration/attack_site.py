"""A site whose texts all carry marks that say whose they are, and the rules of docs/api/access.md of who may see which mark."""

import json
import re

from api_database import create, insert, local, local_z

CLUSTERS = ("hpc-a", "hpc-b")
# The members of projects. The same name means different people on the two clusters.
MEMBERS = {("hpc-a", "opt-zqp1"): ("ada-zqu1", "bea-zqu2"), ("hpc-a", "flu-zqp2"): ("cat-zqu3",), ("hpc-b", "opt-zqp1"): ("cat-zqu3",),
           ("hpc-b", "flu-zqp2"): ("ada-zqu1",), ("hpc-a", "pla-zqp3"): ("lea-zqu4",), ("hpc-a", "zen-zqp4"): ("dan-zqu5",),
           ("hpc-b", "zen-zqp4"): ("dan-zqu5",), ("hpc-b", "sup-zqp5"): ("sue-zqu6",), ("hpc-b", "adm-zqp6"): ("root-zqu7",)}
PEOPLE = sorted({name for names in MEMBERS.values() for name in names})
PROJECTS = sorted({project for _, project in MEMBERS})
SUPPORT, ADMIN = "sue-zqu6", "root-zqu7"
LED = {"lea-zqu4": {("hpc-a", "opt-zqp1")}, "sue-zqu6": {("hpc-b", "opt-zqp1")}, "root-zqu7": {("hpc-a", "flu-zqp2")}}
MARK = re.compile(rb"zq[a-z]\d+")
IDS = re.compile(r'\b(?:uuid|service_name)\s*(=~|=)\s*"((?:[^"\\]|\\.)*)"')
RUNS = 7


def holders():
    """(number, cluster, project, user) of each membership, by cluster. The number is in the marks of its units."""
    found = [(cluster, project, user) for (cluster, project), users in sorted(MEMBERS.items()) for user in users]
    return [(10 + i, *one) for i, one in enumerate(found)]


FIRST = {cluster: min(number for number, where, _, _ in holders() if where == cluster) for cluster in CLUSTERS}


def mark_of(text):
    return MARK.search(text.encode()).group()


class Site:
    def __init__(self, now):
        self.now = now
        self.units = [self.unit(*holder, run) for holder in holders() for run in range(RUNS)]
        self.owner = {}  # of texts by which units are asked for: all of (user, cluster, project)
        for unit in self.units:
            self.owner.setdefault(unit["uuid"], set()).add((unit["username"], unit["cluster_id"], unit["project"]))

    def unit(self, number, cluster, project, user, run):
        """The last run has not ended; some IDs are tasks of arrays, and of several people on different clusters."""
        now = self.now
        ended = 0 if run == RUNS - 1 else now - 3600 * (1 + 5 * run) - number
        started = (ended or now) - 1800
        uuid = "7100_%d" % (number - FIRST[cluster]) if run == 1 else "zqi%d-%d" % (number, run)
        gpus = 2 if run == 2 else 0
        wall = 1800
        row = {"resource_manager": "slurm", "cluster_id": cluster, "uuid": uuid, "name": "train-zqj%d-%d" % (number, run), "project": project,
               "groupname": "grp-zqg%d" % number, "username": user, "created_at": local_z(started - 60), "started_at": local_z(started),
               "ended_at": local_z(ended) if ended else "Unknown", "created_at_ts": (started - 60) * 1000, "started_at_ts": started * 1000,
               "ended_at_ts": ended * 1000, "elapsed": "00:30:00", "state": "COMPLETED" if ended else "RUNNING",
               "allocation": {"cpus": 16, "mem": 4 << 30, "gpus": gpus, "nodes": 1},
               "tags": {"partition": "gpu" if gpus else "cpu", "workdir": "/home/zqj%d" % number},
               "total_time_seconds": {"walltime": wall, "alloc_cputime": 16 * wall, "alloc_cpumemtime": 4096 * wall, "alloc_gputime": gpus * wall,
                                      "alloc_gpumemtime": gpus * wall},
               "avg_cpu_usage": {"global": 7.0}, "avg_cpu_mem_usage": {"global": 5.0}, "total_cpu_energy_usage_kwh": {"total": 0.3},
               "total_cpu_emissions_gms": {"owid_total": 20.0}, "ignore": 0, "num_updates": 1, "last_updated_at": local((ended or now) // 60 * 60)}
        if gpus:
            row.update(avg_gpu_usage={"global": 3.0}, total_gpu_energy_usage_kwh={"total": 0.4}, total_gpu_emissions_gms={"owid_total": 30.0})
        return row

    def write(self, path):
        database = create(path)
        with database:
            insert(database, "units", self.units)
            usage, daily = {}, {}
            for unit in self.units:
                sums = {name: unit[name] for name in ("resource_manager", "cluster_id", "project", "username", "groupname", "total_time_seconds",
                                                      "total_cpu_energy_usage_kwh", "last_updated_at")}
                sums.update(num_units=RUNS, num_updates=1)
                usage[unit["cluster_id"], unit["project"], unit["username"]] = sums
                day = sums["last_updated_at"][:10] + "T00:00:00"
                daily[unit["cluster_id"], unit["project"], unit["username"], day] = dict(sums, last_updated_at=day)
            insert(database, "usage", usage.values())
            insert(database, "daily_usage", daily.values())
            shared = {"resource_manager": "slurm", "tags": [], "last_updated_at": local(self.now)}
            for (cluster, project), users in MEMBERS.items():
                insert(database, "projects", [dict(shared, cluster_id=cluster, name=project, users=list(users))])
            for cluster in CLUSTERS:
                for user in PEOPLE:
                    mine = [project for (where, project), users in MEMBERS.items() if where == cluster and user in users]
                    if mine:
                        insert(database, "users", [dict(shared, cluster_id=cluster, name=user, projects=mine)])
        database.close()

    # What there is in the TSDB and in Pyroscope, which answer everything that they are asked.

    def selected(self, text):
        """The units that a query selects: by its IDs, or all; of one cluster if it names one."""
        ids = set()
        for test, value in IDS.findall(text):
            value = json.loads('"%s"' % value)
            ids |= {re.sub(r"\\(.)", r"\1", part) for part in value.split("|")} if test == "=~" else {value}
        clusters = [cluster for cluster in CLUSTERS if 'ceems_id="%s"' % cluster in text]
        return [unit for unit in self.units if (not ids or unit["uuid"] in ids) and (not clusters or unit["cluster_id"] in clusters)]

    def series(self, text):
        for i, unit in enumerate(self.selected(text)[:40]):
            mark = unit["name"].split("-")[1]
            yield {"uuid": unit["uuid"], "ceems_id": unit["cluster_id"], "hostname": "n%d" % (i % 3), "index": str(i % 2), "gpuuuid": "G-%d" % (i % 3),
                   "region": "reg-" + mark, "result": "res-" + mark, "fom": "fom-" + mark, "unit": "step", "domain": "node", "path": "/scratch/" + mark}

    def tsdb(self, path, query, _body):
        text = " ".join(query.get("query", []) + query.get("match[]", []))
        if path.endswith("/series"):
            data = list(self.series(text))
        elif path.endswith(("/labels", "/values")):
            data = sorted({labels["uuid"] for labels in self.series(text)})
        else:
            data = {"resultType": "vector", "result": [{"metric": labels, "value": [self.now, "17"]} for labels in self.series(text)]}
            if path.endswith("query_range"):
                first, last = float(query["start"][0]), float(query["end"][0])
                times = [first + (last - first) * i / 3 for i in range(4)]
                data = {"resultType": "matrix", "result": [{"metric": labels, "values": [[time, "17"] for time in times]}
                                                           for labels in self.series(text)]}
        return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()

    def profiles(self):
        return [({"service_name": unit["uuid"], "ceems_id": unit["cluster_id"], "__name__": "process_cpu"},
                 {"main_" + unit["name"]: 10, "loop": 20}, 30) for unit in self.units]


def sees(user, role="", led=()):
    """The marks that the caller may see anywhere: the widest rule of any endpoint. `role` is "support" or "admin", or empty."""
    marks = set()
    for number, cluster, project, owner in holders():
        everything = {b"zq%c%d" % (kind, number) for kind in b"ijg"}
        names = {mark_of(project), mark_of(owner)}
        if role == "admin" or owner == user or (cluster, project) in led:
            marks |= everything | names
        elif role == "support":
            marks |= names | {b"zqi%d" % number, b"zqg%d" % number}
        elif user in MEMBERS[cluster, project]:
            marks |= names | {b"zqg%d" % number}  # in usage, which is of all members
    for cluster, project in led:
        marks |= {mark_of(project)} | {mark_of(name) for name in MEMBERS[cluster, project]}
    return marks | {mark_of(user)} if MARK.search(user.encode()) else marks
