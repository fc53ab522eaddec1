"""Processes identified by id and start time, listeners of ports, and children that end with the launcher."""

import ctypes
import os
import signal
import socket
import subprocess
import time

from . import Problem

PR_SET_PDEATHSIG = 1  # prctl(2)
_libc = ctypes.CDLL(None, use_errno=True)


def start_time(pid):
    """The start time of the process in clock ticks since boot (proc(5), field 22); None if the process does not exist or is a zombie."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return "unknown"


def _listening_inodes(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as f:
                rows = f.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:  # 0A: TCP_LISTEN
                yield fields[9]


def holder_of(port):
    """(pid, name) of a process that listens on the port; None if it cannot be determined."""
    wanted = {"socket:[%s]" % inode for inode in _listening_inodes(port)}
    if not wanted:
        return None
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            descriptors = os.listdir("/proc/%s/fd" % entry)
        except OSError:
            continue
        for fd in descriptors:
            try:
                if os.readlink("/proc/%s/fd/%s" % (entry, fd)) in wanted:
                    return int(entry), name_of(int(entry))
            except OSError:
                continue
    return None


def need_free_port(port, what, variable):
    """Raises Problem, with the process and advice, if something listens on 127.0.0.1:port."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            return
        except OSError as error:
            why = error.strerror
    holder = holder_of(port)
    by = "by %s (pid %d)" % (holder[1], holder[0]) if holder else "by a process of another user or container (%s)" % why
    raise Problem("port %d, for %s, is taken %s.\n  Stop that process, or choose another port: %s=%d make run"
                  % (port, what, by, variable, port + 1000))


class Child:
    """A program in its own process group, with its output in a file."""

    def __init__(self, name, arguments, log, credentials=None, before_exec=None):
        self.name, self.arguments, self.log = name, arguments, log
        if os.path.exists(log):
            os.replace(log, log + ".1")
        # Popen's `user` cannot be used: it changes the user before preexec_fn, which needs root to join cgroups.
        def prepare():
            if before_exec:
                before_exec()
            if credentials:
                os.setgroups([])
                os.setgid(credentials[1])
                os.setuid(credentials[0])
            # After setuid(), which clears this setting: end the child even if the launcher is killed.
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # Everything is on loopback, so proxies of the user must not be used.
        env = dict(os.environ, no_proxy="127.0.0.1,localhost", NO_PROXY="127.0.0.1,localhost")
        with open(log, "wb") as out:
            try:
                self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                                                start_new_session=True, preexec_fn=prepare)
            except (OSError, subprocess.SubprocessError) as error:
                raise Problem("cannot start %s: %s" % (name, error)) from error
        self.started = start_time(self.process.pid)

    @property
    def pid(self):
        return self.process.pid

    def ended(self):
        """None while the program runs, otherwise a description of how it ended."""
        code = self.process.poll()
        if code is None:
            return None
        if code < 0:
            return "was killed by signal %s" % signal.Signals(-code).name
        return "ended with status %d" % code

    def last_lines(self, count=12):
        try:
            with open(self.log, errors="replace") as f:
                return f.read().splitlines()[-count:]
        except OSError:
            return []

    def ask_to_stop(self):
        if self.process.poll() is None:
            self.process.terminate()

    def stop(self, seconds=8.0):
        """Waits for the program to end and kills it if it does not. Returns True if it had to be killed."""
        try:
            self.process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return True


def beside(work):
    """Runs work() in a copy of this process, which ends with it. Returns a function that waits for that and raises what went wrong."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            os.close(reading)
            work()
            status = 0
        except BaseException as error:
            os.write(writing, (str(error) or repr(error)).encode()[:4000])
        finally:
            os._exit(status)  # nothing of the copy is to be cleaned up or written again
    os.close(writing)

    def wait():
        with open(reading, "rb") as pipe:
            said = pipe.read().decode("utf-8", "replace")
        status = os.waitpid(pid, 0)[1]
        if status:
            raise Problem(said or "a process that prepares the demo ended with status %d" % os.waitstatus_to_exitcode(status))
    return wait


def end_stale(records):
    """Ends processes of an earlier run, identified by id and start time. Returns the names of those that still ran."""
    found = [r for r in records if r.get("started") is not None and start_time(r["pid"]) == r["started"]]
    for sig, seconds in ((signal.SIGTERM, 8.0), (signal.SIGKILL, 2.0)):
        left = [r for r in found if start_time(r["pid"]) == r["started"]]
        for record in left:
            try:
                os.kill(record["pid"], sig)
            except ProcessLookupError:
                pass
            except PermissionError as error:
                raise Problem("%s (pid %d) of an earlier run still exists and belongs to another user; stop it first"
                              % (record["name"], record["pid"])) from error
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(start_time(r["pid"]) == r["started"] for r in left):
            time.sleep(0.05)
    return [r["name"] for r in found]
