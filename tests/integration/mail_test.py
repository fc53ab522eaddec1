#!/usr/bin/env python3
"""Mails of the real API server, from the real ceems_mail, to a mail server of the test: reports, arrays, dry runs, and kill -9 at the
worst moments, after which nothing is sent twice and nothing is lost."""

import email
import email.policy
import os
import re
import signal
import socketserver
import subprocess
import sys
import threading
import time

import api_database
from api_database import local_z
from harness import BIN, get, run_tests, start_api_server, wait_until

NAME = "relax <script>alert(1)</script>\r\nBcc: eve@example.org \u00e9"
NOW = int(time.time())


class MailServer:
    """Takes mails on a free port. `hold` names a command ("RCPT", ".") whose answer waits until release() is called."""

    def __init__(self):
        outer = self
        self.mails, self.hold, self.held, self.go_on = [], None, threading.Event(), threading.Event()

        class Handler(socketserver.StreamRequestHandler):
            def say(self, line):
                self.wfile.write(line.encode() + b"\r\n")

            def waits(self, command):
                if outer.hold == command:
                    outer.held.set()
                    outer.go_on.wait(60)

            def handle(self):
                self.say("220 test")
                to = []
                for line in self.rfile:
                    word = line.strip().decode()
                    if word.startswith("RCPT"):
                        to.append(re.search("<(.*)>", word).group(1))
                        self.waits("RCPT")
                    if word == "DATA":
                        self.say("354 go on")
                        data = b""
                        for part in self.rfile:
                            if part == b".\r\n":
                                break
                            data += part[1:] if part.startswith(b".") else part
                        else:
                            return  # the connection ended within the message
                        outer.mails.append((to, email.message_from_bytes(data, policy=email.policy.default)))
                        self.waits(".")
                    if word == "QUIT":
                        self.say("221 bye")
                        return
                    try:
                        self.say("250 ok")
                    except OSError:
                        return

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "smtp://127.0.0.1:%d" % self.server.server_address[1]

    def release(self):
        self.hold = None
        self.go_on.set()

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()

    def subjects(self):
        return [message["Subject"] for _, message in self.mails]


def unit(uuid, owner="ada"):
    start, end = NOW - 3600, NOW - 5
    return {"resource_manager": "slurm", "cluster_id": "hpc-a", "uuid": uuid, "name": "relax", "project": "fluids", "groupname": "g",
            "username": owner, "created_at": local_z(start), "started_at": local_z(start), "ended_at": local_z(end),
            "created_at_ts": start * 1000, "started_at_ts": start * 1000, "ended_at_ts": end * 1000, "elapsed": "00:59:55",
            "state": "OUT_OF_MEMORY", "ignore": 0, "num_updates": 1, "last_updated_at": local_z(end)[:19],
            "allocation": {"cpus": 4, "nodes": 1, "gpus": 0, "mem": 8 * 2 ** 30, "time_limit": 86400, "req_cpus": 4},
            "tags": {"partition": "cpu", "qos": "normal"}, "total_time_seconds": {"walltime": 3595, "alloc_cputime": 14380},
            "total_cpu_energy_usage_kwh": {"total": 0.5}}


class Site:
    def __init__(self, directory, mail="mode: enabled, dry_run_days: 0", jobs=("7",), more="", usage=()):
        self.directory, self.spool, self.server = directory, directory + "/spool", MailServer()
        os.makedirs(self.spool)
        for name in ("sacct", "sacctmgr"):
            path = directory + "/" + name
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\nexit 0\n")
            os.chmod(path, 0o755)
        database = api_database.create(os.path.join(directory, "ceems.db"))
        with database:
            api_database.insert(database, "units", [job if isinstance(job, dict) else unit(job) for job in jobs])
            api_database.insert(database, "daily_usage", list(usage))
        database.close()
        self.config = """
ceems_api_server:
  data: {path: %s, time_zone: UTC, update_interval: 1h, retention_period: 400d}
  mail: {%s, spool: %s, from: ceems@example.org, domain: example.org, smtp: {url: '%s', starttls: false}, max_wait: 2s, digest_quiet: 3s,
         digest_max: 60s, rate: 100}
%s
clusters:
  - {id: hpc-a, manager: slurm, cli: {path: %s}}
""" % (directory, mail, self.spool, self.server.url, more, directory)
        self.api = None
        self.start()

    def start(self):
        self.api, self.url = start_api_server(self.directory, self.config, ["--web.external-url=https://ceems.example.org"] + (
            ["--security.run-as-user=root"] if os.geteuid() == 0 else []))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        self.api.stop()

    def mail(self, job, ended=True, subject=None, **more):
        environment = {"PATH": "/usr/bin:/bin", "CEEMS_MAIL_SPOOL": self.spool, "SLURM_JOB_ID": job, "SLURM_JOB_USER": "ada",
                       "SLURM_JOB_NAME": NAME, "SLURM_JOB_STATE": "OUT_OF_MEMORY", "SLURM_CLUSTER_NAME": "hpc-a"}
        if ended:
            environment["SLURM_JOB_RUN_TIME"] = "00:59:55"
        environment.update(more)
        done = subprocess.run([os.path.join(BIN, "ceems_mail"), "-s", subject or "Slurm Job_id=%s Name=%s Ended" % (job, NAME), "ada"], env=environment,
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 0 and not done.stdout and not done.stderr, done

    def metric(self, line):
        return line in get(self.url + "/metrics").text

    def settled(self):
        """Whether nothing waits in the spool and in the outbox."""
        return not os.listdir(self.spool) and self.metric("ceems_mail_queued 0\n")


def reports(directory):
    """A report with the right numbers, header fields that a name cannot leave, and a link that mutes."""
    with Site(directory) as site:
        site.mail("7")
        wait_until("the report comes", lambda: site.server.mails)
        to, message = site.server.mails[0]
        assert to == ["ada@example.org"] and message["Bcc"] is None, message.as_string()
        assert message["Subject"].startswith("hpc-a job 7 relax <script>alert(1)</script>"), message["Subject"]
        assert message["Subject"].endswith("\u00e9: OUT_OF_MEMORY, 0.5 kWh, 1 suggestion"), message["Subject"]
        assert message["Auto-Submitted"] == "auto-generated" and message["Message-ID"].endswith("@example.org>")
        text = message.get_body(("plain",)).get_content()
        page = message.get_body(("html",)).get_content()
        assert "0.5 kWh" in text and "#SBATCH --mem=12G" in text and "0.5 kWh" in page, text
        assert "<script>" not in page and "\x1b" not in text, page
        stop = re.search(r"https://ceems\.example\.org(/mail/mute\?token=\S+)", message["List-Unsubscribe"].rstrip(">")).group(1)
        assert get(site.url + stop).status == 200
        site.mail("7", ended=False)
        wait_until("a mail goes on unchanged", lambda: len(site.server.mails) == 2)
        assert site.server.mails[1][1]["Subject"].startswith("Slurm Job_id=7 Name=relax"), site.server.subjects()
        assert get(site.url + stop, data=b"List-Unsubscribe=One-Click").status == 200
        site.mail("7")
        wait_until("a mail of SLURM comes in place of the report", lambda: len(site.server.mails) == 3)
        assert site.server.mails[2][1]["Subject"].startswith("Slurm Job_id=7 Name=relax"), site.server.subjects()
        wait_until("nothing is left", site.settled)


def arrays(directory):
    """Many tasks are one mail."""
    tasks = 60
    with Site(directory, jobs=[str(1000 + i) for i in range(tasks)]) as site:
        for i in range(tasks):
            site.mail(str(1000 + i), SLURM_ARRAY_JOB_ID="999", SLURM_ARRAY_TASK_ID=str(i), SLURM_JOB_STATE="FAILED" if i == 5 else "COMPLETED")
        wait_until("the digest comes", lambda: site.server.mails, 90)
        wait_until("nothing is left", site.settled)
        tasks_of = [re.search(r": (\d+) tasks \(", subject).group(1) for subject in site.server.subjects()]
        # On a busy machine the tasks may take longer than the quiet time; none is counted twice.
        assert sum(map(int, tasks_of)) == tasks and len(tasks_of) < tasks / 10, site.server.subjects()


def summaries(directory):
    """The one mail about an array sums its tasks, and what does not tell of an end is as SLURM wrote it."""
    count = 20
    tasks = [unit(str(1000 + i)) for i in range(count)]
    for i, task in enumerate(tasks):
        task.update(state="FAILED" if i == 5 else "COMPLETED", allocation=dict(task["allocation"], array_job=999, array_task=i))

    def of_array(array, job, state, run_time):
        site.mail(job, subject="Slurm Array Summary Job_id=%s_* (%s) Name=%s Ended, Mixed" % (array, array, NAME), SLURM_JOB_MAIL_TYPE="Ended",
                  SLURM_ARRAY_JOB_ID=array, SLURM_ARRAY_TASK_COUNT=str(count), SLURM_JOB_STATE=state, SLURM_JOB_RUN_TIME=run_time)

    with Site(directory, jobs=tasks) as site:
        of_array("999", "1019", "COMPLETED", "00:00:01")
        wait_until("the sums come", lambda: site.server.mails)
        message = site.server.mails[0][1]
        assert "20 tasks (19 COMPLETED, 1 FAILED), 10 kWh" in message["Subject"], message["Subject"]
        assert "(20 / 20 tasks)" in message.get_body(("plain",)).get_content()
        of_array("888", "888", "CANCELLED", "00:00:00")
        wait_until("an array that never ran keeps SLURM's summary", lambda: len(site.server.mails) == 2)
        assert site.server.subjects()[1].startswith("Slurm Array Summary Job_id=888_*"), site.server.subjects()
        site.mail("1000", SLURM_JOB_MAIL_TYPE="Requeued", SLURM_JOB_STATE="PENDING")
        wait_until("a job that is queued anew has not ended", lambda: len(site.server.mails) == 3)
        assert site.server.subjects()[2].startswith("Slurm Job_id=1000"), site.server.subjects()
        wait_until("nothing is left", site.settled)


def dry_runs(directory):
    """No report, but what SLURM sends."""
    with Site(directory, mail="mode: enabled") as site:
        site.mail("7")
        wait_until("the mail of SLURM comes", lambda: site.server.mails)
        wait_until("nothing is left", site.settled)
        assert [subject[:14] for subject in site.server.subjects()] == ["Slurm Job_id=7"], site.server.subjects()
        assert site.metric('ceems_mail_total{state="dry"} 1\n'), get(site.url + "/metrics").text


def budgets(directory):
    """Those who lead a project are told once, also after a restart, that a share of its budget has passed."""
    today = time.strftime("%Y-%m-%dT00:00:00", time.gmtime())
    usage = {"cluster_id": "hpc-a", "resource_manager": "slurm", "num_units": 1, "project": "fluids", "username": "ada", "groupname": "g",
             "num_updates": 1, "last_updated_at": today, "total_cpu_energy_usage_kwh": {"total": 42}}
    path = directory + "/budgets.yml"
    with open(path, "w", encoding="utf-8") as f:
        f.write("budgets:\n  - {project: fluids, cluster: hpc-a, unit: kwh, amount: 50, period: year}\n"
                "  - {project: fluids, unit: kwh, amount: 1000, period: year}\n")
    roles = "  accounting: {budgets: %s}\n  roles: {project_leads: [{cluster: hpc-a, project: fluids, users: [lea, 'fluids:svc']}]}" % path
    with Site(directory, mail="mode: enabled, dry_run_days: 0, budgets: enabled", more=roles, usage=[usage]) as site:
        wait_until("the mail about the budget comes", lambda: site.server.mails)
        to, message = site.server.mails[0]
        assert to == ["lea@example.org"], to
        assert message["Subject"] == "Budget fluids (hpc-a), %s: 80 %% passed" % today[:4], message["Subject"]
        text = message.get_body(("plain",)).get_content()
        assert "Budget: 50 kWh\nUsed: 42 kWh (84 %)\n" in text, text
        wait_until("nothing is left", site.settled)
        site.api.stop()
        site.start()
        site.mail("7")  # when its report has come, a second mail about the budget would have, too
        wait_until("the report comes", lambda: len(site.server.mails) > 1)
        wait_until("nothing is left", site.settled)
        assert [subject[:6] for subject in site.server.subjects()] == ["Budget", "hpc-a "], site.server.subjects()
        stop = re.search(r"https://ceems\.example\.org(/mail/mute\?token=\S+)", message["List-Unsubscribe"].rstrip(">")).group(1)
        assert "Mails about budgets" in get(site.url + stop).text


def kills(directory):
    """kill -9 before, and after, the mail server has the mail: it comes once."""
    for command in ("RCPT", "."):
        place = os.path.join(directory, "rcpt" if command == "RCPT" else "end")
        os.makedirs(place)
        with Site(place) as site:
            site.server.hold = command
            site.mail("7")
            wait_until("the mail is on its way", site.server.held.is_set)
            os.kill(site.api.pid, signal.SIGKILL)
            site.api.process.wait()
            site.mail("7", ended=False)  # comes while the server is down
            site.server.release()
            site.start()
            wait_until("the other mail comes", lambda: any("Slurm" in subject for subject in site.server.subjects()))
            wait_until("nothing is left", site.settled)
            subjects = [subject.split(" ")[0] for subject in site.server.subjects()]
            assert sorted(subjects) == ["Slurm", "hpc-a"], (command, site.server.subjects())
            assert site.metric('ceems_mail_total{state="unknown"} 1\n') == (command == "."), command


if __name__ == "__main__":
    sys.exit(run_tests([kills, arrays, summaries, budgets, reports, dry_runs], "ceems-mail-", together=2))
