#!/usr/bin/env python3
"""`cacct check` with a stand-in for the API server: what it asks and prints, hostile scripts, servers that hang, and the hooks that run it
at submission, in the interpreters that run them at sites."""

import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

from harness import BIN, FakeHttp, ROOT, run_tests, scratch, write

CACCT = os.path.join(BIN, "cacct")
ROW = {"basis": {"kind": "family", "name": "train-#", "runs": 12, "days": 90},
       "expected": {"elapsed_s": {"mid": 28620, "low": 27000, "high": 30000}, "energy_kwh": {"mid": 1.2, "low": 0.9, "high": 1.6}},
       "held": {"share": 0.81, "of": 150}, "unused": {"gpus": 2},
       "suggestions": [{"rule": "gpu-unused", "text": "2 of 4 GPUs never ran a kernel.", "lines": ["--gres=gpu:2"],
                        "was": ["--gres=gpu:4"], "saves": {"kwh": 0.63}, "seen_in": 8}]}
BODY = json.dumps({"status": "success", "data": [ROW]}).encode()
LINE = "Expected: 1.20 kWh (900 Wh to 1.60 kWh), 7 h 57 min of time, by 12 runs of train-# in 90 days. Worth a change: #SBATCH --gres=gpu:2"
SCRIPT = "#!/bin/bash\n#SBATCH --job-name=train-7 --gres=gpu:4 -N1\n#SBATCH --mem=128G --time=12:00:00\nsrun python train.py\n"


class Server(FakeHttp):
    """Keeps the bodies of requests."""

    def __init__(self, answer=(200, BODY), delay=0):
        self.bodies = []

        def handler(path, _query, body):
            if path != "/api/v1/units/check":
                return 404, "text/plain", b"no"
            self.bodies.append(json.loads(body))
            time.sleep(delay)
            return answer[0], "application/json", answer[1]
        super().__init__(handler)


class Hanging:
    """A server that takes connections and requests, and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                self.taken.append(self.listener.accept()[0])
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.taken:
            connection.close()


def configured(directory, url):
    write(directory + "/ceems/config.yml", "ceems_api_server: {cluster_id: c0, web: {url: '%s'}}\n" % url)


def check(directory, *words, **more):
    environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory, "HOME": directory, "TZ": "UTC"}
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([CACCT, "check"] + list(words), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **more)


def answers(directory):
    """The request holds what the script and the command ask for, and the text, the line and the JSON what the server says."""
    script = write(directory + "/job.sh", SCRIPT)
    with Server() as api:
        configured(directory, api.url)
        done = check(directory, "--", "--mem=64G", "-A", "p", script, "--mem=1G")
        assert done.returncode == 0 and not done.stderr, done
        text = done.stdout.decode()
        for part in ("Check of train-7\n", "12 runs of train-# in 90 days\n", "  Energy    1.20 kWh (900 Wh to 1.60 kWh)\n",
                     "  Such ranges held for 81 % of 150 jobs.\n", "What such runs left unused\n  2 GPUs\n",
                     "       #SBATCH --gres=gpu:2          (was --gres=gpu:4)\n"):
            assert part in text, (part, text)
        assert api.bodies == [{"cluster_id": "c0", "form": "sbatch", "directives": ["--gres=gpu:4", "--mem=64G", "--nodes=1", "--time=12:00:00"],
                               "request": {"name": "train-7", "project": "p", "executable": "train.py", "cpus": 1, "nodes": 1, "gpus": 4,
                                           "memory_bytes": 64 << 30, "time_limit_s": 43200}}], api.bodies
        assert check(directory, "--json", script).stdout == BODY + b"\n"
        assert check(directory, "--brief", script).stdout.decode() == LINE + "\n"
        with open(script, "rb") as file:
            assert check(directory, "--brief", "-", stdin=file).stdout.decode() == LINE + "\n"
        for name, content, words, form, expected in (
                ("a.pbs", "#!/bin/sh\n#PBS -N water\n#PBS -l select=2:ncpus=8:ngpus=1\n./relax\n", ["-l", "walltime=1:00:00"], "pbs",
                 {"name": "water", "executable": "relax", "cpus": 16, "gpus": 2, "time_limit_s": 3600}),
                ("a.lsf", "#!/bin/sh\n#BSUB -J water -n 4 -W 60\n./relax\n", [], "lsf",
                 {"name": "water", "executable": "relax", "cpus": 4, "gpus": 0, "time_limit_s": 3600}),
                ("pod.yml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{resources: {limits: {cpu: 2}}}]}\n", [], "k8s",
                 {"name": "p", "cpus": 2, "nodes": 1, "gpus": 0})):
            done = check(directory, *words, write(directory + "/" + name, content))
            assert done.returncode == 0 and not done.stderr, done
            assert api.bodies[-1]["form"] == form and api.bodies[-1]["request"] == expected, api.bodies[-1]
        before = time.time()
        assert check(directory, "--deadline", "now+12hours", script).returncode == 0
        assert abs(api.bodies[-1]["deadline_ts"] / 1000 - before - 43200) < 120, api.bodies[-1]


def width(directory):
    """At a terminal, lines are as long as it is wide."""
    script = write(directory + "/job.sh", SCRIPT)
    row = dict(ROW, elsewhere=[{"partition": "cpu", "text": "word " * 60, "for": "all"}])
    with Server((200, json.dumps({"data": [row]}).encode())) as api:
        configured(directory, api.url)
        master, slave = pty.openpty()
        subprocess.run(["stty", "cols", "70"], stdin=slave, check=True)
        environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory}
        assert subprocess.run([CACCT, "check", script], env=environment, stdin=slave, stdout=slave, stderr=slave, timeout=60, check=False).returncode == 0
        os.close(slave)
        lines = os.read(master, 65536).decode().splitlines()
        os.close(master)
        assert len(lines) > 12 and 60 < max(map(len, lines)) <= 70, lines


def hostile(directory):
    """Hostile scripts cost little time and memory and send nothing to the terminal; a file that is not a script is an error with status 1."""
    with Server() as api:
        configured(directory, api.url)
        huge = directory + "/huge.sh"
        with open(huge, "wb") as file:
            file.write(b"#!/bin/sh\n#SBATCH -n2\n")
            file.truncate(100 << 20)
        binary = shutil.copy("/bin/true", directory + "/true")
        long_line = write(directory + "/long.sh", "#!/bin/sh\n#SBATCH -n 2 " + "x" * (100 << 20))
        escapes = write(directory + "/esc.sh", "#!/bin/sh\n#SBATCH -J '\x1b]0;owned\x07\x1b[31m' --mem='\x1b[2J'\n")
        for path, status in ((huge, 1), (binary, 1), (directory, 1), (directory + "/none", 1), (long_line, 0), (escapes, 0), ("/dev/null", 0)):
            started = time.monotonic()
            done = check(directory, path)
            assert done.returncode == status and time.monotonic() - started < 20, (path, done)
            assert done.stderr.count(b"\n") == status, done
            assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", done.stdout + done.stderr), done
        assert "\x1b" not in "".join(api.bodies[-2]["directives"]), api.bodies
        for words in ([], ["--form=x", "job"], ["--timeout=-1", huge], ["--json", "--brief", escapes], ["--deadline=yesterday", escapes]):
            done = check(directory, *words)
            assert done.returncode == 1 and done.stderr.startswith(b"cacct: error: ") and not done.stdout, (words, done)


def servers(directory):
    """Whatever becomes of the server, the job may be submitted: status 0, and with --brief no word, in time."""
    script = write(directory + "/job.sh", SCRIPT)
    for answer in ((500, b"broken"), (403, b""), (404, b"404 page not found"), (200, b"{}"), (200, b'{"data":[{},{}]}'), (200, b"\xff\x00")):
        with Server(answer) as api:
            configured(directory, api.url)
            done = check(directory, script)
            assert done.returncode == 0 and not done.stdout and done.stderr.count(b"\n") == 1, (answer, done)
            done = check(directory, "--brief", script)
            assert done.returncode == 0 and not done.stdout and not done.stderr, (answer, done)
    with Server(delay=30) as api:
        configured(directory, api.url)
        for words, least, most in ((["--brief"], 0.25, 5), (["--timeout=1000"], 0.9, 10)):
            started = time.monotonic()
            done = check(directory, *words, script)
            assert done.returncode == 0 and not done.stdout and least < time.monotonic() - started < most, (words, done)
            assert ("--brief" in words) == (done.stderr == b""), done
    configured(directory, "http://127.0.0.1:1")
    assert check(directory, "--brief", script).returncode == 0
    os.unlink(directory + "/ceems/config.yml")
    done = check(directory, script)
    assert done.returncode == 0 and b"no configuration file" in done.stderr, done
    assert check(directory, directory + "/none").returncode == 1


DRIVER = """
slurm = {SUCCESS = 0}
local open = io.open
io.open = function(path, mode) return open(path == "/proc/self/cmdline" and arg[2] or path, mode) end
dofile(arg[1])
local given = {type = arg[3], argv = arg[4] ~= "" and {arg[4]} or {}}
assert(slurm_cli_setup_defaults({}, false) == slurm.SUCCESS and slurm_cli_post_submit(0, 1, 2) == slurm.SUCCESS)
assert(slurm_cli_pre_submit(given, 0) == slurm.SUCCESS)
assert(slurm_cli_pre_submit(nil, 0) == slurm.SUCCESS)
"""


def slurm(directory):
    """The plugin prints one line, hands every word on as it is, and succeeds whatever happens."""
    interpreters = [name for name in ("lua5.1", "lua5.3", "lua5.4", "lua") if shutil.which(name)]
    if not interpreters:
        print("SKIPPED slurm: no Lua interpreter (lua5.3) is installed")
        return
    with open(os.path.join(ROOT, "packaging/slurm/cli_filter.lua"), encoding="utf-8") as file:
        text = file.read()
    assert text.count("\n") <= 60
    script = write(directory + "/it's a job.sh", SCRIPT)
    driver = write(directory + "/driver.lua", DRIVER)

    def run(lua, *words, kind="sbatch", program=CACCT):
        plugin = write(directory + "/cli_filter.lua", text.replace("/usr/bin/cacct", program))
        command = write(directory + "/cmdline", "")
        with open(command, "wb") as file:
            file.write(b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in ("sbatch",) + words))
        environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": directory}
        started = time.monotonic()
        done = subprocess.run([lua, driver, plugin, command, kind, words[-1] if words else ""], env=environment, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and not done.stdout, done
        return done.stderr.decode(), time.monotonic() - started

    evil = ["--comment=$(touch %s/owned)" % directory, "--job-name=`touch %s/owned`'; touch %s/owned; '" % (directory, directory),
            "-A", "\"\\\n&|<>*?~#'\udcff", "--mem=2G"]
    for lua in interpreters:
        with Server() as api:
            configured(directory, api.url)
            # A build with sanitizers is slower than the time that the plugin gives.
            shown = [run(lua, *evil, script)[0] for _ in range(5)]
            assert set(shown) <= {"", "sbatch: " + LINE + "\n"}, shown
            assert not os.path.exists(directory + "/owned")
            for body in api.bodies:
                assert body["request"]["name"] == evil[1][11:] and body["request"]["project"] == "\"\\\n&|<>*?~#'\ufffd", body
                assert body["request"]["memory_bytes"] == 2 << 30 and body["request"]["gpus"] == 4, body
            assert run(lua, script, kind="srun")[0] == "" and run(lua)[0] == "" and run(lua, script, program="/none/cacct")[0] == ""
            assert run(lua, "x" * 70000, script)[0] == ""
        line = write(directory + "/cacct", "#!/bin/sh\nprintf 'one\\ntwo\\n'\n", 0o755)
        assert run(lua, script, program=line)[0] == "sbatch: one\n"
        slow = write(directory + "/slow", "#!/bin/sh\nexec sleep 300\n", 0o755)
        shown, seconds = run(lua, script, program=slow)
        assert shown == "" and seconds < 30, seconds
        with Hanging() as server:
            configured(directory, server.url)
            shown, seconds = run(lua, script)
            assert shown == "" and seconds < 30, (shown, seconds)
            # Started by hand, cacct certainly comes as far as to ask.
            done = check(directory, "--timeout=5000", script)
            assert done.returncode == 0 and not done.stdout and done.stderr.count(b"\n") == 1 and server.taken, done


FAKE_PBS = """
import json, os
class Event:
    requestor = os.environ["REQUESTOR"]
    class job:
        Job_Name, queue, project, Account_Name, comment = "it's; touch owned", "gpu", "chem", None, None
        class Resource_List(dict):
            def __missing__(self, name):
                return None
        Resource_List = Resource_List(select="2:ncpus=8:ngpus=1", walltime="01:00:00")
    def accept(self):
        print(json.dumps(self.job.comment))
        raise SystemExit(0)
def event(found=Event()):
    return found
"""


def openpbs(directory):
    """The hook runs cacct as the user, notes one line, and accepts whatever happens."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("SKIPPED openpbs: needs root and setpriv")
        return
    os.chmod(directory, 0o755)
    with open(os.path.join(ROOT, "packaging/openpbs/ceems_check.py"), encoding="utf-8") as file:
        text = file.read()
    write(directory + "/pbs.py", FAKE_PBS)

    def run(program, user="nobody"):
        hook = write(directory + "/hook.py", text.replace("/usr/bin/cacct", program))
        started = time.monotonic()
        done = subprocess.run([sys.executable, hook], env={"REQUESTOR": user, "PYTHONPATH": directory}, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and not done.stderr, done
        return json.loads(done.stdout), time.monotonic() - started

    show = write(directory + "/show", "#!/bin/sh\nid -un\nfor word; do printf '<%s>' \"$word\"; done\n", 0o755)
    assert run(show)[0] == ("nobody\n<check><--brief><--timeout><280><--form><pbs><--><-N><it's; touch owned><-q><gpu><-P><chem>"
                            "<-l><select=2:ncpus=8:ngpus=1><-l><walltime=01:00:00>")
    slow = write(directory + "/slow", "#!/bin/sh\nexec sleep 300\n", 0o755)
    comment, seconds = run(slow)
    assert comment is None and seconds < 30, seconds
    with Hanging() as server:
        configured(directory, server.url)
        os.chmod(directory + "/ceems", 0o755)
        os.chmod(directory + "/ceems/config.yml", 0o644)
        asking = write(directory + "/asking", "#!/bin/sh\nXDG_CONFIG_HOME=%s exec %s \"$@\"\n" % (directory, CACCT), 0o755)
        comment, seconds = run(asking)
        assert comment is None and seconds < 30, (comment, seconds)
    for program, user in (("/none", "nobody"), (show, "root"), (show, "no such user"), ("/bin/false", "nobody")):
        assert run(program, user)[0] is None, program


if __name__ == "__main__":
    sys.exit(run_tests([answers, width, hostile, servers, slurm, openpbs], "ceems-check-"))
