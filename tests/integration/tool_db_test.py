#!/usr/bin/env python3
"""ceems_tool db: a database of CEEMS 0.10.2 is upgraded, copied to PostgreSQL and back while the program is killed again and again, and
is the same in the end; backups are complete while somebody writes; damage is found; exports of both are the same.

CEEMS_UNITS is the number of units, CEEMS_SEED repeats a run."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import api_database
import harness
from postgres_test import Postgres

UNITS = int(os.environ.get("CEEMS_UNITS", "300"))
SMALL = 600  # units of what is copied or damaged often
TOOL = os.path.join(harness.BIN, "ceems_tool")
NOW = 1_767_225_600  # 2026-01-01T00:00:00Z
MAPS = api_database.MAPS
WEIGHTS = {"avg_cpu_usage": "alloc_cputime", "avg_cpu_mem_usage": "alloc_cpumemtime", "avg_gpu_usage": "alloc_gputime",
           "avg_gpu_mem_usage": "alloc_gpumemtime"}
SUMS_KEY = ["cluster_id", "username", "project", "groupname", "resource_manager"]


def tool(*arguments, status=0):
    result = subprocess.run([TOOL, "db", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=600, encoding="utf-8", check=False)
    assert result.returncode == status, "exit status %d of %s:\n%s%s" % (result.returncode, arguments, result.stdout, result.stderr)
    return result


def refused(text, *arguments):
    """The command fails with one line that has this text."""
    result = tool(*arguments, status=1)
    assert result.stderr.startswith("ceems_tool: error: ") and result.stderr.count("\n") == 1 and text in result.stderr, result.stderr
    assert result.stdout == "", result.stdout
    return result.stderr


def tool_json(*arguments, status=0):
    return json.loads(tool(*arguments, "--json", status=status).stdout)


def unit_maps(i):
    maps = {name: {} for name in MAPS}
    maps["total_time_seconds"] = {"walltime": i % 977, "alloc_cputime": 4 * (i % 977)}
    maps["total_cpu_energy_usage_kwh"] = {"total": (i % 100) / 4}
    maps["avg_cpu_usage"] = {"global": i % 101 + 0.123456789}
    return maps


def reference_database(path, units, rng):
    """A database as CEEMS 0.10.2 leaves it: the usage is the sum of the units and of some that were purged."""
    odd = ["tab\there", "line\nbreak", "back\\slash", "\\N", "quo'te", 'double"quote', "zoë", "", "?", "\\.", "a\rb"]
    database = api_database.create(path)
    usage, days, rows = {}, {}, []
    for i in range(units):
        user, project, cluster = "u%d" % (i % 200), "p%d" % (i % 17), ["hpc", "k8s"][i % 2]
        end = NOW - (units - i) % 8_000_000
        maps = unit_maps(i)
        rows.append({"resource_manager": "slurm", "cluster_id": cluster, "uuid": str(i), "name": rng.choice(odd), "project": project,
                     "groupname": "g", "username": user, "created_at": "c", "started_at": api_database.local_z(end - 60),
                     "ended_at": api_database.local_z(end), "created_at_ts": 1000 * (end - 99), "started_at_ts": 1000 * (end - 60),
                     "ended_at_ts": 1000 * end, "elapsed": "00:01:00", "state": "COMPLETED", "allocation": {"cpus": 4},
                     "tags": {"workdir": rng.choice(odd)}, "ignore": i % 9 == 0, "num_updates": 1,
                     "last_updated_at": api_database.local(end), **maps})
        for sums, key in ((usage, ()), (days, (api_database.local(end)[:10] + "T00:00:00",))):
            row = sums.setdefault((cluster, user, project) + key, {"count": 3, "wall": 0.0, "energy": 0.0})
            row["count"] += 1
            row["wall"] += maps["total_time_seconds"]["walltime"]
            row["energy"] += maps["total_cpu_energy_usage_kwh"]["total"]
    with database:
        api_database.insert(database, "units", rows)
        for table, sums in (("usage", usage), ("daily_usage", days)):
            api_database.insert(database, table, [
                {"resource_manager": "slurm", "cluster_id": key[0], "num_units": row["count"] + (table == "usage") * 1000,
                 "project": key[2], "username": key[1], "groupname": "g", "num_updates": 1,
                 "last_updated_at": key[3] if len(key) > 3 else api_database.local(NOW), **{name: {} for name in MAPS},
                 "total_time_seconds": {"walltime": row["wall"], "alloc_cputime": 4 * row["wall"]},
                 "total_cpu_energy_usage_kwh": {"total": row["energy"]}} for key, row in sums.items()])
        api_database.insert(database, "users", [
            {"uid": str(i), "cluster_id": "hpc", "resource_manager": "slurm", "name": "u%d" % i, "projects": ["p1", "zoë's"], "tags": [],
             "last_updated_at": api_database.local(NOW)} for i in range(200)])
        api_database.insert(database, "projects", [
            {"uid": "", "cluster_id": "hpc", "resource_manager": "slurm", "name": "p%d" % i, "users": ["u1"], "tags": [],
             "last_updated_at": api_database.local(NOW)} for i in range(17)])
        api_database.insert(database, "admin_users", [{"name": "root1", "tags": ["ceems"], "last_updated_at": api_database.local(NOW)}])
    database.close()


def add_own_rows(path):
    """Rows in the tables that an API server adds."""
    database = sqlite3.connect(path)
    with database:
        database.executemany("INSERT INTO ceems_unit_sums (level, span, cluster_id, username, project, ended, first_id, num_units,"
                             " total_time_seconds) VALUES (?,?,?,?,?,?,?,?,?)",
                             [(i % 5, 100 + i // 5, "hpc", "u%d" % (j % 7), "p%d" % j, 1, j, 2, '{"walltime":%d}' % j)
                              for i in range(40) for j in range(200)])
        database.executemany("INSERT INTO ceems_unit_spans VALUES (?,?)", [(i % 5, i // 5) for i in range(40)])
        database.executemany("INSERT INTO ceems_project_leads VALUES (?,?,?)", [("ada", "hpc", "p%d" % i) for i in range(9)])
        database.executemany("INSERT INTO ceems_names VALUES (?,?,?,?)", [("os", "user", "id%d" % i, "n'%d" % i) for i in range(30)])
        database.executemany("INSERT INTO ceems_tokens VALUES (?, ?, 'ada', 'laptop', 'read-own', ?, ?, 0)",
                             (("id%d" % i, "hash%d" % i, NOW * 1000, (NOW + i) * 1000) for i in range(5)))
        database.executemany("INSERT INTO ceems_feedback VALUES ('hpc', ?, ?, 'mem-excess', ?, 'no', ?)",
                             [("u%d" % i, NOW * 1000, "n'%d" % (i % 2), NOW * 1000 + i) for i in range(6)])
        database.executemany("INSERT INTO ceems_node_effects VALUES (?, 'hpc', ?, ?, ?, 'ada', 'train-#', -20000, ?)",
                             [(NOW * 1000, "n'%d" % i, "u%d" % i, NOW * 1000 - 1, i % 3) for i in range(7)])
        database.executemany("INSERT INTO ceems_ended_units VALUES (?, 'hpc', ?, ?, ?)",
                             [(i + 1, "u%d" % i, NOW * 1000 - 1, NOW * 1000) for i in range(4)])
        database.execute("INSERT INTO ceems_export_targets VALUES ('prometheus', 0)")
        database.executemany("INSERT INTO ceems_flavors VALUES ('os', 'west', ?, ?, 2, 1024, 10, 0, 0, '{\"hw:x\":\"1\"}', ?)",
                             [("id%d" % i, "n'%d" % i, i % 2) for i in range(30)])
        database.execute("INSERT INTO ceems_gaps VALUES (7, 'hpc', 'tsdb', 'cpu', 1, 2)")
        database.executemany("INSERT INTO ceems_gap_units VALUES (7, ?, 's', 1, 2, ?)",
                             [("x", '{"walltime":1}')] * 3 + [("y%d" % i, "{}") for i in range(50)])
        # What the API server writes is never NULL.
        for table in ("units", "usage", "daily_usage"):
            database.execute("UPDATE %s SET ceems_weights = '{}'" % table)
        for table in ("ceems_unit_sums",):
            for column in [row[1] for row in database.execute("PRAGMA table_info(%s)" % table)]:
                database.execute("UPDATE {0} SET {1} = '' WHERE {1} IS NULL".format(table, column))
    database.close()


def content(path):
    """The names of tables, indexes and triggers, and all rows of all tables."""
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as database:
        schema = sorted(database.execute("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall())
        rows = {}
        for name in (name for kind, name in schema if kind == "table"):
            columns = sorted(row[1] for row in database.execute("PRAGMA table_info(%s)" % name))
            rows[name] = sorted(database.execute("SELECT %s FROM %s" % (",".join(columns), name)).fetchall(), key=repr)
        return schema, rows


def same(path, other):
    """Fails, with what differs first, if two files have different content."""
    (schema, rows), (other_schema, other_rows) = content(path), content(other)
    assert schema == other_schema, set(schema) ^ set(other_schema)
    for table, found in rows.items():
        assert len(found) == len(other_rows[table]), (table, len(found), len(other_rows[table]))
        for one, copied in zip(found, other_rows[table]):
            assert one == copied, (table, one, copied)


class SqliteState:
    def __init__(self, path):
        self.path, self.name = path, path

    def query(self, sql):
        database = sqlite3.connect("file:%s?mode=ro" % self.path, uri=True, timeout=20)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()


class PostgresState:
    def __init__(self, postgres):
        self.postgres, self.name = postgres, postgres.url

    def query(self, sql):
        return self.postgres.query(sql)


def progress(state):
    """What an unfinished copy has stored: rows of units, indexes to make, whether all tables are done. None: there is none."""
    try:
        rows = dict(((kind, name), value) for kind, name, value in state.query("SELECT kind, name, value FROM ceems_copy"))
    except (sqlite3.Error, OSError, ValueError):
        return None
    indexes = sum(kind == "index" for kind, _ in rows)
    return int(rows.get(("rows", "units"), 0)), indexes, ("done", "users") in rows


def killed_copy(source, state, when):
    """Starts a copy and kills it as soon as when(progress) is true. Whether it was killed before it ended."""
    program = subprocess.Popen([TOOL, "db", "copy", "--from", source, "--to", state.name], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while program.poll() is None:
            program.send_signal(signal.SIGSTOP)  # so that what is found still holds when the program is killed
            found = progress(state)
            if found and when(*found):
                program.kill()
                break
            program.send_signal(signal.SIGCONT)
            time.sleep(0.01)
    finally:
        out, err = program.communicate()
    if program.returncode == 0:
        return False
    assert program.returncode == -9 and out == b"" and err == b"", (program.returncode, out, err)
    return True


def copy_with_kills(source, state, units, rng):
    first = rng.randrange(1, units // 3)
    points = [("begin", lambda rows, indexes, done: rows == 0),
              ("row %d" % first, lambda rows, indexes, done: rows >= first),
              ("row %d" % (2 * first), lambda rows, indexes, done: rows >= 2 * first),
              ("all rows", lambda rows, indexes, done: done),
              ("an index", lambda rows, indexes, done: done and indexes < 9),
              ("comparing", lambda rows, indexes, done: done and indexes == 0)]
    seen = []
    for name, when in points:
        if killed_copy(source, state, when):
            seen.append((name, progress(state)))
            # Nothing else opens it.
            refused("unfinished copy", "migrate", "--db", state.name)
            assert tool_json("info", "--db", state.name)["schema"]["unfinished_copy"]
    assert len(seen) == len(points), "it ended before it was killed: %s" % seen
    return seen


def check_report(report, units):
    assert report["equal"] and report["converted"] == 0 and report["not_copied"] == [], report
    tables = {one["table"]: one for one in report["tables"]}
    assert len(tables) == 31, sorted(tables)
    assert all(one["rows_from"] == one["rows_to"] and one["different"] == 0 for one in tables.values())
    assert tables["units"]["rows_to"] == units and tables["ceems_gap_units"]["rows_to"] == 53
    assert tables["ceems_unit_sums"]["rows_to"] == 8000 and tables["ceems_flavors"]["rows_to"] == 30 and tables["ceems_tokens"]["rows_to"] == 5
    assert tables["ceems_feedback"]["rows_to"] == 6 and tables["ceems_node_effects"]["rows_to"] == 7
    assert tables["ceems_ended_units"]["rows_to"] == 4 and tables["ceems_export_targets"]["rows_to"] == 1
    walltime = sum(i % 977 for i in range(units))
    energy = sum((i % 100) / 4 for i in range(units))
    for side in ("sums_from", "sums_to"):
        assert tables["units"][side]["total_time_seconds.walltime"] == walltime, tables["units"][side]
        assert abs(tables["units"][side]["total_cpu_energy_usage_kwh.total"] - energy) < 1e-6 * energy
    return tables


def test_copies(directory, postgres, rng):
    source, back = directory + "/ceems.db", directory + "/back/ceems.db"
    os.makedirs(directory + "/back")
    there = PostgresState(postgres)
    for state, origin in ((there, source), (SqliteState(back), postgres.url)):
        kills = copy_with_kills(origin, state, UNITS, rng)
        report = tool_json("copy", "--from", origin, "--to", state.name)
        check_report(report, UNITS)
        assert report["resumed"] > 0 and report["copied"] == 0, report  # the last kill was in the comparison
        assert progress(state) is None
        print("copy to %s, killed at: %s" % (type(state).__name__, ", ".join("%s %s" % one for one in kills)), flush=True)
    same(source, back)
    assert stat.S_IMODE(os.stat(back).st_mode) == 0o640
    assert tool("verify", "--db", postgres.url).stdout.count(" ok ") == 4
    # New rows get ids after the copied ones.
    postgres.query("INSERT INTO usage (cluster_id, username, project) VALUES ('new', 'u', 'p')")
    assert postgres.query("SELECT id > (SELECT max(id) FROM usage WHERE cluster_id <> 'new') FROM usage"
                          " WHERE cluster_id = 'new'") == [["t"]]


def test_copies_in_pieces(directory, rng):
    """The same kind; what is refused; what a comparison finds."""
    source, target = directory + "/small.db", directory + "/target.db"
    reference_database(source, SMALL, rng)
    before = content(source)
    refused("migrate", "copy", "--from", source, "--to", target)
    plan = tool_json("migrate", "--dry-run", "--db", source)
    assert plan["needed"] and (plan["from_version"], plan["from_additions"]) == (9, 0), plan
    assert plan["space_needed"] > 2 * plan["bytes"] > 0 and plan["space_available"] > 0
    assert content(source) == before, "a dry run changed the file"
    out = tool("migrate", "--db", source, "--time-zone", "UTC")
    assert "adding tables" in out.stderr and out.stdout.endswith("upgraded\n"), (out.stdout, out.stderr)
    assert len([name for name in os.listdir(directory) if name.startswith("small.db.v9-") and name.endswith(".bak")]) == 1
    assert not tool_json("migrate", "--db", source)["needed"]
    add_own_rows(source)

    report = tool_json("copy", "--from", source, "--to", target)
    check_report(report, SMALL)
    same(source, target)
    refused("has rows", "copy", "--from", source, "--to", target)
    refused("no such file", "copy", "--from", directory + "/none.db", "--to", target)
    refused("in use", "copy", "--from", source, "--to", source)
    with open(source + ".lock", "r+", encoding="ascii") as lock:  # as an API server holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused("in use", "copy", "--from", source, "--to", directory + "/other.db")
    assert not os.path.exists(directory + "/other.db")
    error = refused("list of processes", "copy", "--from", source, "--to", "postgresql://u:s3cret@localhost/x")
    assert "s3cret" not in error
    error = refused("list of processes", "info", "--db", "postgresql://localhost/x?password=s3cret")
    assert "s3cret" not in error

    # The source changes between two runs.
    other = SqliteState(directory + "/other.db")
    assert killed_copy(source, other, lambda rows, indexes, done: done)
    with contextlib.closing(sqlite3.connect(source)) as database, database:
        database.execute("INSERT INTO users VALUES (999, '', 'hpc', '', 'late', '[]', '[]', '')")
    refused("has changed since", "copy", "--from", source, "--to", other.name)
    assert tool_json("copy", "--from", source, "--to", other.name, "--restart")["resumed"] == 0
    same(source, other.name)

    # Somebody changes rows of an unfinished copy: the comparison lists them.
    changed = SqliteState(directory + "/changed.db")
    assert killed_copy(source, changed, lambda rows, indexes, done: done and indexes == 0)
    with contextlib.closing(sqlite3.connect(changed.name, timeout=20)) as database, database:
        database.execute("UPDATE units SET total_time_seconds = '{\"walltime\":100000}' WHERE id = 70")
        database.execute("DELETE FROM users WHERE name = 'u5'")
        database.execute("INSERT INTO ceems_project_leads VALUES ('eve', 'hpc', 'p1')")
    result = tool("copy", "--from", source, "--to", changed.name, status=1)
    assert result.stdout.endswith("NOT EQUAL\n"), result.stdout
    for line in ("units id=70: total_time_seconds", "users id=6: missing in the destination",
                 "ceems_project_leads name=eve cluster_id=hpc project=p1: only in the destination"):
        assert "different: %s\n" % line in result.stdout, (line, result.stdout)
    refused("unfinished copy", "migrate", "--db", changed.name)


def test_terminal(directory):
    """Progress is shown on a terminal only."""
    master, slave = pty.openpty()
    with subprocess.Popen([TOOL, "db", "copy", "--from", directory + "/small.db", "--to", directory + "/terminal.db"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave) as program:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):
            while piece := os.read(master, 4096):
                shown += piece
        out = program.stdout.read().decode()
    os.close(master)
    assert program.returncode == 0 and out.endswith("equal\n"), out
    assert b"copying units: " in shown and b" rows" in shown and shown.endswith(b"\r\x1b[K"), shown
    assert "\r" not in out


def test_backup(directory):
    """Backups of a file that is written all the time have all or nothing of each transaction."""
    source, output = directory + "/busy.db", directory + "/busy-backup.db"
    shutil.copyfile(directory + "/small.db", source)
    stop, written = threading.Event(), [0]

    def write():
        database = sqlite3.connect(source, timeout=20)
        while not stop.is_set():
            with database:
                for table in ("ceems_names", "ceems_project_leads"):
                    database.execute("INSERT INTO %s VALUES ('w', '%d', 'x'%s)"
                                     % (table, written[0], ", '%d'" % written[0] if table == "ceems_names" else ""))
            written[0] += 1
        database.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        harness.wait_until("the writer writes", lambda: written[0] > 20)
        for round_ in range(5):
            before = written[0]
            tool("backup", "--db", source, "--output", output, *(["--force"] if round_ else []))
            after = written[0]
            copy = sqlite3.connect(output)
            assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            counts = [copy.execute("SELECT count(*) FROM %s WHERE %s = 'w'" % one).fetchone()[0]
                      for one in (("ceems_names", "cluster_id"), ("ceems_project_leads", "name"))]
            assert counts[0] == counts[1] and before <= counts[0] <= after + 1, (before, counts, after)
            assert copy.execute("SELECT count(*) FROM units").fetchone()[0] == SMALL
            copy.close()
            assert stat.S_IMODE(os.stat(output).st_mode) == 0o600
    finally:
        stop.set()
        writer.join()
    kept = os.stat(output).st_ino
    refused("--force", "backup", "--db", source, "--output", output)
    refused("the database itself", "backup", "--db", source, "--output", source, "--force")
    assert os.stat(output).st_ino == kept
    refused("No such file", "backup", "--db", source, "--output", directory + "/none/x.db")
    refused("pg_dump", "backup", "--db", "postgresql://localhost/x", "--output", output + "2")
    assert not [name for name in os.listdir(directory) if name.endswith(".partial")]


def span_statements(path, span):
    """Statements that list a span of level 0 with the right sums over its units, those after it, and the span of level 1 that holds
    it (those before it have no units, and are not listed), and the two spans of days that hold it."""
    hour = 3600 * 1000
    wanted = [(0, part, 4, "units") for part in range(span, span // 4 * 4 + 4)] + [
        (1, span // 4, 16, "units"), (8, span // 64, 256, "daily_usage"), (9, span // 256, 1024, "daily_usage")]
    sums = {}
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        for level, number, hours, table in wanted:
            sums[level, number] = {}
            for unit in database.execute("SELECT * FROM %s WHERE last_updated_at_ts >= ? AND last_updated_at_ts < ?" % table,
                                         (number * hours * hour, (number + 1) * hours * hour)):
                ended = int(unit["ended_at_ts"] > 0) if table == "units" else 0
                key = tuple(unit[name] for name in SUMS_KEY) + (ended,)
                row = sums[level, number].setdefault(key, {"num_units": 0, "maps": {}})
                row["num_units"] += unit["num_units"] if table == "daily_usage" else 1
                maps = {name: json.loads(unit[name] or "{}") for name in MAPS}
                for name, entries in maps.items():
                    weight = maps["total_time_seconds"].get(WEIGHTS[name], 0) if name in WEIGHTS else 1
                    for entry, value in entries.items():
                        for column, part in ((name, value * weight), ("weight_" + name, weight)):
                            if column == name or name in WEIGHTS:
                                add = row["maps"].setdefault(column, {})
                                add[entry] = add.get(entry, 0) + part
    for (level, number), rows in sums.items():
        yield "INSERT INTO ceems_unit_spans (level, span) VALUES (%d, %d)" % (level, number)
        for key, row in rows.items():
            names = SUMS_KEY + ["ended", "level", "span", "first_id", "num_units"] + list(row["maps"])
            values = list(key) + [level, number, 1, row["num_units"]] + [json.dumps(text) for text in row["maps"].values()]
            yield "INSERT INTO ceems_unit_sums (%s) VALUES (%s)" % (
                ",".join(names), ",".join("'%s'" % value.replace("'", "''") if isinstance(value, str) else str(value) for value in values))


def check_spans(good, damaged, found):
    """Sums over spans of time are compared with the units, and those of longer spans with those of shorter ones."""
    with contextlib.closing(sqlite3.connect(good)) as database:
        span = database.execute("SELECT last_updated_at_ts / 14400000 FROM units GROUP BY 1 ORDER BY count(*) DESC").fetchone()[0]
    right = list(span_statements(good, span))
    assert len(right) > 10, right
    damaged(*right)
    assert tool_json("verify", "--db", good.replace("small", "damaged"))["good"]
    at = " WHERE level = 0 AND span = %d AND rowid = (SELECT min(rowid) FROM ceems_unit_sums WHERE span = %d AND username = 'u2')" % (
        span, span)
    where = "span %d of level 0: cluster hpc, " % span
    for change, line in (("UPDATE ceems_unit_sums SET num_units = 70 + num_units", "num_units (7"),
                         ("UPDATE ceems_unit_sums SET total_cpu_energy_usage_kwh = '{}'", ": total_cpu_energy_usage_kwh"),
                         ("UPDATE ceems_unit_sums SET weight_avg_cpu_usage = '{\"global\":1}'", ": weight_avg_cpu_usage"),
                         ("UPDATE ceems_unit_sums SET username = 'eve'", "user eve, "), ("DELETE FROM ceems_unit_sums", "num_units (0 instead")):
        damaged(*right, change + at)
        faults = found("spans", line)
        assert any(one.startswith(where) for one in faults["spans"]["lines"]), faults
        assert any("of level 1" in one for one in faults["spans"]["lines"]), faults
        assert not faults["sums"]["faults"] and not faults["values"]["faults"], faults
    damaged(*right, "UPDATE units SET total_time_seconds = '{}' WHERE last_updated_at_ts / 14400000 = %d" % span)
    found("spans", "total_time_seconds")
    damaged(*right, "UPDATE daily_usage SET num_units = num_units + 1 WHERE username = 'u2'")
    assert "of level 8" in str(found("spans", "cluster hpc, user u2, ")["spans"]["lines"])
    damaged("INSERT INTO ceems_unit_spans VALUES (5, 1)", "INSERT INTO ceems_unit_spans VALUES (99, 1)")
    assert found("spans", "span 1 of level 5: no such level")["spans"]["faults"] == 2
    # After a visit of the reference, sums are not compared.
    damaged(*right, "UPDATE units SET last_updated_at_ts = NULL WHERE id = 17", "UPDATE ceems_unit_sums SET num_units = 0")
    report = tool_json("verify", "--db", good.replace("small", "damaged"))
    assert report["good"] and "CEEMS 0.10.2 has written" in report["notes"][-1], report


def test_verify(directory):
    good = directory + "/small.db"
    path = directory + "/damaged.db"
    assert tool_json("verify", "--db", good)["good"]

    def damaged(*statements):
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path + end)
        tool("backup", "--db", good, "--output", path)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                database.execute(statement)

    def found(check, line):
        report = tool_json("verify", "--db", path, status=1)
        assert not report["good"]
        faults = {one["check"]: one for one in report["checks"]}
        assert any(line in one for one in faults[check]["lines"]), report
        text = tool("verify", "--db", path, status=1).stdout
        assert line in text and "fault" in text, text
        return faults

    damaged("UPDATE units SET avg_cpu_usage = '{\"global\":' WHERE id = 17")
    assert found("values", "units id=17: avg_cpu_usage: not a JSON object of numbers")["values"]["faults"] == 1
    damaged("UPDATE units SET allocation = '[1]' WHERE id = 18", "UPDATE users SET projects = 'p1' WHERE id = 3")
    found("values", "units id=18: allocation: not a JSON object")
    assert found("values", "users id=3: projects: not a JSON array")["values"]["faults"] == 2
    damaged("ALTER TABLE projects DROP COLUMN tags")
    found("schema", "table projects lacks the column tags")
    damaged("DROP INDEX uq_cluster_id_uuid_start", "DROP TABLE ceems_names")
    found("schema", "table units lacks the index uq_cluster_id_uuid_start")
    found("schema", "table ceems_names is missing")
    damaged("UPDATE schema_migrations SET dirty = 1")
    found("schema", "marked dirty")
    damaged("UPDATE usage SET num_units = 0, total_time_seconds = '{}'")
    faults = found("sums", "cluster hpc: units: units has %d, more than usage, which has 0" % (SMALL // 2))
    assert any("total_time_seconds.walltime" in line for line in faults["sums"]["lines"])
    check_spans(good, damaged, found)
    damaged()
    os.truncate(path, os.path.getsize(path) // 3 // 4096 * 4096)
    found("file", "")
    damaged()
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    found("file", "")
    with open(path, "wb") as file:
        file.write(b"not a database" * 1000)
    assert tool("verify", "--db", path, status=1).stdout.count("fault") >= 1


def test_info(directory):
    info = tool_json("info", "--db", directory)  # the directory of ceems.db
    assert info["kind"] == "SQLite" and info["tables"]["units"] == UNITS and info["schema"]["current"], info
    assert info["schema"]["version"] == 9 and "0.10.2" in info["schema"]["fits"]
    clusters = {one["id"]: one for one in info["clusters"]}
    assert set(clusters) == {"hpc", "k8s"} and clusters["hpc"]["units"] == UNITS // 2
    assert clusters["hpc"]["watermark_ms"] == NOW * 1000
    text = tool("info", "--db", directory).stdout
    assert "2026-01-01T00:00:00Z" in text and "units" in text
    refused("required flag --db", "info")
    refused("neither a file nor", "info", "--db", "mysql://x")


def test_documentation(directory, postgres):
    """All examples of docs/tool-db.md, with other places."""
    with open(os.path.join(harness.ROOT, "docs", "tool-db.md"), encoding="utf-8") as page:
        lines = [line.strip() for line in page if line.strip().startswith("ceems_tool db ")]
    assert len(lines) == 7, lines
    postgres.query("CREATE DATABASE ceems")
    places = {"/var/lib/ceems": directory + "/docs", "/backup": directory, "/srv/ceems": directory + "/docs2",
              "postgresql://ceems@db.example.org/ceems": postgres.url.replace("/postgres?", "/ceems?")}
    for place in ("/docs", "/docs2"):
        os.makedirs(directory + place)
    tool("backup", "--db", directory + "/small.db", "--output", directory + "/docs/ceems.db")
    for line in lines:
        for place, used in places.items():
            line = line.replace(place, used)
        tool(*line.split()[2:])
    same(directory + "/docs/ceems.db", directory + "/docs2/ceems.db")


def test_export(directory, postgres):
    """Both kinds of databases export the same units, at once or in two parts, with the energy that the database has."""
    def export(database, *arguments):
        result = subprocess.run([TOOL, "export", "--format", "csv", "--db", database, *arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    whole = export(directory)
    rows = list(csv.DictReader(io.StringIO(whole.decode(), newline="")))
    shown = [i for i in range(UNITS) if i % 9]
    assert len(rows) == len(shown), len(rows)
    assert {row["id"] for row in rows} == {str(i) for i in shown}
    assert sum(float(row["kwh"]) for row in rows) == sum((i % 100) / 4 for i in shown)
    assert [row["ended"] for row in rows] == sorted(row["ended"] for row in rows)
    assert export(postgres.url) == whole
    state = directory + "/export.state"
    half = export(directory, "--state", state, "--until", rows[len(rows) // 2]["ended"])
    assert 0 < len(half) < len(whole)
    assert half + export(directory, "--state", state) == whole
    assert export(directory, "--state", state) == b""


def test_passwords(directory, postgres):
    """A server that wants a password gets it from a file."""
    postgres.query("ALTER USER ceems PASSWORD 's3cret'")
    with open(directory + "/pg/data/pg_hba.conf", "w", encoding="ascii") as rules:
        rules.write("local all all scram-sha-256\n")
    postgres.query("SELECT pg_reload_conf()")
    url = postgres.url
    error = harness.wait_until("the server wants a password", lambda: subprocess.run(
        [TOOL, "db", "info", "--db", url], capture_output=True, text=True, check=False).stderr, 30)
    assert "password" in error and error.startswith("ceems_tool: error: "), error
    secret = harness.write(directory + "/secret", "s3cret\n")
    assert tool_json("info", "--db", url, "--password-file", secret)["kind"] == "PostgreSQL"
    assert "wrong" not in refused("password authentication failed", "info", "--db", url, "--password-file",
                                  harness.write(directory + "/wrong", "wrong"))
    tool("copy", "--from", url, "--from.password-file", secret, "--to", directory + "/secure.db")
    os.chmod(harness.write(directory + "/pgpass", "*:*:*:*:s3cret\n"), 0o600)
    os.environ["PGPASSFILE"] = directory + "/pgpass"
    assert tool_json("verify", "--db", url)["good"]


def main():
    harness.need_programs("psql")
    seed = int(os.environ.get("CEEMS_SEED", str(random.SystemRandom().randrange(1 << 30))))
    print("seed %d" % seed)
    rng = random.Random(seed)
    with harness.scratch("ceems-tool-db-") as directory:
        test_copies_in_pieces(directory, rng)
        test_terminal(directory)
        test_backup(directory)
        test_verify(directory)
        reference_database(directory + "/ceems.db", UNITS, rng)
        tool("migrate", "--db", directory, "--time-zone", "UTC")
        add_own_rows(directory + "/ceems.db")
        test_info(directory)
        postgres = Postgres(directory + "/pg")
        try:
            test_documentation(directory, postgres)
            test_copies(directory, postgres, rng)
            test_export(directory, postgres)
            test_passwords(directory, postgres)
        finally:
            postgres.stop()
    print("PASS")


if __name__ == "__main__":
    sys.exit(main())
