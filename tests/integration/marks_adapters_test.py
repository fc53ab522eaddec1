#!/usr/bin/env python3
"""Adapters of marks, each with a small program and a socket that notes what arrives: MPI (a real one if there is an mpicc, else a stand-in
of one rank), Lightning (a stand-in of its trainer), pages of metrics, and log files with the patterns of docs/marks.md."""

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading

from harness import BIN, ROOT, FakeHttp, free_port, need_programs, run_tests, wait_until, write

SENDERS = os.path.join(ROOT, "apps", "ceems_mark")
TOOL = os.path.join(BIN, "ceems_mark")


def total(marks, name):
    return sum(float(mark.split()[2]) for mark in list(marks) if mark.startswith("result %s " % name))


class Exporter:
    """Takes all marks. `marks` are those that arrived, of all connections."""

    def __init__(self, directory):
        self.path, self.marks, self.callers = directory + "/mark.sock", [], []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.env = {"PATH": os.environ["PATH"], "CEEMS_MARK_SOCKET": self.path, "LC_ALL": "C.UTF-8", "HOME": directory}
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                reader = threading.Thread(target=self.read, args=(caller,), daemon=True)
                with contextlib.suppress(OSError):  # it has ended already
                    caller.send(b"ok")
                reader.start()
                self.callers.append(reader)

    def read(self, caller):
        with caller:
            while True:
                try:
                    message = caller.recv(300)
                except ConnectionResetError:  # it has ended without reading the answer; what it sent comes next
                    continue
                if not message:
                    return
                if message != b"attach":
                    self.marks.append(" ".join(message.decode("ascii").split()))

    def taken(self):
        """The marks of senders that have ended, which are then forgotten."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as last:  # those before it have been accepted when it is
            last.connect(self.path)
            last.send(b"last")
            wait_until("the last one is read", lambda: "last" in self.marks, every=0.02)
            self.marks.remove("last")
        for caller in self.callers:
            caller.join(90)
        marks, self.marks, self.callers = self.marks, [], []
        return marks

    def total(self, name):
        return total(self.marks, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


# One rank, for where no MPI is installed. The functions of a profiling interface are weak, as in real ones.
STAND_IN_HEADER = """typedef int MPI_Comm;
typedef int MPI_Info;
#define MPI_SUCCESS 0
#define MPI_COMM_WORLD 1
#define MPI_INFO_NULL 0
#define MPI_COMM_TYPE_SHARED 1
#define MPI_THREAD_FUNNELED 1
int MPI_Init(int*, char***), PMPI_Init(int*, char***);
int MPI_Init_thread(int*, char***, int, int*), PMPI_Init_thread(int*, char***, int, int*);
int MPI_Initialized(int*), PMPI_Initialized(int*);
int MPI_Finalize(void), PMPI_Finalize(void);
int MPI_Pcontrol(const int, ...), PMPI_Pcontrol(const int, ...);
int MPI_Comm_rank(MPI_Comm, int*), PMPI_Comm_rank(MPI_Comm, int*);
int MPI_Comm_size(MPI_Comm, int*), PMPI_Comm_size(MPI_Comm, int*);
int MPI_Comm_free(MPI_Comm*), PMPI_Comm_free(MPI_Comm*);
int PMPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm*);
"""
STAND_IN = """#include <stddef.h>
#include "mpi.h"
static int ready = 0;
int PMPI_Init(int* c, char*** v) { (void)c; (void)v; ready = 1; return 0; }
int PMPI_Init_thread(int* c, char*** v, int r, int* p) { *p = r; return PMPI_Init(c, v); }
int PMPI_Initialized(int* flag) { *flag = ready; return 0; }
int PMPI_Finalize(void) { ready = 0; return 0; }
int PMPI_Pcontrol(const int level, ...) { (void)level; return 0; }
int PMPI_Comm_rank(MPI_Comm c, int* rank) { (void)c; *rank = 0; return 0; }
int PMPI_Comm_size(MPI_Comm c, int* size) { (void)c; *size = 1; return 0; }
int PMPI_Comm_free(MPI_Comm* c) { *c = 0; return 0; }
int PMPI_Comm_split_type(MPI_Comm c, int t, int k, MPI_Info i, MPI_Comm* n) { (void)t; (void)k; (void)i; *n = c; return 0; }
#pragma weak MPI_Init = PMPI_Init
#pragma weak MPI_Init_thread = PMPI_Init_thread
#pragma weak MPI_Initialized = PMPI_Initialized
#pragma weak MPI_Finalize = PMPI_Finalize
#pragma weak MPI_Pcontrol = PMPI_Pcontrol
#pragma weak MPI_Comm_rank = PMPI_Comm_rank
#pragma weak MPI_Comm_size = PMPI_Comm_size
#pragma weak MPI_Comm_free = PMPI_Comm_free
"""
MPI_PROGRAM = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank = 0, provided = 0;
  if (argc > 1) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Pcontrol(1, "solve");
  MPI_Pcontrol(1, "halo");
  MPI_Pcontrol(-1, "halo");
  MPI_Pcontrol(-1, "solve");
  MPI_Pcontrol(0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    puts("done");
  }
  return MPI_Finalize();
}
"""
MPI_FORTRAN = """program job
  use %s
  integer :: status, rank
  call MPI_Init(status)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, status)
  if (rank == 0) print '(a)', 'done'
  call MPI_Finalize(status)
end program
"""


def mpi(directory):
    """A program that is not changed gets the shim by LD_PRELOAD, or is linked with it."""
    need_programs("cc")
    real = shutil.which("mpicc") is not None and shutil.which("mpiexec") is not None
    ranks = 3 if real else 1
    launch = ["mpiexec", "-n", str(ranks)] if real else []
    # Of Open MPI: to run as root, and more ranks than cores.
    more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    write(directory + "/program.c", MPI_PROGRAM)
    library = []
    compiler = ["mpicc"]
    if not real:
        print("  a stand-in of one rank: mpicc and mpiexec are not installed")
        compiler = ["cc", "-I", directory]
        write(directory + "/mpi.h", STAND_IN_HEADER)
        write(directory + "/mpi.c", STAND_IN)
        subprocess.run(["cc", "-shared", "-fPIC", "mpi.c", "-o", "libmpi_stand_in.so"], cwd=directory, check=True)
        library = ["-L", directory, "-Wl,-rpath," + directory, "-lmpi_stand_in"]
    shim = SENDERS + "/ceems_mark_mpi.c"
    flags = ["-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-I", SENDERS]
    subprocess.run([*compiler, *flags, "-shared", "-fPIC", shim, "-o", "libshim.so", *library], cwd=directory, check=True)
    subprocess.run([*compiler, "program.c", "-o", "program", *library], cwd=directory, check=True)
    subprocess.run([*compiler, *flags, "program.c", shim, "-o", "linked", *library], cwd=directory, check=True)
    sizes = ["begin mpi", "fom mpi_ranks %d" % ranks, "fom mpi_size %d" % ranks]
    named = ["begin solve", "begin halo", "end halo", "end solve"]
    preload = ["env", "LD_PRELOAD=%s/libshim.so" % directory]
    runs = [([*preload, "./program"], {}, sizes + ["end mpi"]),
            ([*preload, "./program", "threads"], {}, sizes + ["end mpi"]),
            ([*preload, "./program"], {"CEEMS_MARK_PCONTROL": "names"}, sizes + named + ["end mpi"]),
            (["./linked"], {"CEEMS_MARK_PCONTROL": "names"}, sizes + named + ["end mpi"]),
            (["./program"], {"CEEMS_MARK_PCONTROL": "names"}, [])]
    if real and shutil.which("mpif90"):
        for module in ("mpi", "mpi_f08"):
            write(directory + "/job.f90", MPI_FORTRAN % module)
            subprocess.run(["mpif90", "job.f90", "-o", module], cwd=directory, check=True)
            runs.append(([*preload, "./" + module], {}, sizes + ["end mpi"]))
    with Exporter(directory) as exporter:
        for command, env, expected in runs:
            done = subprocess.run([*launch, *command], cwd=directory, env={**exporter.env, **more, **env}, capture_output=True, text=True,
                                  check=False, timeout=120)
            assert (done.returncode, done.stdout) == (0, "done\n"), (command, done)
            assert (got := exporter.taken()) == expected, (command, env, got)
    print("  %d programs of %s" % (len(runs), "MPI, with 3 ranks" if real else "a stand-in"))
    # Without an exporter, nothing changes.
    done = subprocess.run([*launch, *preload, "./program"], cwd=directory, env={**exporter.env, **more, "CEEMS_MARK_SOCKET": "/nowhere"},
                          capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done


# Calls the hooks that a trainer of Lightning calls, in its order and with its arguments, among them those that the callback leaves out.
TRAINING = """
import sys
sys.path.insert(0, %r)
import ceems_mark
assert not [name for name in sys.modules if "lightning" in name or name == "torch"]

class Trainer:
    is_global_zero = %r
    def __init__(self, callbacks):
        self.callbacks = callbacks
    def call(self, hook, *arguments):
        for callback in self.callbacks:
            getattr(callback, hook)(self, "module", *arguments)
    def fit(self, epochs, batches, fails_at=None):
        self.call("on_fit_start")
        self.call("on_train_start")
        try:
            for epoch in range(epochs):
                self.call("on_train_epoch_start")
                for batch in range(batches):
                    if (epoch, batch) == fails_at:
                        raise RuntimeError("the loss is not finite")
                    self.call("on_train_batch_start", "batch", batch)
                    self.call("on_train_batch_end", "outputs", "batch", batch)
                self.call("on_validation_start")
                self.call("on_validation_end")
                self.call("on_train_epoch_end")
            self.call("on_train_end")
        except RuntimeError as error:
            self.call("on_exception", error)
        self.call("on_fit_end")

ceems_mark.Tally.PAUSE = 1e6  # so that only the first result of each, and what is left at the end of something, is sent
callback = ceems_mark.lightning_callback()
assert isinstance(callback, sys.modules["lightning.pytorch"].Callback)
Trainer([callback]).fit(2, 1000)
Trainer([ceems_mark.lightning_callback()]).fit(1, 10, fails_at=(0, 7))
assert list(ceems_mark.counted(range(1500), "item")) == list(range(1500))
sys.exit(ceems_mark.dropped())
"""
LIGHTNING = "class Callback:\n" + "".join("    def %s(self, *_):\n        pass\n" % hook for hook in (
    "on_fit_start", "on_fit_end", "on_train_start", "on_train_end", "on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start",
    "on_train_batch_end", "on_validation_start", "on_validation_end", "on_exception"))


def training(directory):
    """Regions and results of a training. Results of ranks but the first are not counted, and results that come fast are sent together."""
    write(directory + "/lightning/__init__.py", "")
    write(directory + "/lightning/pytorch.py", LIGHTNING)
    expected = ["begin train", "result batch 1", "begin validation", "end validation", "result batch 999", "result epoch 1", "begin validation",
                "end validation", "result batch 1000", "result epoch 1", "end train",
                "begin train", "result batch 1", "end validation", "result batch 6", "end train", "result item 1", "result item 1499"]
    with Exporter(directory) as exporter:
        for first in (True, False):
            done = subprocess.run([sys.executable, "-c", TRAINING % (SENDERS, first)], env={**exporter.env, "PYTHONPATH": directory},
                                  capture_output=True, text=True, check=False, timeout=90)
            assert done.returncode == 0, done.stderr
            marks = [mark for mark in expected if first or not re.match("result (batch|epoch)", mark)]
            assert (got := exporter.taken()) == marks, got


class RawServer:
    """Answers each connection with the bytes of `answer()`, at a port of the test's choice."""

    def __init__(self, answer, port=0):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", port))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                with caller, contextlib.suppress(OSError):
                    caller.recv(4096)
                    caller.sendall(self.answer())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


PAGE = """# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="a \\"b\\" } 7"} %s
vllm:generation_tokens_total{engine="1",model_name="c"} %s 1700000000000
vllm:generation_tokens_total_more 1000000
vllm:prompt_tokens_total{engine="0",model_name="c"} 5e5
"""


def start_scrape(exporter, *words):
    return subprocess.Popen([TOOL, "-v", "scrape", *words, "--interval=0.1"], env=exporter.env, stderr=subprocess.PIPE, text=True)


def end_scrape(process, status=0):
    process.terminate()
    _, errors = process.communicate(timeout=90)
    assert process.returncode == status, (process.returncode, errors)
    return errors


def scrape_growth(directory):
    """The growth of a counter with several series, of which one begins anew and one comes later."""
    page = {"held": None}

    def answer(path, _query, _body):
        process, page["held"] = page["held"], None
        if process:
            seen = len(server.seen)
            process.terminate()
            wait_until("it asks again", lambda: len(server.seen) > seen, every=0.02)
        return (200, "text/plain", page["text"].encode()) if path == "/metrics" else (404, "text/plain", b"")

    with Exporter(directory) as exporter, FakeHttp(answer) as server:
        def show(text):
            """Waits until the page was read and used: the first request may have had the page before it, the third comes after it was used."""
            page["text"] = text
            seen = len(server.seen)
            wait_until("the page is read", lambda: len(server.seen) >= seen + 3, every=0.02)

        page["text"] = PAGE % (1000, 2000)
        process = start_scrape(exporter, server.url, "--metric", "vllm:generation_tokens_total")
        show(PAGE % (1000, 2000))
        assert exporter.total("generation_tokens") == 0  # what was there before is left out
        show(PAGE % (1100, 2000))
        show(PAGE % ("1.1e3", 30))  # the second one began anew
        show(PAGE % ("NaN", "-4"))
        show("other 4\n" + PAGE % (1110, 30))
        assert (errors := end_scrape(process)) == "", errors
        marks = exporter.taken()
        assert total(marks, "generation_tokens") == 100 + 30 + 10, marks

        page["text"] = "steps_total 5\n"
        process = start_scrape(exporter, server.url + "/metrics", "--metric=steps_total", "--result", "step", "--unit=kstep")
        show("steps_total 5\n")
        show("steps_total 5\nsteps_total {rank=\"1\"} 3\n")
        page["text"] = "steps_total 9\nsteps_total {rank=\"1\"} 3\n"  # is read at the end, if not before
        assert (errors := end_scrape(process)) == "", errors
        assert exporter.taken() == ["result step 3 kstep", "result step 4 kstep"]

        # The end comes while it waits for an answer: it asks once more, and says nothing.
        page["text"] = "steps_total 5\n"
        process = start_scrape(exporter, server.url + "/metrics", "--metric=steps_total")
        show("steps_total 5\n")
        page["text"] = "steps_total 9\n"
        page["held"] = process
        wait_until("a request is held", lambda: page["held"] is None, every=0.02)
        assert (errors := end_scrape(process)) == "", errors
        assert exporter.total("steps") == 4 and page["held"] is None
        exporter.taken()

        # It ends with the script that has started it; until then, it would hold the pipe open.
        subprocess.run(["sh", "-c", '"$@" & sleep 0.3', "sh", TOOL, "scrape", server.url, "--metric=steps_total", "--interval=0.1"],
                       env=exporter.env, check=True, timeout=90, capture_output=True)
        assert exporter.taken() == []
        for url, why in ((server.url, "the page does not have this metric"), (server.url + "/other", "the status of the answer is not 200")):
            process = start_scrape(exporter, url, "--metric=absent")
            line = process.stderr.readline()
            assert why in line, line
            end_scrape(process, status=1)


def scrape_servers(directory):
    """A server that begins later, answers in chunks, and ones that do not answer well. Only servers of the node are asked."""
    def chunked(*chunks):
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)

    with Exporter(directory) as exporter:
        port = free_port()
        process = start_scrape(exporter, "http://localhost:%d" % port, "--metric=tokens_total")
        assert "refused" in process.stderr.readline()
        with RawServer(lambda: chunked(b"tokens_t", b"otal 5", b"0\n", b""), port):
            wait_until("what a server that was not there counts from 0 on is taken", lambda: exporter.total("tokens") == 50)
            end_scrape(process)
        exporter.taken()
        for answer, why in ((b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (5 << 20), "the answer is longer than 4 MiB"),
                            (b"tokens_total 1\n", "the answer is not HTTP"),
                            (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ntokens_total 1\n", "the answer is incomplete"),
                            (chunked(b"tokens_total 1\n"), "the answer is incomplete"),
                            (chunked(b"") .replace(b"\r\n0\r\n", b"\r\nfffffffffffffffff\r\n"), "the answer is incomplete"),
                            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\ntokens_total 1\n", "the answer is incomplete"),
                            (b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n", "the status of the answer is not 200")):
            with RawServer(lambda answer=answer: answer) as server:
                process = start_scrape(exporter, server.url, "--metric=tokens_total")
                line = process.stderr.readline()
                assert why in line, (answer[:80], line)
                end_scrape(process, status=1)
        assert exporter.taken() == []
    for words, why in ((["http://192.0.2.1:8000/metrics", "--metric=a"], "not on this node; --any-host allows it"),
                       (["https://localhost/metrics", "--metric=a"], "expected a URL that begins with http://"),
                       (["http://a@localhost/", "--metric=a"], "invalid character in the URL"),
                       (["http://localhost/\r\nX:", "--metric=a"], "invalid character in the URL"),
                       (["http://localhost:/", "--metric=a"], "invalid port"),
                       (["http://[::1/", "--metric=a"], "invalid host"),
                       (["http://localhost", "--metric=a b"], "invalid name of a metric"),
                       (["http://localhost", "--metric=" + 40 * "a"], "give one with --result"),
                       (["http://localhost", "--metric=a", "--interval=0"], "expected an interval"),
                       (["http://localhost", "--metric=a", "--any-host=1"], "expected scrape URL"),
                       (["http://localhost", "--metric"], "expected scrape URL"), ([], "expected scrape URL")):
        done = subprocess.run([TOOL, "scrape", *words], capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 2 and why in done.stderr, (words, done)


# Lines as the programs write them, and the marks that the recipe for this file brings: the first number and the last.
LOGS = {
    "log.lammps": ("""LAMMPS (2 Aug 2023)
  using 1 OpenMP thread(s) per MPI task
Created orthogonal box = (0 0 0) to (16.795962 16.795962 16.795962)
  1 by 1 by 2 MPI processor grid
Created 4000 atoms
  1 neighbor lists, perpetual/occasional/extra = 1 0 0
Per MPI rank memory allocation (min/avg/max) = 3.222 | 3.222 | 3.222 Mbytes
   Step          Temp          E_pair         E_mol          TotEng         Press     
         0   3             -6.7733681      0             -2.2744931     -3.7033504    
        50   1.6842865     -4.8082494      0             -2.2824513      5.5666131    
       250   1.6479297     -4.7532530      0             -2.2819705      5.9e+00
Loop time of 0.942801 on 2 procs for 250 steps with 4000 atoms

Performance: 54.985 ns/day, 0.436 hours/ns, 318.201 timesteps/s, 637.674 katom-step/s
195.2% CPU use with 2 MPI tasks x 2 OpenMP threads
Nlocal:           2000 ave        2006 max        1994 min
Histogram: 1 0 0 0 0 0 0 0 0 1
""", ["progress 0 step", "progress 250 step"], ["fom speed 54.985 ns/day"]),
    "md.log": ("""Started mdrun on rank 0 Mon Nov 13 10:00:00 2023

           Step           Time
              0        0.00000

   Energies (kJ/mol)
           Bond          Angle    Proper Dih.  Improper Dih.          LJ-14
    1.20e+03    3.45670e+03    4.60820e+03    2.10000e+02    1.50000e+03

           Step           Time
           5000       10.00000

               Core t (s)   Wall t (s)        (%)
       Time:      113.520       14.190      800.0
                 (ns/day)    (hour/ns)
Performance:       60.892        0.394
""", ["progress 0 step", "progress 5000 step"], ["fom speed 60.892 ns/day"]),
    "log.pimpleFoam": ("""Starting time loop

Courant Number mean: 0.0222158 max: 0.852134
Time = 0.005

PIMPLE: iteration 1
smoothSolver:  Solving for Ux, Initial residual = 1, Final residual = 8.90511e-06, No Iterations 19
time step continuity errors : sum local = 6.11228e-09, global = 1.51821e-18, cumulative = 1.09644e-17
ExecutionTime = 0.19 s  ClockTime = 1 s

Time = 0.01s

ExecutionTime = 0.25 s  ClockTime = 1 s

End
""", ["result step 2"], ["progress 0.005 simulated_s", "progress 0.01 simulated_s"]),
}


def recipes():
    """The words of each `ceems_mark follow FILE` of docs/marks.md, by FILE."""
    with open(os.path.join(ROOT, "docs", "marks.md"), encoding="utf-8") as page:
        for line in re.findall(r"^ceems_mark follow .*?(?= *&? *$)", page.read(), re.M):
            words = shlex.split(line)
            yield words[2], words[3:]


def logs(directory):
    """The recipes of docs/marks.md on the logs of the programs that they are for."""
    found = list(recipes())
    with Exporter(directory) as exporter:
        for name, (text, *expected) in LOGS.items():
            options = [words for file, words in found if file == name]
            assert len(options) == len(expected), (name, found)
            for words, marks in zip(options, expected):
                done = subprocess.run([TOOL, "-v", "follow", "-", *words], env=exporter.env, input=text, capture_output=True, text=True, check=False, timeout=90)
                assert (done.returncode, done.stdout, done.stderr) == (0, text, ""), done
                assert (got := exporter.taken()) == marks, (name, words, got)


def follow_files(directory):
    """Files that are rotated, begun anew or have long lines."""
    log = directory + "/run.log"

    def add(text):
        with open(log, "a", encoding="ascii") as file:
            file.write(text)

    with Exporter(directory) as exporter:
        def expect(steps):
            wait_until("%d steps are counted" % steps, lambda: exporter.total("step") >= steps, every=0.02)
            assert exporter.total("step") == steps, exporter.marks

        add("done before\n")
        process = subprocess.Popen([TOOL, "follow", log, "--regex=^done", "--result=step"], env=exporter.env)
        wait_until("it waits for lines", lambda: log in [os.readlink("/proc/%d/fd/%s" % (process.pid, fd)) for fd in os.listdir("/proc/%d/fd" % process.pid)])
        add("done\ndone\n")
        expect(2)
        add("x" * 8191 + "done\n" + "done\0" + "y" * 100000 + "\n")  # of long lines, the beginning counts
        expect(3)
        add("done\ndo")
        os.rename(log, log + ".1")
        add("ne\ndone\n")  # not the end of the line in the other file
        expect(5)
        with open(log, "w", encoding="ascii") as file:  # shorter than before
            file.write("done\n")
        expect(6)
        os.unlink(log)
        process.terminate()
        assert process.wait(90) == 0
        exporter.taken()
    for words in (["--regex", "a(", "--result=a"], ["--regex=a", "--result", "a b"], ["--regex=a", "--result=a", "--fom=a"], ["--regex=a", "--fom=a"],
                  ["--regex=(a)", "--result=a", "--unit=s"], ["--regex=a", "--result=a", "--other=a"], ["--regex=a", "--result"]):
        done = subprocess.run([TOOL, "follow", "-", *words], capture_output=True, text=True, check=False, timeout=90, stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and "ceems_mark --help" in done.stderr, (words, done)


if __name__ == "__main__":
    sys.exit(run_tests((mpi, training, scrape_growth, scrape_servers, logs, follow_files), "ceems-adapters-"))
