#!/usr/bin/env python3
"""Measures the database on SQLite and PostgreSQL, next to the same queries as plain SQL in sqlite3 and psql.

Usage: bench/database.py [UNITS [USERS]]      needs build/bench/bin/database (cmake --preset bench), sqlite3, postgresql
Prints one table. The databases are made below $TMPDIR, one after the other; 10 million units need about 20 GB.
"""
import glob
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("CEEMS_BENCH_DATABASE", ROOT / "build/bench/bin/database"))
YEAR = "1735689600000 AND 1767225600000"
WEEK = "1750000000000 AND 1750604800000"
# The program's queries, written by hand: a week of one user, a year of all users with one of the thirteen maps from units and from
# days, counts, and a million complete rows.
SQL = {
    "user_week": f"SELECT * FROM units WHERE ignore=0 AND username='user7' AND (ended_at_ts BETWEEN {WEEK} OR ended_at_ts=0)"
                 " ORDER BY cluster_id, uuid, started_at",
    "admin_year": {
        "sqlite": "SELECT cluster_id,username,project,count(*),sum(json_extract(total_cpu_energy_usage_kwh,'$.total')) FROM units"
                  f" WHERE last_updated_at_ts BETWEEN {YEAR} GROUP BY 1,2,3",
        "postgres": "SELECT cluster_id,username,project,count(*),sum((total_cpu_energy_usage_kwh::jsonb->>'total')::float8) FROM"
                    f" units WHERE last_updated_at_ts BETWEEN {YEAR} GROUP BY 1,2,3",
    },
    "admin_year_days": {
        "sqlite": "SELECT cluster_id,username,project,sum(num_units),sum(json_extract(total_cpu_energy_usage_kwh,'$.total')) FROM"
                  f" daily_usage WHERE last_updated_at_ts BETWEEN {YEAR} GROUP BY 1,2,3",
        "postgres": "SELECT cluster_id,username,project,sum(num_units),sum((total_cpu_energy_usage_kwh::jsonb->>'total')::float8)"
                    f" FROM daily_usage WHERE last_updated_at_ts BETWEEN {YEAR} GROUP BY 1,2,3",
    },
    "stats": "SELECT cluster_id,max(resource_manager),count(*),count(*) FILTER (WHERE ended_at_ts>0),count(DISTINCT project),"
             "count(DISTINCT username) FROM units GROUP BY cluster_id",
    "stream_time": "SELECT * FROM units WHERE ignore=0 ORDER BY cluster_id, uuid, started_at LIMIT 1000000",
}


def user():
    """The user that runs the server, which refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        except KeyError:
            pass
    return {}


class Server:
    def __init__(self, directory):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            raise SystemExit("PostgreSQL is not installed (Debian package postgresql)")
        os.makedirs(directory)
        who = user()
        if who:
            os.chown(directory, who["user"], who["group"])
        self.directory = directory
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        subprocess.run([f"{programs[-1]}/initdb", "-D", f"{directory}/data", "-A", "trust", "-U", "ceems", "-E", "UTF8",
                        "--locale=C", "--no-sync"], check=True, stdout=subprocess.DEVNULL, env=environment, **who)
        self.process = subprocess.Popen(
            [f"{programs[-1]}/postgres", "-D", f"{directory}/data", "-k", directory, "-c", "listen_addresses=", "-c",
             "shared_buffers=1GB", "-c", "max_wal_size=2GB", "-c", "random_page_cost=1.1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, **who)
        state = pathlib.Path(directory, "data/postmaster.pid")
        for _ in range(3000):
            if state.exists() and "\nready" in state.read_text():
                return
            time.sleep(0.01)
        raise SystemExit("the PostgreSQL server did not start")

    def url(self):
        return f"postgresql://ceems@/postgres?host={self.directory}"

    def cpu(self):
        """CPU seconds of all processes of the server."""
        ticks = 0
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(status.parent.name) == self.process.pid:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == self.process.pid:
                ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def measure(target, units, users, server=None):
    results = {}
    for filling in (True, False):
        begin = server.cpu() if server else 0
        with subprocess.Popen([PROGRAM, target, str(units), str(users)], stdout=subprocess.PIPE, text=True) as program:
            for line in program.stdout:
                print(target.split(":")[0], line.strip(), file=sys.stderr, flush=True)
                name, value = line.strip().split(" ", 1)
                results[name] = value
        if program.returncode != 0:
            raise SystemExit(f"{PROGRAM} failed")
        if server and filling:
            results["ingest_cpu_server"] = f"{(server.cpu() - begin) * 1e6 / units:.1f} us/unit"
    return results


def plain(backend, command):
    result = {}
    for name, sql in SQL.items():
        text = sql[backend] if isinstance(sql, dict) else sql
        best = []
        for _ in range(3):
            begin = time.monotonic()
            subprocess.run([*command, text], check=True, stdout=subprocess.DEVNULL)
            best.append(time.monotonic() - begin)
            if best[-1] > 5:
                break
        result[name] = f"{min(best) * 1000:.1f} ms"
    return result


def main():
    units = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    users = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory(prefix="ceems-bench-") as work:
        os.chmod(work, 0o755)
        os.makedirs(f"{work}/sqlite")
        ours = {"sqlite": measure(f"sqlite:{work}/sqlite", units, users)}
        theirs = {"sqlite": plain("sqlite", ["sqlite3", f"{work}/sqlite/ceems.db"])}
        shutil.rmtree(f"{work}/sqlite")
        server = Server(f"{work}/pg")
        try:
            ours["postgres"] = measure(server.url(), units, users, server)
            theirs["postgres"] = plain("postgres", ["psql", "-qAt", "-v", "FETCH_COUNT=1000", "-d", server.url(), "-c"])
        finally:
            server.stop()
    print(f"{units} units of {users} users in one year\n")
    print("| | SQLite | PostgreSQL |\n|---|---|---|")
    for name in ours["postgres"]:
        print(f"| {name} | {ours['sqlite'].get(name, '')} | {ours['postgres'][name]} |")
    for name in SQL:
        print(f"| plain SQL: {name} | {theirs['sqlite'][name]} | {theirs['postgres'][name]} |")


if __name__ == "__main__":
    main()
