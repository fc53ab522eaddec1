#!/usr/bin/env python3
"""The completion scripts of all programs, as real zsh and fish understand them. Bash is tested in src/config/commands_test.cc."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

from harness import BIN, run_tests, skip, write

PROGRAMS = ("cacct", "ceems_api_server", "ceems_exporter", "ceems_k8s_admission_controller", "ceems_lb", "ceems_mail", "ceems_mark", "ceems_tool", "redfish_proxy")
ENVIRONMENT = {"PATH": BIN + ":/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}


def output(program, *arguments):
    return subprocess.run([os.path.join(BIN, program), *arguments], capture_output=True, text=True, check=True, timeout=90).stdout


def built():
    return [program for program in PROGRAMS if os.path.exists(os.path.join(BIN, program))]


def flags_of(text):
    """The long flags that a help text lists, with both forms of those that can be negated; descriptions are indented further."""
    found = set()
    for negated, name in re.findall(r"^ {0,6}(?:-\w, )?--(\[no-\])?([a-z][a-z0-9.-]*[a-z0-9])(?:[ =]|$)", text, re.M):
        found |= {"--" + name, "--no-" + name} if negated else {"--" + name}
    return found


class Zsh:
    """A zsh at a terminal, with its own directory of completion functions."""

    def __init__(self, directory):
        environment = dict(ENVIRONMENT, HOME=directory)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve("/usr/bin/zsh", ["zsh", "-f", "-i"], environment)
        self.run("PS1='%%%% '; stty cols 250 rows 100; LISTMAX=1000; unsetopt beep; fpath=($PWD/functions $fpath)")
        self.run("autoload -Uz compinit; compinit -u -D")

    def read(self, pattern):
        text, end = "", time.monotonic() + 30
        while not (found := re.search(pattern, text)):
            assert select.select([self.fd], [], [], max(0, end - time.monotonic()))[0], "no %r in %r" % (pattern, text)
            text += os.read(self.fd, 65536).decode("utf-8", "replace")
        return text, found

    def run(self, command):
        """Runs a command and returns what appears until the next prompt."""
        os.write(self.fd, (command + "; print DO''NE\n").encode())
        return self.read(r"DONE\r\n[^\n]*%% ")[0]

    def line(self, start):
        """The command line after it was completed."""
        os.write(self.fd, b"\x15" + start.encode() + b"\t\x01print -r -- 'DO''NE '\n")
        return self.read(r"DONE +([^\r]*)\r\n[^\n]*%% ")[1].group(1)

    def choices(self, start):
        """What zsh lists for a start that has several continuations."""
        os.write(self.fd, b"\x15" + start.encode() + b"\t\t")
        time.sleep(0.7)
        os.write(self.fd, b"\x15")
        text = self.run("")
        return set(re.split(r"[\s=]+", text.partition("\n")[2]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def zsh(directory):
    """As functions in a directory of $fpath, and with eval."""
    if not shutil.which("zsh"):
        skip("program zsh is not installed")
    for program in built():
        write("%s/functions/_%s" % (directory, program), output(program, "--completion-script-zsh"))
    for way in ("fpath", "eval"):
        with Zsh(directory) as shell:
            if way == "eval":
                shell.run("rm -r functions; compinit -u -D")
                for program in built():
                    said = shell.run('eval "$(%s --completion-script-zsh)"' % program)
                    assert "rror" not in said.split("\n", 1)[1] and "command not found" not in said, said
            for start, expected in (("ceems_lb --log.l", "ceems_lb --log.level"), ("ceems_lb --log.level=w", "ceems_lb --log.level=warn"),
                                    ("cacct --helpf", "cacct --helpformat"), ("ceems_exporter --no-collector.net",
                                                                               "ceems_exporter --no-collector.netdev"),
                                    ("ceems_tool tsdb create-rec", "ceems_tool tsdb create-recording-rules"),
                                    ("ceems_tool tsdb create-recording-rules --pu", "ceems_tool tsdb create-recording-rules --pue"),
                                    ("ceems_tool db verify --d", "ceems_tool db verify --db"),
                                    ("ceems_mark scr", "ceems_mark scrape"), ("ceems_mark follow x --reg", "ceems_mark follow x --regex")):
                if start.split()[0] in built():
                    assert (got := shell.line(start).rstrip()) == expected, (way, start, got)
            if "ceems_tool" in built():
                got = shell.choices("ceems_tool check ")
                assert {"api-healthy", "lb-healthy", "web-config", "config", "site"} <= got and "verify" not in got, (way, got)


def fish(directory):
    """All flags of all programs and of all commands of ceems_tool."""
    if not shutil.which("fish"):
        skip("program fish is not installed")

    def choices(program, line):
        script = write(directory + "/script.fish", output(program, "--completion-script-fish"))
        done = subprocess.run(["fish", "--no-config", "-c", "source %s; complete -C %s" % (script, "'%s'" % line)], capture_output=True,
                              text=True, check=True, timeout=60, env=dict(ENVIRONMENT, HOME=directory), cwd=directory)
        assert not done.stderr, done
        return {choice.split("\t")[0] for choice in done.stdout.splitlines()}

    for program in built():
        if program != "ceems_tool":
            expected = flags_of(output(program, "--help"))
            assert len(expected) > 5, expected
            got = {choice for choice in choices(program, program + " --") if choice.startswith("--")}
            assert expected <= {choice.rstrip("=") for choice in got}, (program, expected - got)
            assert not {"--account-filter", "--completion-bash"} & got, got
    if "ceems_mark" in built():
        assert choices("ceems_mark", "ceems_mark f") == {"fom", "follow"}
    if "ceems_lb" in built():
        assert choices("ceems_lb", "ceems_lb --log.level ") == {"debug", "info", "warn", "error"}
    if "ceems_tool" in built():
        assert {"check", "config", "tsdb", "db", "emissions"} <= choices("ceems_tool", "ceems_tool ")
        assert choices("ceems_tool", "ceems_tool config ") == {"create-web-config"}
        for command in ("check site", "tsdb create-recording-rules", "db copy", "config create-web-config"):
            expected = flags_of(output("ceems_tool", *command.split(), "--help")) - {"--version", "--no-version", "--no-help"}
            got = {choice for choice in choices("ceems_tool", "ceems_tool %s --" % command) if choice.startswith("--")}
            assert len(expected) > 4 and expected <= {choice.rstrip("=") for choice in got}, (command, expected - got)
            assert "--country-code" not in got or "rules" in command, (command, got)


if __name__ == "__main__":
    sys.exit(run_tests((zsh, fish), "ceems-completion-"))
