#!/usr/bin/env python3
"""A site switches to our API server: databases as CEEMS 0.10.2, 0.14 and 0.15 leave them are opened, and every endpoint must show what
they hold. Then the way back: what an older program meets in the file.

The databases are made by hand (api_database.py), and the expected figures are computed from their rows, not by our server."""

import contextlib
import glob
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

import fake_slurm
from api_database import CUSTOM, World, create, insert, local, same
from api_fuzz_test import Judge, Refused, Request
from harness import BIN, Program, free_port, get, need_programs, run_tests, start_api_server, start_prometheus_with, wait_until, write
from openapi import Document

FLAGS = ["--storage.data.skip.delete.old.units", "--no-security.drop-privileges"]
TABLES = ["units", "usage", "daily_usage", "users", "projects", "admin_users"]
OURS = {"last_updated_at_ts", "ceems_weights"}
DAY = 86400


def database_path(directory):
    os.makedirs(os.path.join(directory, "data"), exist_ok=True)
    return os.path.join(directory, "data", "ceems.db")


def read(path, sql, *values):
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        return db.execute(sql, values).fetchall()


def columns(path, table):
    return [row[1] for row in read(path, "SELECT * FROM pragma_table_info('%s') ORDER BY cid" % table)]


def content(path):
    """All rows of the reference's tables, by their columns."""
    found = {}
    for table in TABLES:
        names = [name for name in columns(path, table) if name not in OURS]
        found[table] = (names, read(path, "SELECT %s FROM %s ORDER BY id" % (",".join(names), table)))
    return found


def version(path):
    return read(path, "SELECT version, dirty FROM schema_migrations")


def idle_config(directory, more=""):
    """A server that fetches nothing, so that it shows what the old program left."""
    return ("ceems_api_server:\n  data:\n    path: %s/data\n    time_zone: UTC\n    update_interval: 1d\n  admin:\n    users: [root1]\n%s"
            % (directory, more))


def start_refused(directory, arguments=()):
    """The output of a server that must not start."""
    program, _ = start_api_server(directory, idle_config(directory), FLAGS + list(arguments), wait=False, name="refused")
    with program:
        wait_until("the server ends", lambda: not program.alive())
        assert program.process.returncode == 1, program.process.returncode
        return program.output()


def requests_of(world):
    """Requests to every endpoint with rows, by callers of each kind, over windows short and long."""
    long, short = [("from", str(world.now - 12 * DAY)), ("to", str(world.now + DAY))], [("from", str(world.now - 3 * DAY)),
                                                                                        ("to", str(world.now - DAY))]
    members = sorted({member for project in world.projects for member in project["users"] if ":" not in member})
    for window in (long, short):
        for caller in members[:4] + ["zoë", "nobody"]:
            for path in ("/units", "/usage/current", "/usage/global", "/users", "/projects"):
                yield Request(path, window, caller)
            yield Request("/units", window + [("running", "1"), ("timezone", "Europe/Paris"), ("cluster_id", "hpc-a")], caller)
            yield Request("/usage/current", window + [("experimental", "1"), ("groupby", "groupname")], caller)
            yield Request("/usage/current", window + [("match", "project:p.*"), ("tags.partition", "gpu")], caller)
        for path in ("/units/admin", "/usage/current/admin", "/usage/global/admin", "/users/admin", "/projects/admin",
                     "/clusters/admin", "/stats/current/admin", "/stats/global/admin"):
            yield Request(path, window, "root1")
        yield Request("/usage/current/admin", window + [("experimental", "1")], "root1")
        yield Request("/units/admin", window + [("user", "u1"), ("limit", "20"), ("sort", "ended_at")], "root1")
    for unit in world.units[:30]:
        for caller in members[:6] + ["root1"]:
            yield Request("/units/verify", [("cluster_id", unit["cluster_id"]), ("uuid", unit["uuid"])], caller)


def compare(world, url):
    """Sends all requests. Returns the number of rows and the answers."""
    document = Document(get(url + "/openapi.json").json)
    judge = Judge(world, document)
    rows, answers = 0, {}
    for request in requests_of(world):
        answer = get(url + request.target(), {"X-Grafana-User": request.caller.encode().decode("latin-1")})
        try:
            expected, limit = judge.expected(request, int(time.time()))
        except Refused as refused:
            assert answer.status == refused.args[0], (request.target(), request.caller, answer.text[:500])
            continue
        assert answer.status == 200, (request.target(), request.caller, answer.text[:500])
        seen = answer.json["data"]
        wanted = expected if limit is None or expected is None else expected[:limit]
        assert same(seen, wanted), "%s as %s:\n%s\nexpected\n%s" % (
            request.target(), request.caller, json.dumps(seen)[:1500], json.dumps(wanted)[:1500])
        answers[request.target(), request.caller] = seen
        rows += len(seen or [])
    return rows, answers


def tool(*arguments):
    done = subprocess.run([os.path.join(BIN, "ceems_tool")] + list(arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_release(directory, custom):
    """Opens a database of one release and compares the figures of all endpoints and all rows of the file."""
    path = database_path(directory)
    world = World(random.Random(15 if custom else 10), int(time.time()), units=400, custom=custom)
    world.support, world.led = [], {}
    world.write(path)
    before, wanted_version = content(path), [(10 if custom else 9, 0)]
    assert version(path) == wanted_version
    program, url = start_api_server(directory, idle_config(directory), FLAGS)
    with program:
        rows, answers = compare(world, url)
        assert rows > 2000, rows
        assert program.stop() == 0, program.output()
    assert any("min_custom_stats" in row for seen in answers.values() for row in seen or []) == custom

    # What an older program meets: its version, not dirty, all its columns where they were, and its rows unchanged.
    after = content(path)
    assert version(path) == wanted_version
    for table in TABLES:
        names, old = before[table]
        assert after[table][0] == names, (table, after[table][0])
        new = after[table][1]
        if table == "admin_users":  # those of the configuration are written anew at each start, as by the reference
            old, new = ([row[:-1] for row in rows] for rows in (old, new))
        assert new == old, "rows of %s changed:\n%s\n%s" % (table, old[:3], new[:3])
        assert [name for name in columns(path, table) if name not in OURS] == names
        extra = [name for name in columns(path, table) if name not in names]
        assert columns(path, table)[-len(extra) or len(names):] == extra, "our columns do not come last in %s" % table
    copies = glob.glob(path + ".v%d-*.bak" % wanted_version[0][0])
    assert len(copies) == 1 and content(copies[0]) == before, copies
    assert ("CEEMS 0.15 and 0.16 and this release" if custom else "CEEMS 0.10.2 to 0.14 and this release") in tool(
        "db", "info", "--db", path)

    # A second start finds nothing to upgrade and shows the same.
    program, url = start_api_server(directory, idle_config(directory), FLAGS)
    with program:
        again, more = compare(world, url)
        assert again == rows and more.keys() == answers.keys()
    assert len(glob.glob(path + ".*.bak")) == 1


def test_figures_of_version_9(directory):
    check_release(directory, custom=False)


def test_figures_of_version_10(directory):
    check_release(directory, custom=True)


def test_refused_databases(directory):
    path = database_path(directory)
    create(path).close()
    starts = 0  # each adds one line to the log
    for statement, message in (
            ("UPDATE schema_migrations SET version = 11", "schema version 11 is newer than 10, the newest this program knows"),
            ("UPDATE schema_migrations SET version = 9, dirty = 1", "schema version 9 is marked dirty"),
            ("UPDATE schema_migrations SET version = 10, dirty = 1", "complete the upgrade with --db.migrate")):
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute(statement)
        with open(path, "rb") as f:
            before = f.read()
        for arguments in ([], ["--db.migrate"]) if "newer" in message else ([],):
            errors = [line for line in start_refused(directory, arguments).splitlines() if "level=ERROR" in line]
            starts += 1
            assert len(errors) == starts and message in errors[-1] and path in errors[-1], errors
        with open(path, "rb") as f:
            assert f.read() == before, "a refused file was changed"
        assert not glob.glob(path + "?*.bak") and not glob.glob(path + "-*"), os.listdir(os.path.dirname(path))
        if "newer" in message:
            assert "newer than this program knows" in tool("db", "info", "--db", path)
            # A copy is possible, for instance for taking it to a machine with the release that made it.
            assert tool("db", "backup", "--db", path, "--output", directory + "/newer.db") is not None
            assert read(directory + "/newer.db", "SELECT version FROM schema_migrations") == [(11,)]
    # An upgrade to version 10 that stopped in the middle is completed on request.
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE units ADD COLUMN total_custom_stats default '{}'")
    program, _ = start_api_server(directory, idle_config(directory), FLAGS + ["--db.migrate"])
    with program:
        assert version(path) == [(10, 0)]
    for table in ("units", "usage", "daily_usage"):
        assert set(CUSTOM) <= set(columns(path, table)), table
    assert len(glob.glob(path + ".v10-*.bak")) == 1


def verified(url, user, uuid="1001"):
    return get("%s/api/v1/units/verify?cluster_id=test&uuid=%s" % (url, uuid), {"X-Grafana-User": user}).status


def test_people_who_left(directory):
    """CEEMS 0.14.0 to 0.14.2 never took anybody out of a project. The first fetch of ours does, for the API and the load balancer."""
    path = database_path(directory)
    now = int(time.time())
    database = create(path)
    with database:
        insert(database, "units", [{"resource_manager": "slurm", "cluster_id": "test", "uuid": "1001", "name": "j", "project": "p0",
                                    "username": "ann", "started_at": local(now - 9000) + "+0000", "ended_at": local(now - 8000) + "+0000",
                                    "created_at_ts": (now - 9000) * 1000, "started_at_ts": (now - 9000) * 1000,
                                    "ended_at_ts": (now - 8000) * 1000, "ignore": 0, "num_updates": 1, "last_updated_at": local(now - 700)}])
        insert(database, "usage", [{"cluster_id": "test", "username": "ann", "project": "p0", "num_units": 1, "num_updates": 1,
                                    "last_updated_at": local(now - 700)}])
        insert(database, "projects", [{"uid": "", "cluster_id": "test", "resource_manager": "slurm", "name": "p0",
                                       "users": ["ann", "ben", "gone"], "tags": [], "last_updated_at": local(now - 700)},
                                      {"uid": "", "cluster_id": "test", "resource_manager": "slurm", "name": "closed",
                                       "users": ["gone"], "tags": [], "last_updated_at": local(now - 700)}])
        insert(database, "users", [{"uid": "", "cluster_id": "test", "resource_manager": "slurm", "name": name, "projects": ["p0"],
                                    "tags": [], "last_updated_at": local(now - 700)} for name in ("ann", "ben", "gone")])
    database.close()
    job = {"name": "j", "account": "p0", "cpus": 1, "start": now - 9000, "end": now - 8000}
    fake_slurm.install(directory, [dict(job, id="1001", user="ann"), dict(job, id="1002", user="ben")], mode="silent")
    os.chmod(os.path.join(directory, "data"), 0o700)

    api, url = start_api_server(directory, fake_slurm.api_config(directory, begin=now - 600), FLAGS)
    backends, answered = [], None
    with api, contextlib.ExitStack() as stack:
        if shutil.which("prometheus"):
            text = '# TYPE m gauge\nm{uuid="1001"} 1 %d\nm{uuid="1001"} 1 %d\n# EOF\n' % (now - 30, now)
            prometheus, port = start_prometheus_with(directory, "tsdb", text)
            stack.enter_context(prometheus)
            for name, access in (("db", "ceems_api_server:\n  data: {path: %s/data}\n" % directory),
                                 ("api", "ceems_api_server:\n  web: {url: '%s'}\n" % url)):
                config = write(os.path.join(directory, name + ".yml"),
                               "ceems_lb:\n  strategy: round-robin\n  backends:\n    - id: test\n      tsdb:\n"
                               "        - web: {url: 'http://127.0.0.1:%d'}\n%s" % (port, access))
                lb_port = free_port()
                lb = stack.enter_context(Program([os.path.join(BIN, "ceems_lb"), "--config.file=" + config,
                                                  "--web.listen-address=127.0.0.1:%d" % lb_port,
                                                  "--no-security.drop-privileges"], os.path.join(directory, name + ".log")))
                lb.wait_ready("http://127.0.0.1:%d/-/healthy" % lb_port)
                backends.append((name, "http://127.0.0.1:%d" % lb_port))

        def asked(address, user):
            return get(address + "/api/v1/query?query=m%7Buuid%3D%221001%22%7D",
                       {"X-Grafana-User": user, "X-Ceems-Cluster-Id": "test"}).status

        # While SLURM does not answer, nobody gains or loses access.
        wait_until("a fetch fails", lambda: "level=ERROR" in api.output() or "level=WARN" in api.output())
        assert [verified(url, user) for user in ("ann", "ben", "gone", "eve")] == [200, 200, 200, 403]
        for name, address in backends:
            assert [asked(address, user) for user in ("ann", "gone", "eve")] == [200, 200, 403], name
        write(os.path.join(directory, "mode"), "ok")
        wait_until("access is gone", lambda: verified(url, "gone") == 403)
        assert [verified(url, user) for user in ("ann", "ben", "eve")] == [200, 200, 403]
        for name, address in backends:
            wait_until("access is gone through the load balancer with " + name, lambda address=address: asked(address, "gone") == 403)
            assert asked(address, "ann") == 200, name
        assert json.loads(read(path, "SELECT users FROM projects WHERE name = 'p0'")[0][0]) == ["ann", "ben"]
        assert not read(path, "SELECT 1 FROM users WHERE name = 'gone' AND projects NOT IN ('[]', 'null')")
        assert not read(path, "SELECT 1 FROM projects WHERE users LIKE '%gone%'")
        answered = get(url + "/api/v1/usage/global", {"X-Grafana-User": "gone"}).json["data"]
    assert answered == [], answered


def custom_config(directory, tsdb, queries):
    text = fake_slurm.api_config(directory, begin=int(time.time()) - 1800, tsdb=tsdb)
    return text + "    extra_config:\n      queries:\n" + queries


# As ceems_tool of 0.14.1 and later writes them, with back-ticks, and as a site may write its own.
QUERIES = """        avg_cpu_usage:
          global: 'avg_over_time(avg by (uuid) (uuid:ceems_cpu_usage:ratio_irate{uuid=~`{{.UUIDs}}`} >= 0 < inf)[{{.Range}}:])'
"""
CUSTOM_QUERIES = QUERIES + """        total_custom_stats:
          misses: 'sum by (uuid) (count_over_time(cache_misses{uuid=~"{{.UUIDs}}"}[{{.Range}}]))'
        avg_custom_stats:
          temp: 'avg by (uuid) (avg_over_time(gpu_temp{uuid=~"{{.UUIDs}}"}[{{.Range}}]))'
        min_custom_stats:
          temp: 'min by (uuid) (min_over_time(gpu_temp{uuid=~"{{.UUIDs}}"}[{{.Range}}]))'
        max_custom_stats:
          temp: 'max by (uuid) (max_over_time(gpu_temp{uuid=~"{{.UUIDs}}"}[{{.Range}}]))'
        avg_gpu_usage:
          global: 'gpu_temp{uuid=~"{{.UUIDs}}"}'
"""


def test_custom_metrics(directory):
    """The configuration of 0.10.2 leaves a file of version 9 as it is. A custom metric upgrades it, and the values arrive."""
    need_programs("prometheus", "promtool")
    path = database_path(directory)
    create(path).close()
    now = int(time.time()) // 15 * 15
    samples = "# TYPE gpu_temp gauge\n"
    times = range(now - 3600, now + 1, 15)
    for gpu, offset in ((0, 0), (1, 20)):
        samples += "".join('gpu_temp{uuid="1",gpu="%d"} %d %d\n' % (gpu, offset + 40 + (t // 15) % 11, t) for t in times)
    samples += "# TYPE cache_misses gauge\n" + "".join('cache_misses{uuid="1"} 1 %d\n' % t for t in times)
    samples += "# TYPE uuid:ceems_cpu_usage:ratio_irate gauge\n" + "".join(
        'uuid:ceems_cpu_usage:ratio_irate{uuid="1"} 30 %d\n' % t for t in times)
    fake_slurm.install(directory, [{"id": "1", "name": "j", "user": "ann", "account": "p0", "cpus": 2, "start": now - 3000, "end": now - 900}])
    prometheus, port = start_prometheus_with(directory, "tsdb", samples + "# EOF\n")
    tsdb = "http://127.0.0.1:%d" % port
    with prometheus:
        program, url = start_api_server(directory, custom_config(directory, tsdb, QUERIES), FLAGS)
        with program:
            wait_until("the unit", lambda: read(path, "SELECT 1 FROM units WHERE uuid = '1'"))
            assert program.stop() == 0
        assert version(path) == [(9, 0)] and not set(CUSTOM) & set(columns(path, "units"))
        assert json.loads(read(path, "SELECT avg_cpu_usage FROM units")[0][0]) == {"global": 30}
        # A new database, so that the same windows are fetched again.
        for name in glob.glob(path + "*"):
            os.remove(name)
        create(path).close()
        program, url = start_api_server(directory, custom_config(directory, tsdb, CUSTOM_QUERIES), FLAGS)
        with program:
            unit = wait_until("custom metrics", lambda: get(
                url + "/api/v1/units?from=%d" % (now - 7200), {"X-Grafana-User": "ann"}).json["data"])[0]
            usage = get(url + "/api/v1/usage/global", {"X-Grafana-User": "ann"}).json["data"][0]
            daily = get(url + "/api/v1/usage/current?experimental&from=%d" % (now - 2 * DAY), {"X-Grafana-User": "ann"}).json["data"]
            for row in (unit, usage):
                assert row["min_custom_stats"] == {"temp": 40}, row
                assert row["max_custom_stats"] == {"temp": 70}, row
                assert 54 < row["avg_custom_stats"]["temp"] < 56, row
                assert row["total_custom_stats"]["misses"] >= 60, row
                assert row["avg_cpu_usage"] == {"global": 30}, row
                assert "avg_gpu_usage" not in row or row["avg_gpu_usage"] == {}, row
            assert any(row["max_custom_stats"] == {"temp": 70} for row in daily), daily
            log = program.output()
            assert "avg_gpu_usage.global" in log and "more than one sample of the unit 1" in log, log[-2000:]
            assert program.stop() == 0
        assert version(path) == [(10, 0)]
        assert len(glob.glob(path + ".v9-*.bak")) == 1
        # It stays at version 10 without custom metrics, and the values stay.
        program, url = start_api_server(directory, custom_config(directory, tsdb, QUERIES), FLAGS)
        with program:
            again = get(url + "/api/v1/units?from=%d" % (now - 7200), {"X-Grafana-User": "ann"}).json["data"][0]
            assert again["min_custom_stats"] == {"temp": 40}
        assert version(path) == [(10, 0)]
        tool("db", "verify", "--db", path)
        copy = os.path.join(directory, "copy.db")
        assert tool("db", "copy", "--from", path, "--to", copy).rstrip().endswith("equal")
        assert version(copy) == [(10, 0)]
        assert read(copy, "SELECT min_custom_stats FROM units") == read(path, "SELECT min_custom_stats FROM units")


def test_an_older_program_writes_again(directory):
    """The way back and forth: the statements of the reference work on our file, and what they wrote counts afterwards."""
    path = database_path(directory)
    create(path).close()
    with start_api_server(directory, idle_config(directory), FLAGS)[0]:
        pass
    now = int(time.time())
    row = {"resource_manager": "slurm", "cluster_id": "hpc", "uuid": "7", "project": "p", "username": "ann", "groupname": "", "name": "j",
           "started_at": local(now - 500) + "+0000", "started_at_ts": (now - 500) * 1000, "ended_at_ts": (now - 100) * 1000, "ignore": 0,
           "total_time_seconds": {"walltime": 400}, "num_updates": 1, "last_updated_at": local(now)}
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        insert(db, "units", [row])
        insert(db, "projects", [{"cluster_id": "hpc", "name": "p", "users": ["ann"], "tags": [], "last_updated_at": local(now)}])
        insert(db, "usage", [{"cluster_id": "hpc", "username": "ann", "project": "p", "num_units": 1, "last_updated_at": local(now)}])
        db.execute("UPDATE units SET state = 'COMPLETED', last_updated_at = ? WHERE uuid = '7'", (local(now + 1),))
    program, url = start_api_server(directory, idle_config(directory), FLAGS)
    with program:
        seen = get(url + "/api/v1/usage/current?from=%d&to=%d" % (now - DAY, now + DAY), {"X-Grafana-User": "ann"}).json["data"]
        assert seen[0]["total_time_seconds"] == {"walltime": 400}, seen
    assert version(path) == [(9, 0)]


if __name__ == "__main__":
    sys.exit(run_tests([test_figures_of_version_9, test_figures_of_version_10, test_refused_databases, test_people_who_left,
                        test_custom_metrics, test_an_older_program_writes_again], "ceems-migration-", together=2))
