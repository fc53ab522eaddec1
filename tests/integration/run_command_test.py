#!/usr/bin/env python3
"""`ceems_exporter run` as an ordinary user: exit statuses and signals of its command, CPU time that agrees with what the command itself
counts, reports that agree with the data, what is left after kill -9, names and links that somebody planted, a job of several nodes
with a srun that is a script, marks of the command, and processes and jobs that run already."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

from harness import BIN, PATIENCE, need_programs, run_tests, wait_until, write

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(HERE, "..", "..", "apps", "ceems_mark")
MARK = os.path.abspath(os.path.join(BIN, "ceems_mark"))
EXPORTER = os.path.abspath(os.path.join(BIN, "ceems_exporter"))
NOBODY = 65534
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
# Burns CPU time, not time: in itself, in a child that it waits for, and in an orphan. Prints what the kernel has counted of the first two.
BURN = """import os, sys
def burn(seconds):
    begin = sum(os.times()[:2])
    while sum(os.times()[:2]) - begin < seconds:
        pass
own, child, orphan = (float(word) for word in sys.argv[1:4])
read, write = os.pipe()
if orphan and os.fork() == 0:
    if os.fork() == 0:
        burn(orphan)
        os.write(write, b"x")
    os._exit(0)
if orphan:
    os.wait()
if child and os.fork() == 0:
    burn(child)
    os._exit(0)
burn(own)
if child:
    os.wait()
if orphan:
    os.read(read, 1)
print(sum(os.times()[:4]))
"""
SRUN = """#!/bin/sh
# Starts what follows the options on the nodes n1 and n2, as srun does; n3 is down.
while :; do
  case "$1" in
    --*) echo "$1" >> "$FAKE_SRUN_LOG"; shift ;;
    *) break ;;
  esac
done
trap 'kill $agents' TERM
SLURMD_NODENAME=n1 "$@" &
agents=$!
SLURMD_NODENAME=n2 "$@" &
agents="$agents $!"
wait
wait
"""


MARKER = """#include <stdio.h>
#include "ceems_mark.h"
int main(void) {
  int step;
  ceems_mark_begin("inner");
  for (step = 0; step <= 20; ++step) {
    ceems_mark_progress(step, "iteration");
  }
  ceems_mark_fom("speed", 83.5, "ns/day");
  ceems_mark_end("inner");
  printf("%lu\\n", ceems_mark_dropped());
  fflush(stdout);
  getchar(); /* lives until its connection was looked at */
  return 0;
}
"""


def environment(more=None):
    kept = {name: value for name, value in os.environ.items() if not re.match("SLURM|PBS|LSB|CUDA", name)}
    return {**kept, "PATH": "/usr/bin:/bin", **(more or {})}


def as_user(words):
    """The same command as a user without any privilege."""
    if os.geteuid() != 0:
        return words
    return ["/usr/bin/setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups", "--no-new-privs"] + words


def prepare(directory):
    """A folder that the user can write to."""
    path = os.path.join(directory, "work")
    os.mkdir(path, 0o755)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    return path


def run(directory, words, flags=(), env=None, data=None):
    done = subprocess.run(as_user([EXPORTER, "run", *flags, "--", *words]), cwd=directory, env=environment(env), input=data,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "ERROR: " not in done.stderr, done.stderr  # of a sanitizer
    return done


def start(directory, words, flags=(), env=None):
    return subprocess.Popen(as_user([EXPORTER, "run", *flags, "--", *words]), cwd=directory, env=environment(env),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def load(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8") as f:
        return json.load(f)


def data_of(directory):
    """The one folder of data below it."""
    found = [name for name in os.listdir(directory) if name.startswith("ceems-")]
    assert len(found) == 1, found
    return os.path.join(directory, found[0])


def summaries(data):
    return {name[:-4]: load(data, name) for name in sorted(os.listdir(data)) if name.endswith(".sum")}


def exit_statuses(directory):
    work = prepare(directory)
    write(os.path.join(work, "plain"), "no program\n", 0o644)
    for words, status in [(["/bin/true"], 0), (["/bin/sh", "-c", "exit 3"], 3), (["/bin/sh", "-c", "exit 255"], 255),
                          (["/bin/sh", "-c", "kill -KILL $$"], 137), (["/bin/sh", "-c", "kill -SEGV $$"], 139),
                          (["./none"], 127), (["./plain"], 126)]:
        done = run(work, words, ["--dir=out"])
        assert done.returncode == status, (words, done)
    assert load(os.path.join(work, "out-2"), "report.json")["exit_status"] == 3
    assert sorted(os.listdir(work)) == ["out", "out-2", "out-3", "out-4", "out-5", "out-6", "out-7", "plain"], os.listdir(work)
    # The reader of stderr is gone.
    read, closed = os.pipe()
    os.close(read)
    done = subprocess.run(as_user([EXPORTER, "run", "--", "/bin/sh", "-c", "sleep 1.2; exit 9"]), cwd=work, env=environment(), stderr=closed,
                          timeout=PATIENCE, check=False)
    os.close(closed)
    assert done.returncode == 9, done
    assert "none: no such program" in run(work, ["./none"], ["--no-report"]).stderr


def streams_and_flags(directory):
    work = prepare(directory)
    done = run(work, ["/bin/sh", "-c", 'cat; echo "$1" "$2"; echo err >&2', "x", "--dir=/none", "a  b"], data="line\n")
    assert done.stdout == "line\n--dir=/none a  b\n" and "err\n" in done.stderr, done
    assert re.search(r"^\[ceems\] measuring 1 node every 1 s, energy: .*CPUs .*; data: \./ceems-\d+/$", done.stderr, re.M), done.stderr
    assert re.search(r"^\[ceems\] 00:00:0\d · .*J \(", done.stderr, re.M), done.stderr
    for flags in (["--interval=1ms"], ["--fanout=srun"], ["--fanout=ssh"], ["--max-size=0"], ["--unknown"]):
        done = run(work, ["/bin/echo", "ran"], flags)
        assert done.returncode == 1 and done.stdout == "", (flags, done)
    done = subprocess.run([EXPORTER, "run", "/bin/echo", "ran"], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 1 and "after '--'" in done.stderr and done.stdout == "", done
    done = subprocess.run([EXPORTER, "run", "--help"], capture_output=True, text=True, env=environment(), check=True)
    assert "--interval" in done.stdout and "--agent" not in done.stdout, done.stdout


def cpu_time(directory):
    work = prepare(directory)
    burn = os.path.join(directory, "burn.py")
    write(burn, BURN)
    for own, child, orphan in [(0.5, 0, 0), (0.3, 0.5, 0), (0.2, 0.2, 0.6)]:
        done = run(work, [PYTHON, burn, str(own), str(child), str(orphan)], ["--interval=100ms"])
        assert done.returncode == 0, done
        data = data_of(work)
        report = load(data, "report.json")
        # The orphan also took time to be forked, and all of them to end.
        expected = float(done.stdout) + orphan
        assert expected - 0.03 <= report["cpu_seconds"] <= expected + 0.3, (report, expected)
        (node,) = report["nodes"]
        (summary,) = summaries(data).values()
        assert node == summary, (node, summary)
        assert abs(report["cpu_seconds"] - summary["cpu_seconds"]) < 1e-9
        assert abs(report["energy_joules"] - sum(summary["energy_j"].values())) < 1e-6
        assert report["energy_joules"] > 0 and summary["ended"] and summary["samples"] >= 2, report
        assert summary["method"].get("other", summary["method"].get("package")), summary
        shutil.rmtree(data)


def files(directory):
    """The data is private, samples can be unpacked by anybody's tools, and pages load nothing."""
    work = prepare(directory)
    run(work, ["/bin/sleep", "0.5"], ["--interval=100ms", "--name=x"])
    data = os.path.join(work, "ceems-x")
    assert os.listdir(work) == ["ceems-x"]
    assert stat.S_IMODE(os.stat(data).st_mode) == 0o700
    node = next(iter(summaries(data)))
    assert sorted(os.listdir(data)) == sorted([node + ".cjf", node + ".sum", "report.html", "report.json", "report.txt", "run.json"])
    assert all(stat.S_IMODE(os.stat(os.path.join(data, name)).st_mode) == 0o600 for name in os.listdir(data))
    lines = subprocess.run(["zstdcat", os.path.join(data, node + ".cjf")], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].startswith('#ceems-jobfile 1 {"job":"'), lines[0]
    assert any(re.fullmatch(r'ceems_compute_unit_energy_joules_total\{hostname="[^"]+",uuid="\d+",domain="\w+"\} \S+ \d{13}', line)
               for line in lines), lines
    with open(os.path.join(data, "report.html"), encoding="utf-8") as f:
        page = f.read()
    assert "<svg" in page and "http:" not in page and "https:" not in page and "<script" not in page


def signals(directory):
    work = prepare(directory)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        ready = os.path.join(work, "ready-%d" % number)
        program = "import signal, sys\ncaught = []\nsignal.signal(%d, lambda number, frame: caught.append(number))\nopen(%r, 'w').close()\n" \
                  "while not caught:\n    signal.pause()\nsys.exit(7)\n" % (number, ready)
        running = start(work, [PYTHON, "-c", program], ["--dir=out"])
        wait_until("the program waits", lambda path=ready: os.path.exists(path))
        running.send_signal(number)
        output, errors = running.communicate(timeout=PATIENCE)
        assert running.returncode == 7, (number, running.returncode, output, errors)
    # A signal that ends the command is said as a shell does.
    running = start(work, ["/bin/sh", "-c", "touch asleep; exec sleep 1000"], ["--dir=last"])
    wait_until("the program sleeps", lambda: os.path.exists(os.path.join(work, "asleep")))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=PATIENCE)
    assert running.returncode == 143, running.returncode
    assert load(os.path.join(work, "last"), "report.json")["exit_status"] == 143


def killed(directory):
    """After kill -9, the command goes on, and the report can be made of what is there."""
    work = prepare(directory)
    program = "touch began; while [ ! -e stop ]; do sleep 0.05; done; touch ended"
    running = start(work, ["/bin/sh", "-c", program], ["--interval=100ms", "--name=k"])
    data = os.path.join(work, "ceems-k")
    wait_until("the first data", lambda: os.path.isdir(data) and summaries(data))
    wait_until("the command runs", lambda: os.path.exists(os.path.join(work, "began")))
    running.kill()
    running.wait()
    running.stdout.close()
    running.stderr.close()
    write(os.path.join(work, "stop"), "")
    wait_until("the command ends", lambda: os.path.exists(os.path.join(work, "ended")))
    merged = subprocess.run(as_user([EXPORTER, "run", "--merge", data]), capture_output=True, text=True, env=environment(), check=True)
    assert "The end of the run was not recorded on" in merged.stdout, merged
    report = load(data, "report.json")
    assert len(report["nodes"]) == 1 and not report["nodes"][0]["ended"], report
    for path in ("/none", "/", work):
        done = subprocess.run(as_user([EXPORTER, "run", "--merge", path]), capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 1 and done.stderr.startswith("ceems_exporter run: "), done


def hostile(directory):
    work = prepare(directory)
    # Another user has put links where the data would go.
    victim = os.path.join(directory, "victim")
    os.mkdir(victim, 0o777)
    os.chmod(victim, 0o777)
    os.symlink(victim, os.path.join(work, "ceems-x"))
    name = "</title><script>alert(1)</script>\x1b[31m"
    done = run(work, ["/bin/true"], ["--dir=ceems-x", "--name=" + name])
    assert done.returncode == 0 and os.listdir(victim) == [], (done, os.listdir(victim))
    data = os.path.join(work, "ceems-x-2")
    assert load(data, "report.json")["name"] == name
    for page in ("report.html", "report.txt"):
        with open(os.path.join(data, page), encoding="utf-8") as f:
            text = f.read()
        assert page == "report.txt" or "<script" not in text, text
        assert "\x1b" not in text, text
    # Identifiers of jobs are no paths.
    done = run(work, ["/bin/true"], env={"SLURM_JOB_ID": "../../evil", "SLURMD_NODENAME": "/tmp/x", "SLURM_JOB_NODELIST": "n[1-99999999]"})
    assert done.returncode == 0, done
    assert sorted(os.listdir(work)) == ["ceems-_.._.._evil", "ceems-x", "ceems-x-2"], os.listdir(work)
    assert os.listdir(directory) in (["work", "victim"], ["victim", "work"]), os.listdir(directory)


def without_a_place(directory):
    """Where nothing can be written, the command runs without being measured."""
    work = prepare(directory)
    locked = os.path.join(work, "locked")
    os.mkdir(locked, 0o555)
    done = run(locked, ["/bin/sh", "-c", "echo ran; exit 5"])
    assert done.returncode == 5 and done.stdout == "ran\n" and "[ceems] not measuring: " in done.stderr, done


def several_nodes(directory):
    work = prepare(directory)
    tools = os.path.join(directory, "tools")
    os.mkdir(tools, 0o755)
    write(os.path.join(tools, "srun"), SRUN, 0o755)
    log = os.path.join(work, "srun.log")
    data = os.path.join(work, "ceems-4711")
    env = {"PATH": tools + ":/usr/bin:/bin", "FAKE_SRUN_LOG": log, "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "water",
           "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "n[1-3]", "SLURMD_NODENAME": "n1", "SLURM_CLUSTER_NAME": "hpc-a"}
    # The job ends when the other node is being measured.
    program = "while [ ! -e ceems-4711/n2.sum ]; do sleep 0.05; done; exit 4"
    done = run(work, ["/bin/sh", "-c", program], ["--interval=100ms"], env)
    assert done.returncode == 4, done
    report = load(data, "report.json")
    assert [node["node"] for node in report["nodes"]] == ["n1", "n2"], report
    assert all(node["ended"] for node in report["nodes"]) and report["missing"] == ["n3"], report
    assert report["job"] == "4711" and report["name"] == "water" and report["exit_status"] == 4, report
    assert abs(report["cpu_seconds"] - sum(node["cpu_seconds"] for node in report["nodes"])) < 1e-9
    assert "[ceems] measuring 3 nodes every 0.1 s" in done.stderr and "1 of 3 nodes sent no data: n3." in done.stderr, done.stderr
    with open(log, encoding="utf-8") as f:
        assert f.read().split() == ["--overlap", "--ntasks=3", "--ntasks-per-node=1", "--nodes=3", "--mem=0", "--cpu-bind=none",
                                    "--kill-on-bad-exit=0"]
    # Other tasks of a step run their command alone.
    env.update({"SLURM_STEP_ID": "0", "SLURM_PROCID": "1"})
    done = run(work, ["/bin/sh", "-c", "echo ran; exit 6"], env=env)
    assert done.returncode == 6 and done.stdout == "ran\n" and done.stderr == "", done
    # Without srun, this node is measured alone.
    env = {name: value for name, value in env.items() if name not in ("PATH", "SLURM_STEP_ID", "SLURM_PROCID")}
    done = run(work, ["/bin/true"], ["--dir=alone"], env)
    assert done.returncode == 0 and "2 of 3 nodes sent no data: n2, n3." in done.stderr, done


def marks(directory):
    """What the command says about itself by the shell and by C, and what others say about it."""
    need_programs("cc")
    work = prepare(directory)
    write(os.path.join(directory, "marker.c"), MARKER)
    subprocess.run(["cc", "-std=c99", "-D_GNU_SOURCE", "-I", HEADERS, "-o", os.path.join(work, "marker"),
                    os.path.join(directory, "marker.c")], check=True)
    program = "set -e; echo $CEEMS_MARK_SOCKET > socket.tmp; mv socket.tmp socket\n" \
              "%(mark)s -v begin solve; while [ ! -e go ]; do sleep 0.05; done; %(mark)s -v result step 40\n" \
              "%(mark)s -v result step 10; mkfifo pipe; ./marker < pipe > said & exec 3> pipe; while [ ! -s said ]; do sleep 0.05; done\n" \
              "%(mark)s -v end solve; exec 3>&-; wait; cat said; %(mark)s -v begin open; sleep 1.2" % {"mark": MARK}
    running = start(work, ["/bin/sh", "-c", program], ["--interval=100ms", "--name=m"], {"TMPDIR": work})
    wait_until("the command runs", lambda: os.path.exists(os.path.join(work, "socket")))
    with open(os.path.join(work, "socket"), encoding="utf-8") as f:
        socket = f.read().strip()
    folder = os.path.dirname(socket)
    assert os.path.dirname(folder) == work and stat.S_IMODE(os.stat(folder).st_mode) == 0o700, socket
    # Neither another process of the user nor root is a part of the run.
    for words, refused in [(as_user([MARK, "-v", "result", "step", "1000"]), "no_unit"),
                           ([MARK, "-v", "result", "step", "1000"], "other_user" if os.geteuid() == 0 else "no_unit")]:
        done = subprocess.run(words, env=environment({"CEEMS_MARK_SOCKET": socket}), capture_output=True, text=True, check=False)
        assert done.returncode != 0 and refused in done.stderr, done
    time.sleep(1)  # so long that the region has an energy
    write(os.path.join(work, "go"), "")
    output, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0 and output == "0\n", (running.returncode, output, errors)
    data = os.path.join(work, "ceems-m")
    report = load(data, "report.json")
    (node,) = report["nodes"]
    results = {result["result"]: result for result in report["results"]}
    assert {name: result["n"] for name, result in results.items()} == {"step": 50, "iteration": 20}, results
    assert abs(results["step"]["joules_per"] - report["energy_joules"] / 50) < 1e-9, report
    phases = {phase["region"]: phase for phase in report["phases"]}
    assert set(phases) == {"solve", "inner", "open"} and all(phase["count"] == 1 for phase in phases.values()), phases
    solve = phases["solve"]
    assert 1 <= solve["seconds"] <= report["elapsed_seconds"] + 1 and 0 < solve["energy_joules"] < report["energy_joules"], report
    assert "energy_joules" not in phases["inner"] and phases["open"]["energy_joules"] > 0, phases
    assert solve["energy_joules"] + phases["open"]["energy_joules"] <= report["energy_joules"] + 1e-6, report
    (fom,) = report["fom"]
    assert (fom["fom"], fom["unit"], fom["last"]) == ("speed", "ns/day", 83.5) and abs(fom["mean"] - 83.5) < 1e-9, fom
    assert re.search(r"^\[ceems\] step 50 · \S+ [mk]?J each$", errors, re.M), errors
    with open(os.path.join(data, "report.txt"), encoding="utf-8") as f:
        assert re.search(r"^solve +\S+ +\d+ % +\S+ [mk]?J", f.read(), re.M)
    lines = subprocess.run(["zstdcat", os.path.join(data, node["node"] + ".cjf")], capture_output=True, text=True, check=True).stdout
    assert re.search(r'^ceems_compute_unit_results_total\{hostname="[^"]+",uuid="\d+",result="step",unit=""\} 50 ', lines, re.M), lines
    assert not os.path.exists(folder), os.listdir(work)
    # Merging makes the same again, and without marks nothing of it is there.
    before = open(os.path.join(data, "report.json"), encoding="utf-8").read()
    subprocess.run(as_user([EXPORTER, "run", "--merge", data]), capture_output=True, env=environment(), check=True)
    assert open(os.path.join(data, "report.json"), encoding="utf-8").read() == before
    done = run(work, ["/bin/sh", "-c", "echo ${CEEMS_MARK_SOCKET-none}"], ["--no-marks", "--name=n"])
    assert done.stdout == "none\n" and load(os.path.join(work, "ceems-n"), "report.json")["phases"] == [], done


def contradictions(directory):
    """Flags that run nothing do not ignore a command."""
    work = prepare(directory)
    for words in (["--watch=1", "--", "/bin/echo", "ran"], ["--merge=x", "--", "/bin/echo", "ran"], ["--merge=x", "/bin/echo"],
                  ["--watch=1", "--merge=x"], ["--watch=x"], ["--watch=0"], ["--watch=job:"], ["--watch=job:4711_3"],
                  ["--watch=-1"], ["--watch=99999999999999999999"]):
        done = subprocess.run([EXPORTER, "run", *words], cwd=work, capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 1 and done.stdout == "", (words, done)
        assert len(done.stderr.splitlines()) == 1 and words[0].split("=")[0] in done.stderr, (words, done)
    assert os.listdir(work) == []


def watched_job(directory):
    """A job of SLURM that runs already: its processes are those with its number in their environment."""
    work = prepare(directory)
    number = "47110815"
    program = "import os, sys, time\nopen('began', 'w').close()\nwhile not os.path.exists('stop'):\n    time.sleep(0.02)\n"
    env = environment({"SLURM_JOB_ID": number, "SLURM_JOB_NAME": "wave", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_NUM_NODES": "3",
                       "SLURMD_NODENAME": "n2"})
    job = subprocess.Popen(as_user([PYTHON, "-c", program]), cwd=work, env=env)
    try:
        wait_until("the job runs", lambda: os.path.exists(os.path.join(work, "began")))
        for word in (number, "job:" + number):
            data = os.path.join(work, "by-" + word[:3])
            watcher = subprocess.Popen(as_user([EXPORTER, "run", "--watch=" + word, "--interval=100ms", "--dir=" + data]), cwd=work,
                                       env=environment(), stderr=subprocess.PIPE, text=True)
            wait_until("the first data", lambda path=data: os.path.isdir(path) and summaries(path))
            if word == number:
                watcher.send_signal(signal.SIGTERM)
            else:
                write(os.path.join(work, "stop"), "")
                job.wait()
            _, errors = watcher.communicate(timeout=PATIENCE)
            assert watcher.returncode == 0, errors
            report = load(data, "report.json")
            assert (report["job"], report["name"], report["missing"]) == (number, "wave", []), report
            assert [node["node"] for node in report["nodes"]] == ["n2"] and report["nodes"][0]["ended"], report
    finally:
        write(os.path.join(work, "stop"), "")
        job.wait()
    done = subprocess.run(as_user([EXPORTER, "run", "--watch=job:" + number]), cwd=work, env=environment(), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and "job %s of SLURM does not run on this node" % number in done.stderr, done


def watched(directory):
    """A process that runs already: what it uses from now on."""
    work = prepare(directory)
    program = "import os, sys, time\nfor word in ('before', 'after'):\n    begin = sum(os.times()[:2])\n" \
              "    while sum(os.times()[:2]) - begin < 0.5:\n        pass\n    open(word, 'w').close()\n" \
              "    while not os.path.exists('stop-' + word):\n        time.sleep(0.05)\n"
    burner = subprocess.Popen(as_user([PYTHON, "-c", program]), cwd=work, env=environment())
    try:
        wait_until("it has used CPU time", lambda: os.path.exists(os.path.join(work, "before")))
        flags = ["run", "--watch=%d" % burner.pid, "--interval=100ms", "--dir=w"]
        if os.geteuid() == 0:
            done = subprocess.run([EXPORTER, *flags], cwd=work, env=environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 1 and "belongs to another user" in done.stderr, done
        watcher = subprocess.Popen(as_user([EXPORTER, *flags]), cwd=work, env=environment(), stderr=subprocess.PIPE, text=True)
        data = os.path.join(work, "w")
        wait_until("the first data", lambda: os.path.isdir(data) and summaries(data))
        write(os.path.join(work, "stop-before"), "")
        wait_until("it has used more", lambda: os.path.exists(os.path.join(work, "after")))
        watcher.send_signal(signal.SIGTERM)
        _, errors = watcher.communicate(timeout=PATIENCE)
        assert watcher.returncode == 0, errors
        report = load(data, "report.json")
        assert 0.47 <= report["cpu_seconds"] <= 0.8 and report["job"] == str(burner.pid), report
        # One that ends.
        watcher = subprocess.Popen(as_user([EXPORTER, *flags, "--no-report"]), cwd=work, env=environment(), stderr=subprocess.PIPE, text=True)
        wait_until("the second watcher", lambda: os.path.isdir(data + "-2") and summaries(data + "-2"))
    finally:
        write(os.path.join(work, "stop-before"), "")
        write(os.path.join(work, "stop-after"), "")
        burner.wait()
    watcher.communicate(timeout=PATIENCE)
    assert watcher.returncode == 0 and all(node["ended"] for node in summaries(data + "-2").values())
    done = subprocess.run([EXPORTER, *flags], cwd=work, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "does not run" in done.stderr, done


def main():
    need_programs("zstdcat")
    if os.geteuid() == 0:
        need_programs("setpriv")
    begin = time.monotonic()
    status = run_tests([exit_statuses, streams_and_flags, cpu_time, files, signals, killed, hostile, without_a_place, several_nodes, marks, contradictions,
                        watched, watched_job],
                       "ceems-run-")
    print("run_command: %.0f s" % (time.monotonic() - begin))
    return status


if __name__ == "__main__":
    sys.exit(main())
