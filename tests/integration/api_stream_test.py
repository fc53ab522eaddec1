#!/usr/bin/env python3
"""Long responses need constant memory: two clients at once read all units of a large database, plain and compressed.

Usage: api_stream_test.py [rows]   (1000000 for the measurement that matters: less than 200 MB)"""

import http.client
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from api_database import World, create, insert, local
from harness import BIN, scratch, start_api_server, wait_until
import random

ROWS = int(sys.argv[1] if len(sys.argv) > 1 else 40000)
LIMIT = 200 << 20


def fill(path):
    world = World(random.Random(1), int(time.time()), units=1)
    unit = dict(world.units[0], cluster_id="hpc-a", username="ada", project="fluids", ignore=0, started_at_ts=1, ended_at_ts=1000,
                last_updated_at=local(1))
    database = create(path)
    database.commit()
    database.execute("PRAGMA synchronous = OFF")
    with database:
        for begin in range(0, ROWS, 50000):
            insert(database, "units", [dict(unit, uuid="%07d" % i) for i in range(begin, min(begin + 50000, ROWS))])
    database.close()


def peak(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1)) << 10


def read(url, headers, out):
    """Counts the rows (plain only) and bytes of the response as it arrives."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
    connection.request("GET", "/api/v1/units?from=0&to=2", headers=dict(headers, **{"X-Grafana-User": "ada"}))
    answer = connection.getresponse()
    assert answer.status == 200, answer.status
    rows = size = 0
    tail = b""
    while piece := answer.read(1 << 16):
        size += len(piece)
        joined = tail + piece
        rows += joined.count(b'"uuid":') - tail.count(b'"uuid":')
        tail = joined[-6:]
    out.append((rows, size))


def readable(url):
    """False while the server is still upgrading the file, which it does while it already answers."""
    request = urllib.request.Request(url + "/api/v1/units?from=0&to=1", headers={"X-Grafana-User": "ada"})
    try:
        with urllib.request.urlopen(request, timeout=60):
            return True
    except urllib.error.HTTPError as error:
        assert error.code == 503 and error.headers["Retry-After"], error
        return False


def main():
    with scratch("ceems-stream-") as directory:
        os.mkdir(os.path.join(directory, "data"))
        fill(os.path.join(directory, "data", "ceems.db"))
        config = ("ceems_api_server:\n  data:\n    path: %s/data\n    time_zone: UTC\n    update_interval: 1d\n" % directory)
        # AddressSanitizer delays the release of freed memory, by default up to 256 MB.
        options = (os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8").lstrip(":")
        program, url = start_api_server(directory, config, ["--storage.data.skip.delete.old.units", "--web.compression",
                                                            "--no-security.drop-privileges"], {"ASAN_OPTIONS": options})
        with program:
            wait_until("the database is upgraded", lambda: readable(url), 300)
            before = peak(program.pid)
            plain, packed = [], []
            started = time.monotonic()
            threads = [threading.Thread(target=read, args=(url, {}, plain)),
                       threading.Thread(target=read, args=(url, {"Accept-Encoding": "gzip"}, packed))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            after = peak(program.pid)
            took = time.monotonic() - started
        assert plain and plain[0][0] == ROWS, plain
        assert packed and packed[0][1] < plain[0][1] / 5, packed
        with open(os.path.join(BIN, "ceems_api_server"), "rb") as f:
            sanitized = b"__asan_init" in f.read()
        print("%d rows, %.0f MB in %.1f s; peak memory %.0f MB before, %.0f MB after%s" % (
            ROWS, plain[0][1] / 1e6, took, before / 1e6, after / 1e6, " (with AddressSanitizer)" if sanitized else ""))
        assert sanitized or after < LIMIT, after
        assert after - before < 70 << 20, after - before  # the two responses have 78 MB together


if __name__ == "__main__":
    main()
