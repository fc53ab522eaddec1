#!/usr/bin/env python3
"""cacct on a terminal, with a stand-in for the API server: pages, bold titles, the list with bars, and `cacct top`."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

from cacct_test import CACCT, HOSTILE, OWN, UNITS, api_answer, config, run
from harness import FakeHttp, run_tests, wait_until, write


class Terminal:
    """A run of cacct on a terminal of `rows` and `columns`."""

    def __init__(self, directory, arguments, rows=12, columns=60, program=CACCT, **more):
        environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "TZ": "UTC", "TERM": "xterm"}
        environment.update(more)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(program, [program] + arguments, environment)
        self.text = b""

    def read(self, until=None, timeout=90):
        """Reads to the end, or until the text appears."""
        end = time.monotonic() + timeout
        while until is None or until not in self.text:
            ready = select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]
            assert ready, (until, self.text)
            try:
                piece = os.read(self.fd, 65536)
            except OSError:  # the program has closed the terminal
                piece = b""
            if not piece:
                assert until is None, (until, self.text)
                break
            self.text += piece
        return self.text

    def status(self):
        self.read()
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def terminal(directory):
    """Long tables are paged, short ones are not, and bold titles appear only where they are wanted."""
    units = [dict(UNITS[1], uuid="job%03d" % i) for i in range(100)]
    with FakeHttp(lambda path, *rest: api_answer(path, *rest, units=units)) as api:
        write(directory + "/ceems/config.yml", config(api))
        whole = Terminal(directory, ["-o", "jobid", "--no-pager"])
        assert whole.status() == 0 and b"job099" in whole.text and b"\x1b[1m" in whole.text, whole.text
        for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            other = Terminal(directory, ["-o", "jobid", "--no-pager"], **plain)
            assert other.status() == 0 and b"\x1b" not in other.text and b"job099" in other.text, other.text
        short = Terminal(directory, ["-o", "jobid"], rows=200)
        assert short.status() == 0 and b"job099" in short.text, short.text
        if not os.path.exists("/usr/bin/less"):
            print("SKIPPED pager: /usr/bin/less is not installed")
            return
        for rows, columns in ((12, 60), (200, 8)):  # too long, too wide
            paged = Terminal(directory, ["-o", "jobid"], rows=rows, columns=columns)
            paged.read(b"job")
            time.sleep(0.3)
            assert os.waitpid(paged.pid, os.WNOHANG) == (0, 0), "the pager waits for the user"
            assert rows > 100 or b"job099" not in paged.read(b":"), paged.text
            if rows < 100:
                os.write(paged.fd, b"G")
                paged.read(b"job099")
            os.write(paged.fd, b"!")  # would start a shell
            paged.read(b"Command not available")
            os.write(paged.fd, b"\nq")
            assert paged.status() == 0, paged.text
        # Leaving early is no error.
        units.extend(dict(UNITS[1], uuid="more%05d" % i) for i in range(20000))
        early = Terminal(directory, ["-o", "jobid"])
        early.read(b"job00")
        os.write(early.fd, b"q")
        assert early.status() == 0, early.text


LIST_COLUMNS = ["uuid", "array", "started", "cpu", "gpu", "kwh", "cost", "name", "state", "user", "project"]


def site_answer(units, rows, charts=(), priced=True):
    """An API server that knows prices, lists and series; `rows` have LIST_COLUMNS."""
    def handler(path, query, body):
        if path == "/api/v1/site":
            data = [{"priced": priced, "currency": "EUR"}]
        elif path == "/api/v1/units/list":
            data = {"columns": LIST_COLUMNS, "rows": rows() if callable(rows) else rows}
        elif path == "/api/v1/units/series":
            data = list(charts)
        else:
            return api_answer(path, query, body, units=units)
        return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()
    return handler


def gpu_line(index, value, start=1700000000000):
    return {"name": "gpu_use", "unit": "percent", "labels": {"hostname": "g1", "index": str(index), "gpuiid": ""},
            "points": [[start + 60000 * i, value] for i in range(11)]}


def listing(directory):
    """On a terminal, jobs are a list that fits it, with costs; a pipe still gets the table."""
    units = [dict(UNITS[0], avg_gpu_usage={"global": 46.0}, total_gpu_energy_usage_kwh={"total": 3.7}), UNITS[1]]
    rows = [["7", None, 1700000000000, 50, 46, 4.95, 1.2378], ["8", None, 1700000000000, 25, None, 0, 0.001]]
    with FakeHttp(site_answer(units, rows, [gpu_line(0, 98), gpu_line(1, 0)])) as api:
        write(directory + "/ceems/config.yml", config(api))
        for columns, shown, hidden in ((120, ["ELAPSED", "4.95 kWh", "1.24", "EUR", "2023-11-14", "50%", "500 mWh", "< 0.01", "1 job"], ["│"]),
                                       (60, ["JOB", "STATE", "COMPLETED", "4.95 kWh"], ["START", "│"])):
            seen = Terminal(directory, [], columns=columns, rows=40, NO_COLOR="1")
            assert seen.status() == 0, seen.text
            text = seen.text.decode().replace("\r\n", "\n")
            assert all(word in text for word in shown) and not any(word in text for word in hidden), text
            assert max(map(len, text.splitlines())) <= columns and "\x1b" not in text and "\u202e" not in text, text
        assert [path for _, path, _ in api.seen[:3]] == ["/api/v1/units", "/api/v1/site", "/api/v1/units/list"], api.seen
        assert api.seen[2][2]["uuid"] == ["7", "8"] and "user" not in api.seen[2][2], api.seen[2]
        bold = Terminal(directory, [], columns=100, rows=40)
        assert bold.status() == 0 and bold.text.startswith(b"\x1b[1mJOB"), bold.text
        for other in (["-o", "jobid"], ["--long"], ["--csv"], ["--html"], ["--markdown"], ["--json"], ["-P"]):
            seen, piped = Terminal(directory, other, rows=200, columns=400, NO_COLOR="1"), run(directory, *other)
            assert seen.status() == 0 and seen.text.decode().replace("\r\n", "\n") == piped.stdout.decode(), (other, seen.text)
        assert "│ JOB ID" in run(directory).stdout.decode()
        # Strips, the least used GPU first, also in a pipe; the terminal's character set decides.
        strips = run(directory, "--gpus", env={"LANG": "C.UTF-8"}).stdout.decode()
        assert re.search(r"\n7 .*\n  g1 GPU 1  _{60}   0%\n  g1 GPU 0  █{60}  98%\n8 ", strips), strips
        assert api.seen[-1][2]["metric"] == ["gpu_use"] and api.seen[-1][2]["by"] == ["gpu"] and api.seen[-1][2]["uuid"] == ["7"], api.seen[-1]
        assert api.seen[-1][2]["from"] == ["1700000000"] and api.seen[-1][2]["to"] == ["1700000600"], api.seen[-1]
        plain = run(directory, "--gpus", env={"LC_ALL": "C"}).stdout.decode()
        assert "  g1 GPU 0  " + 60 * "@" in plain and not re.search(r"[▁-█…]", plain), plain
        for arguments in (["--gpus", "--csv"], ["--gpus", "-o", "jobid"]):
            done = run(directory, *arguments)
            assert done.returncode == 1 and b"--gpus cannot be combined" in done.stderr, done
        # Without prices, and from a server that knows none of this, there is the list without costs.
        for handler in (site_answer(units, rows, priced=False), lambda path, *rest: (404, "text/plain", b"no") if path not in (
                "/api/v1/units", "/api/v1/usage/current") else api_answer(path, *rest, units=units)):
            api.handler = handler
            done = run(directory, "--gpus")
            assert done.returncode == 0 and "4.95 kWh" in done.stdout.decode() and "EUR" not in done.stdout.decode(), done
        assert b"GPUs of job 7: the API server answered with HTTP status 404" in done.stderr, done
        # Nothing found: a hint, but not in what scripts read.
        api.handler = lambda *_: (200, "application/json", b'{"status":"success","data":[]}')
        none = Terminal(directory, [])
        assert none.status() == 0 and none.text == b"No jobs today; try -S now-1weeks\r\n", none.text
        none = Terminal(directory, ["-S", "2024-01-02"])
        assert none.status() == 0 and b"No jobs since 2024-01-02; try an earlier -S" in none.text, none.text
        done = run(directory)
        assert done.returncode == 0 and "Summary" in done.stdout.decode() and not done.stderr, done


def shows_keys(terminal):
    """Whether the terminal writes what is typed, and hands it over by lines."""
    flags = termios.tcgetattr(terminal.fd)[3]
    return bool(flags & termios.ECHO and flags & termios.ICANON)


def top(directory):
    """The running jobs, again and again, until a key or a signal ends it; the terminal is always as it was before."""
    now = int(time.time()) * 1000
    rows = [["7", None, now - 3600000, 50, 46, 4.95, None, HOSTILE, "RUNNING", OWN, "physics"],
            ["8", "6_1", now - 60000, 25, None, 0.5, None, "b", "RUNNING", OWN, "physics"]]
    charts = [{"name": name, "unit": "", "limit": limit, "points": [[now - 60000, last / 2], [now - 1000, last]]}
              for name, limit, last in (("cpu", 32, 16), ("memory", 100, 25), ("power", 0, 612.4))] + [gpu_line(0, 98, now - 600000)]
    enter, leave = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
    with FakeHttp(site_answer(UNITS, rows, charts)) as api:
        write(directory + "/ceems/config.yml", config(api))
        once = run(directory, "top")
        text = once.stdout.decode()
        assert once.returncode == 0 and "\x1b" not in text and "\u202e" not in text and not once.stderr, once
        assert text.startswith("2 running jobs, 1.22 kW\n"), text
        assert re.search(r"^7  .* 01:00:\d\d  50%  25%  98%  612 W  █{20}  4.95 kWh$", text, re.M), text
        (_, path, query), = [one for one in api.seen if one[1] == "/api/v1/units/list"]
        assert query["user"] == [OWN] and query["state"] == ["running"] and "running" in query and "from" not in query, query
        assert {query["uuid"][0] for _, path, query in api.seen if path == "/api/v1/units/series"} == {"7", "8"}, api.seen
        # Without measurements: averages since the start.
        api.handler = site_answer(UNITS, rows)
        text = run(directory, "top").stdout.decode()
        assert text.startswith("2 running jobs, ~ average since the start\n") and " ~50% " in text and "POWER" not in text, text
        api.handler = site_answer(UNITS, [])
        assert run(directory, "top").stdout == b"0 running jobs\n"
        refused = run(directory, "top", "7")
        assert refused.returncode == 1 and b"unexpected argument '7'" in refused.stderr, refused
        api.handler = lambda *_: (500, "text/plain", b"")
        failed = Terminal(directory, ["top"])
        assert failed.status() == 1 and enter not in failed.text and b"HTTP status 500" in failed.text, failed.text

        api.handler = site_answer(UNITS, rows, charts)
        for key, status in ((b"q", 0), (b"\x03", -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP),
                            (b"\x1c", -signal.SIGQUIT), (signal.SIGSEGV, None)):
            seen = Terminal(directory, ["top"], rows=12, columns=100)
            seen.read(b"6_1")
            assert enter in seen.text and b"q quits" in seen.text and not shows_keys(seen), seen.text
            assert HOSTILE.encode() not in seen.text and b"owned\x07" not in seen.text and "\u202e".encode() not in seen.text, seen.text
            if isinstance(key, bytes):
                os.write(seen.fd, key)
            else:
                os.kill(seen.pid, key)
            seen.read(leave)
            wait_until("the terminal is as it was", lambda: shows_keys(seen))
            got = seen.status()
            assert got == status if status is not None else got != 0, (key, got)
        # Stopped and continued, resized, and a server that fails for a while.
        state = {"status": 200}
        good = api.handler
        api.handler = lambda *request: good(*request) if state["status"] == 200 else (state["status"], "text/plain", b"")
        # A shell with jobs, because the kernel stops no program that nothing could continue.
        seen = Terminal(directory, ["-mc", CACCT + " top; echo STOP''PED; sleep 1; fg; echo status $?"], rows=12, columns=100, program="/bin/sh")
        seen.read(b"6_1")
        os.write(seen.fd, b"\x1a")
        seen.read(b"STOPPED")
        assert seen.text.rindex(leave) < seen.text.rindex(b"STOPPED")
        seen.text = b""
        seen.read(enter)
        seen.read(b"6_1")
        assert not shows_keys(seen)
        seen.text = b""
        fcntl.ioctl(seen.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 2, 40, 0, 0))
        seen.read(b"\x1b[J")
        seen.read(b"\x1b[J")
        frame = seen.text.split(b"\x1b[H")[-1].decode()
        assert len(frame.split("\r\n")) == 2 and all(len(re.sub("\x1b.*", "", line)) <= 40 for line in frame.split("\r\n")), frame
        state["status"] = 503
        count = len(api.seen)
        wait_until("another request", lambda: len(api.seen) > count)
        fcntl.ioctl(seen.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 100, 0, 0))
        seen.read(b"HTTP status 503")
        seen.text, state["status"] = b"", 200
        seen.read(b"6_1")
        os.write(seen.fd, b"xQ")
        seen.read(b"status 0")
        assert seen.status() == 0


if __name__ == "__main__":
    sys.exit(run_tests((terminal, listing, top), "ceems-cacct-"))
