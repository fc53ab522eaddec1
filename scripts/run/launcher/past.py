"""The months before the invented cluster was measured: sums of days in a database as CEEMS 0.10.2 leaves it, which the API server takes
over at its start."""

import json
import os
import sqlite3
import time

from . import invented
from .invented import DAY

KWH = 3.6e6
WORLD = 445.0  # g/kWh, as the API server has it for `global`
MAPS = ("total_time_seconds", "avg_cpu_usage", "avg_cpu_mem_usage", "total_cpu_energy_usage_kwh", "total_cpu_emissions_gms", "avg_gpu_usage",
        "avg_gpu_mem_usage", "total_gpu_energy_usage_kwh", "total_gpu_emissions_gms", "total_io_write_stats", "total_io_read_stats",
        "total_ingress_stats", "total_egress_stats")
METRICS = ", ".join(name + " text default '{}'" for name in MAPS)
USAGE = ("(id integer not null primary key, resource_manager text default '', cluster_id text, num_units integer, project text, username text, "
         "groupname text, %s, num_updates integer default 0, last_updated_at text)" % METRICS)
PEOPLE = ("(id integer not null primary key, uid text default '', cluster_id text, resource_manager text default '', name text, "
          "%s text default '[]', tags text default '[]', last_updated_at text)")
SCHEMA = """
CREATE TABLE schema_migrations (version uint64, dirty bool);
CREATE UNIQUE INDEX version_unique ON schema_migrations (version);
INSERT INTO schema_migrations VALUES (9, 0);
CREATE TABLE units (id integer not null primary key, resource_manager text default '', cluster_id text, uuid text, name text, project text,
  groupname text, username text, created_at text, started_at text, ended_at text, created_at_ts integer, started_at_ts integer,
  ended_at_ts integer, elapsed text, state text, allocation text default '{}', tags text default '{}', METRICS, ignore integer,
  num_updates integer default 0, last_updated_at text);
CREATE UNIQUE INDEX uq_cluster_id_uuid_start ON units (cluster_id, uuid, started_at);
CREATE INDEX idx_cluster_id_usr_uuid ON units (cluster_id, username, uuid);
CREATE INDEX idx_cluster_id_project_user_ended ON units (cluster_id, project, username, ended_at);
CREATE TABLE usage USAGE;
CREATE UNIQUE INDEX uq_cluster_id_project_usr ON usage (cluster_id, username, project);
CREATE TABLE daily_usage USAGE;
CREATE UNIQUE INDEX uq_cluster_id_project_usr_lastupdated ON daily_usage (cluster_id, username, project, last_updated_at);
CREATE TABLE users PROJECTS;
CREATE UNIQUE INDEX uq_cluster_id_user ON users (cluster_id, name);
CREATE TABLE projects USERS;
CREATE UNIQUE INDEX uq_cluster_id_project ON projects (cluster_id, name);
CREATE TABLE admin_users PROJECTS;
CREATE UNIQUE INDEX uq_cluster_id_admin_user ON admin_users (cluster_id, name);
""".replace("USAGE", USAGE).replace("METRICS", METRICS).replace("PROJECTS", PEOPLE % "projects").replace("USERS", PEOPLE % "users")


class Sums:
    """Of the jobs of one person in one project, in some time."""

    def __init__(self):
        self.units = 0
        self.times, self.kwh, self.grams = {}, {"cpu": 0.0, "gpu": 0.0}, {"cpu": {}, "gpu": {}}
        self.memory = self.gpu = 0.0  # shares times the time that was allocated

    def add(self, job, begin, end):
        kind, seconds, nodes = job.kind, end - begin, job.kind.nodes
        first, last = job.age(begin), job.age(end)
        self.units += begin == job.start
        times = {"walltime": seconds, "alloc_cputime": kind.cpus * nodes * seconds, "alloc_cpumemtime": kind.gib * 1024 * nodes * seconds,
                 "alloc_gputime": len(kind.busy) * nodes * seconds, "alloc_gpumemtime": seconds if kind.busy else 0,
                 "used_cputime": kind.cpus * sum(job.cpus.values()) * (job.work(last) - job.work(first))}
        for name, value in times.items():
            self.times[name] = self.times.get(name, 0) + value
        self.memory += kind.memory * times["alloc_cpumemtime"]
        self.gpu += sum(kind.busy) * nodes * seconds
        joules = {"cpu": 0.0, "gpu": 0.0}
        for node in job.nodes:
            now, before = job.joules(last, node), job.joules(first, node)
            joules["gpu"] += now["gpu"] - before["gpu"]
            joules["cpu"] += now["node"] - now["gpu"] - before["node"] + before["gpu"]
        factors = {"global_total": WORLD}
        for zone, *_ in invented.ZONES:
            factors[zone + "_total"] = sum(invented.intensity(zone, begin + (i + 0.5) * seconds / 8) for i in range(8)) / 8
        for part, value in joules.items():
            self.kwh[part] += value / KWH
            for name, factor in factors.items():
                self.grams[part][name] = self.grams[part].get(name, 0) + factor * value / KWH

    def columns(self):
        def share(part, whole):
            return {"global": 100 * part / self.times[whole]} if self.times[whole] else {}

        def total(part):
            return ({"total": self.kwh[part]}, self.grams[part]) if self.kwh[part] else ({}, {})
        found = [self.times, share(self.times["used_cputime"], "alloc_cputime"), share(self.memory, "alloc_cpumemtime"), *total("cpu"),
                 share(self.gpu, "alloc_gputime"), {}, *total("gpu"), {}, {}, {}, {}]
        return [json.dumps(one) for one in found]


def write(path, jobs, until, owner=None):
    """Makes the database at `path` of what the jobs did until `until`, unless there is one."""
    if os.path.exists(path):
        return
    days, lives = {}, {}
    for job in jobs:
        for day in range(job.start // DAY * DAY, min(job.end, until), DAY):
            begin, end = max(job.start, day), min(job.end, day + DAY, until)
            days.setdefault((day, job.kind.project, job.kind.user), Sums()).add(job, begin, end)
            lives.setdefault((job.kind.project, job.kind.user), Sums()).add(job, begin, end)
    with sqlite3.connect(path + ".new") as database:
        database.executescript(SCHEMA)
        for table, rows in (("daily_usage", [(project, user, sums, time.strftime("%Y-%m-%dT00:00:00", time.localtime(day + DAY // 2)))
                                             for (day, project, user), sums in days.items()]),
                            ("usage", [(project, user, sums, time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(until)))
                                       for (project, user), sums in lives.items()])):
            names = ("resource_manager", "cluster_id", "groupname", "project", "username", "num_units", "num_updates", "last_updated_at", *MAPS)
            database.executemany("INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(names), ", ".join("?" * len(names))), [
                ("slurm", invented.CLUSTER, "demo", project, user, sums.units, 1, at, *sums.columns()) for project, user, sums, at in rows])
    database.close()
    if owner:
        os.chown(path + ".new", *owner)
    os.replace(path + ".new", path)
