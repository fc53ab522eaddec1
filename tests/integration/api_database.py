"""Databases in the schema of CEEMS 0.10.2 with invented units, and an oracle for what callers of the API may see of them: an
independent implementation of docs/api/endpoints.md over plain rows, to compare with the server's responses."""

import calendar
import collections
import datetime
import functools
import json
import sqlite3
import time
import zoneinfo

METRICS = ["avg_cpu_usage", "avg_cpu_mem_usage", "total_cpu_energy_usage_kwh", "total_cpu_emissions_gms", "avg_gpu_usage",
           "avg_gpu_mem_usage", "total_gpu_energy_usage_kwh", "total_gpu_emissions_gms", "total_io_write_stats",
           "total_io_read_stats", "total_ingress_stats", "total_egress_stats"]
WEIGHTS = {"avg_cpu_usage": "alloc_cputime", "avg_cpu_mem_usage": "alloc_cpumemtime", "avg_gpu_usage": "alloc_gputime",
           "avg_gpu_mem_usage": "alloc_gpumemtime"}
MAPS = ["total_time_seconds"] + METRICS
UNIT_TEXTS = ["cluster_id", "resource_manager", "uuid", "name", "project", "groupname", "username", "created_at", "started_at",
              "ended_at", "elapsed", "state"]
UNIT_NUMBERS = ["created_at_ts", "started_at_ts", "ended_at_ts"]
USAGE_SCALARS = ["cluster_id", "resource_manager", "num_units", "project", "groupname", "username"]

METRIC_COLUMNS = ",".join(name + " text default '{}'" for name in MAPS)
USAGE_COLUMNS = ("id integer not null primary key, resource_manager text default '', cluster_id text, num_units integer, "
                 "project text, username text, groupname text, " + METRIC_COLUMNS +
                 ", num_updates integer default 0, last_updated_at text")
PEOPLE_COLUMNS = ("id integer not null primary key, uid text, cluster_id text, resource_manager text, name text, {0} text "
                  "default '[]', tags text default '[]', last_updated_at text")
SCHEMA = [
    "CREATE TABLE schema_migrations (version uint64, dirty bool)",
    "CREATE UNIQUE INDEX version_unique ON schema_migrations (version)",
    "INSERT INTO schema_migrations VALUES (9, 0)",
    "CREATE TABLE units (id integer not null primary key, resource_manager text default '', cluster_id text, uuid text, "
    "name text, project text, groupname text, username text, created_at text, started_at text, ended_at text, "
    "created_at_ts integer, started_at_ts integer, ended_at_ts integer, elapsed text, state text, allocation text "
    "default '{}', tags text default '{}', " + METRIC_COLUMNS +
    ", ignore integer, num_updates integer default 0, last_updated_at text)",
    "CREATE UNIQUE INDEX uq_cluster_id_uuid_start ON units (cluster_id, uuid, started_at)",
    "CREATE INDEX idx_cluster_id_usr_uuid ON units (cluster_id, username, uuid)",
    "CREATE INDEX idx_cluster_id_project_user_ended ON units (cluster_id, project, username, ended_at)",
    "CREATE TABLE usage (" + USAGE_COLUMNS + ")",
    "CREATE UNIQUE INDEX uq_cluster_id_project_usr ON usage (cluster_id, username, project)",
    "CREATE TABLE daily_usage (" + USAGE_COLUMNS + ")",
    "CREATE UNIQUE INDEX uq_cluster_id_project_usr_lastupdated ON daily_usage (cluster_id, username, project, "
    "last_updated_at)",
    "CREATE TABLE users (" + PEOPLE_COLUMNS.format("projects") + ")",
    "CREATE UNIQUE INDEX uq_cluster_id_user ON users (cluster_id, name)",
    "CREATE TABLE projects (" + PEOPLE_COLUMNS.format("users") + ")",
    "CREATE UNIQUE INDEX uq_cluster_id_project ON projects (cluster_id, name)",
    "CREATE TABLE admin_users (id integer not null primary key, uid text default '', cluster_id text default 'all', "
    "resource_manager text default '', name text, projects text default '[]', tags text default '[]', "
    "last_updated_at text)",
    "CREATE UNIQUE INDEX uq_cluster_id_admin_user ON admin_users (cluster_id, name)",
]


def local(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


@functools.lru_cache(None)
def epoch(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def local_z(seconds):
    return local(seconds) + "+0000"


def create(path):
    """Creates an empty database of CEEMS 0.10.2 (version 9) at `path` and opens it."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    for statement in SCHEMA:
        database.execute(statement)
    return database


def insert(database, table, rows):
    for columns, group in group_by_columns(rows).items():
        database.executemany("INSERT INTO %s (%s) VALUES (%s)" % (table, ",".join(columns), ",".join("?" * len(columns))),
                             [[encoded(row[name]) for name in columns] for row in group])


def group_by_columns(rows):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row), []).append(row)
    return groups


def encoded(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True) if isinstance(value, (dict, list)) else value


class World:
    """People and units on several clusters. Project names mean different things on different clusters, job IDs are reused, some
    owners are service accounts, and some names need escaping."""

    def __init__(self, rng, now, units=900):
        self.rng, self.now = rng, now
        self.clusters = {"hpc-a": "slurm", "hpc-b": "slurm", "cloud_c": "openstack", "k8s": "k8s"}
        self.admins = ["root1", "ceems-int-svc"]
        odd = ["o'hara", "zoë", "per%cent", "semi;colon", 'quo"te', "star*", "null", "a:svc", "U3"]
        self.names = ["u%d" % i for i in range(30)] + odd
        projects = ["p%d" % i for i in range(9)] + ["a b", "x&y=z", "p'1", "a"]
        self.projects, self.users = [], []
        for cluster, manager in self.clusters.items():
            of_user = collections.defaultdict(list)
            for name in projects:
                if rng.random() < 0.15:
                    continue
                members = rng.sample(self.names, rng.randrange(0, 6))
                if rng.random() < 0.2:
                    members.append(name + ":svc")
                self.projects.append({"uid": "", "cluster_id": cluster, "resource_manager": manager, "name": name,
                                      "users": members, "tags": [], "last_updated_at": local(now)})
                for member in members:
                    of_user[member].append(name)
            for name in dict.fromkeys(self.names + [name + ":svc" for name in projects]):
                if rng.random() < 0.9:
                    self.users.append({"uid": str(rng.randrange(5000)) if rng.random() < 0.5 else "", "cluster_id": cluster,
                                       "resource_manager": manager, "name": name, "projects": of_user[name],
                                       "tags": [], "last_updated_at": local(now)})
        # Project leads and support. One person is both, and one leads only projects that do not exist.
        self.support = ["u3", "o'hara"]
        self.led = {"u1": [("hpc-a", "p1"), ("cloud_c", "p2")], "u2": [("hpc-b", "p1")], "o'hara": [("k8s", "a b")],
                    "zoë": [("nowhere", "p1"), ("hpc-a", "x&y=z")]}
        self.units = [self.unit(projects) for _ in range(units)]
        keys = set()
        self.units = [u for u in self.units
                      if (key := (u["cluster_id"], u["uuid"], u["started_at"])) not in keys and not keys.add(key)]
        self.usage = self.sums(lambda unit: (unit["cluster_id"], unit["username"], unit["project"]))
        self.daily = self.sums(lambda unit: (unit["cluster_id"], unit["username"], unit["project"],
                                             unit["last_updated_at"][:10] + "T00:00:00"))
        self.members = collections.defaultdict(set)
        for project in self.projects:
            self.members[(project["cluster_id"], project["name"])] = set(project["users"])

    def maps(self):
        rng = self.rng
        times = {key: rng.choice([0, 1, 60, 3600, 12345.5]) for key in
                 ["walltime", "alloc_cputime", "alloc_cpumemtime", "alloc_gputime", "alloc_gpumemtime"]}
        maps = {"total_time_seconds": times}
        for name in METRICS:
            maps[name] = {key: rng.choice([0, 1, 50, 99.5, 1e-3, 2 ** 40]) for key in ["global", "total", "rte"]
                          if rng.random() < 0.4}
        return maps

    def unit(self, projects):
        rng, now = self.rng, self.now
        cluster = rng.choice(list(self.clusters))
        project = rng.choice(projects)
        owner = project + ":svc" if rng.random() < 0.15 else rng.choice(self.names)
        started = now - rng.randrange(60, 10 * 86400)
        kind = rng.random()
        ended = 0 if kind < 0.2 else min(now, started + rng.randrange(1, 86400))
        pending = kind < 0.05
        row = {"resource_manager": self.clusters[cluster], "cluster_id": cluster, "uuid": str(rng.randrange(1000, 1400)),
               "name": rng.choice(["job", "<script>", "tab\there", "naïve", ""]), "project": project,
               "groupname": rng.choice(["phys", "chem", ""]), "username": owner, "created_at": local_z(started - 60),
               "started_at": "Unknown" if pending else local_z(started),
               "ended_at": local_z(ended) if ended else rng.choice(["Unknown", "N/A"]),
               "created_at_ts": (started - 60) * 1000, "started_at_ts": 0 if pending else started * 1000,
               "ended_at_ts": ended * 1000, "elapsed": "00:01:00", "state": "COMPLETED" if ended else "RUNNING",
               "allocation": {"cpus": rng.randrange(1, 9)}, "tags": {"partition": "batch"},
               "ignore": 1 if rng.random() < 0.08 else 0, "num_updates": 1,
               "last_updated_at": local((ended or now) // 60 * 60)}
        row.update(self.maps())
        return row

    def sums(self, key_of):
        rows = {}
        for unit in self.units:
            key = key_of(unit)
            row = {"resource_manager": unit["resource_manager"], "cluster_id": unit["cluster_id"],
                   "num_units": self.rng.randrange(1, 100), "project": unit["project"], "username": unit["username"],
                   "groupname": unit["groupname"], "num_updates": 1,
                   "last_updated_at": key[3] if len(key) > 3 else unit["last_updated_at"]}
            row.update(self.maps())
            rows.setdefault(key, row)
        return list(rows.values())

    def write(self, path):
        database = create(path)
        with database:
            insert(database, "units", self.units)
            insert(database, "usage", self.usage)
            insert(database, "daily_usage", self.daily)
            insert(database, "users", self.users)
            insert(database, "projects", self.projects)
            insert(database, "admin_users", [{"name": name, "tags": ["ceems"], "last_updated_at": local(self.now)}
                                             for name in self.admins])
        database.close()


def byte_order(*names):
    return lambda row: [(row[name] or "").encode() for name in names]


class Oracle:
    """What the API must return, derived only from the rows and roles. Parameters are {name: [values]} without empty values."""

    def __init__(self, world):
        self.world = world
        self.units = sorted(world.units, key=byte_order("cluster_id", "uuid", "started_at"))

    def is_member(self, user, cluster, project):
        return user in self.world.members[(cluster, project)]

    def is_led(self, user, cluster, project):
        return (cluster, project) in self.world.led.get(user, [])

    @staticmethod
    def parts(params):
        """(whether own rows are requested, whether led rows are requested)"""
        scope = params.get("scope", [""])[0]
        return scope != "led", scope != "own"

    def is_service_of(self, caller, row_cluster, name, projects):
        return any(name == p + ":svc" and self.is_member(caller, row_cluster, p) for p in projects)

    @staticmethod
    def passes(row, params, column="project"):
        return all(not params.get(key) or row[name] in params[key]
                   for key, name in (("cluster_id", "cluster_id"), ("project", column)))

    def chosen_names(self, params):
        """The names to which `user` limits an admin endpoint; None for all."""
        users = params.get("user", [])
        return users + [p + ":svc" for p in params.get("project", [])] if users else None

    def visible_units(self, caller, admin, params, window):
        chosen = self.chosen_names(params) if admin else None
        for row in self.units:
            if row["ignore"] or not self.passes(row, params):
                continue
            if admin and chosen is not None and row["username"] not in chosen:
                continue
            if not admin and not self.is_callers(row, caller, params):
                continue
            if params.get("uuid"):
                if row["uuid"] not in params["uuid"]:
                    continue
            elif not (max(1, window[0] * 1000) <= row["ended_at_ts"] <= window[1] * 1000 or
                      ("running" in params and row["ended_at_ts"] == 0)):
                continue
            yield row

    def is_callers(self, row, caller, params):
        own, led = self.parts(params)
        return (own and (row["username"] == caller or self.is_service_of(
                    caller, row["cluster_id"], row["username"], params.get("project", []))) or
                led and self.is_led(caller, row["cluster_id"], row["project"]))

    def unit_json(self, row, caller, fields, timezone):
        if caller in self.world.support and row["username"] != caller and not self.is_led(
                caller, row["cluster_id"], row["project"]):
            fields = fields - {"name", "tags"}  # support may not see text that people write
        out = {}
        for name in UNIT_TEXTS:
            value = row[name] if name in fields else ""
            if timezone and name in ("created_at", "started_at", "ended_at") and name in fields and row[name + "_ts"] > 0:
                zone = zoneinfo.ZoneInfo(timezone)
                value = datetime.datetime.fromtimestamp(row[name + "_ts"] / 1000, zone).strftime("%Y-%m-%dT%H:%M:%S%z")
            if value or name == "uuid":
                out[name] = value
        for name in UNIT_NUMBERS:
            if name in fields and row[name]:
                out[name] = row[name]
        for name in MAPS + ["allocation", "tags"]:
            if name in fields and row[name]:
                out[name] = row[name]
        return out

    def usage_rows(self, rows, caller, admin, params):
        chosen = self.chosen_names(params) if admin else None
        for row in rows:
            if not self.passes(row, params):
                continue
            members = self.world.members[(row["cluster_id"], row["project"])]
            if admin and chosen is not None and not members.intersection(chosen):
                continue
            own, led = self.parts(params)
            if not admin and not (own and caller in members or led and self.is_led(caller, row["cluster_id"], row["project"])):
                continue
            yield row

    def global_usage(self, caller, admin, params, fields):
        rows = sorted(self.world.usage, key=byte_order("cluster_id", "username", "project"))
        for row in self.usage_rows(rows, caller, admin, params):
            yield usage_json(row, {name: row[name] for name in MAPS if row[name]}, row["num_units"], fields)

    def current_usage(self, caller, admin, params, fields, window):
        daily = "experimental" in params
        updated = [row for row in (self.world.daily if daily else self.world.units)
                   if window[0] <= epoch(row["last_updated_at"]) <= window[1]
                   and not ("__terminated" in params and not daily and row["ended_at_ts"] <= 0)]
        groups = {}
        for row in self.usage_rows(updated, caller, admin, params):
            key = tuple(row[name] for name in ("cluster_id", "username", "project"))
            key += tuple(row[name] if name in params.get("groupby", []) else "" for name in ("groupname", "resource_manager"))
            groups.setdefault(key, []).append(row)
        # The names are those of all units of the window, whoever owns them.
        keys = {name: sorted({k for row in updated if self.passes(row, params) for k in row[name]}) for name in MAPS}
        for _, rows in sorted(groups.items(), key=lambda item: [part.encode() for part in item[0]]):
            maps = {}
            for name in MAPS:
                if keys[name]:
                    maps[name] = {k: combined(rows, name, k) for k in keys[name]}
            count = sum(row["num_units"] for row in rows) if daily else len(rows)
            yield usage_json(rows[0], maps, count, fields)

    def users(self, caller, admin, params):
        chosen = self.chosen_names(params) if admin else None
        for row in sorted(self.world.users, key=byte_order("cluster_id", "name")):
            if params.get("cluster_id") and row["cluster_id"] not in params["cluster_id"]:
                continue
            if admin and chosen is not None and row["name"] not in chosen:
                continue
            if not admin and row["name"] != caller and not self.is_service_of(
                    caller, row["cluster_id"], row["name"], params.get("project", [])):
                continue
            out = {"cluster_id": row["cluster_id"], "resource_manager": row["resource_manager"], "name": row["name"]}
            out.update({name: row[name] for name in ("uid", "projects") if row[name]})
            yield out

    def projects(self, caller, admin, params):
        for row in sorted(self.world.projects, key=byte_order("cluster_id", "name")):
            if not row["users"] or not self.passes(row, params, "name"):
                continue
            own, led = self.parts(params)
            if admin or own and caller in row["users"] or led and self.is_led(caller, row["cluster_id"], row["name"]):
                yield {"cluster_id": row["cluster_id"], "resource_manager": row["resource_manager"], "name": row["name"],
                       "users": row["users"]}

    def may_verify(self, caller, params):
        clusters, uuids = params.get("cluster_id", []), set(params.get("uuid", []))
        if not clusters:
            return False
        if caller in self.world.admins:
            return True
        own = {row["uuid"] for row in self.units
               if row["cluster_id"] in clusters and (self.is_member(caller, row["cluster_id"], row["project"]) or
                                                     self.is_led(caller, row["cluster_id"], row["project"]))}
        return uuids <= own

    def stats(self, params, window):
        groups = collections.defaultdict(list)
        for row in self.units:
            if params.get("cluster_id") and row["cluster_id"] not in params["cluster_id"]:
                continue
            ended = row["ended_at_ts"]
            if window is None or ended == 0 or max(1, window[0] * 1000) <= ended <= window[1] * 1000:
                groups[row["cluster_id"]].append(row)
        for cluster, rows in sorted(groups.items()):
            running = sum(row["ended_at_ts"] == 0 for row in rows)
            yield {"cluster_id": cluster, "resource_manager": self.world.clusters[cluster], "num_units": len(rows),
                   "num_inactive_units": len(rows) - running, "num_active_units": running,
                   "num_projects": len({row["project"] for row in rows}),
                   "num_users": len({row["username"] for row in rows})}


def combined(rows, name, key):
    having = [row for row in rows if key in row[name]]
    if name not in WEIGHTS:
        return sum(row[name][key] for row in having)
    weights = [row["total_time_seconds"].get(WEIGHTS[name], 0) for row in having]
    total = sum(weights)
    return sum(row[name][key] * weight for row, weight in zip(having, weights)) / total if total > 0 else 0


def usage_json(row, maps, count, fields):
    out = {}
    for name in USAGE_SCALARS:
        if name == "num_units":
            out[name] = count if name in fields else 0
        else:
            out[name] = row[name] if name in fields else ""
    out.update({name: values for name, values in maps.items() if name in fields})
    return out


def same(seen, expected):
    """Whether both are equal, except that the server rounds numbers to 8 decimals."""
    if isinstance(expected, dict):
        return isinstance(seen, dict) and seen.keys() == expected.keys() and all(same(seen[k], expected[k]) for k in expected)
    if isinstance(expected, list):
        return isinstance(seen, list) and len(seen) == len(expected) and all(map(same, seen, expected))
    if isinstance(expected, float):
        return isinstance(seen, (int, float)) and abs(seen - expected) <= 1e-8 + 1e-12 * abs(expected)
    return seen == expected
