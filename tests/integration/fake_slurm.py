"""A simulated SLURM cluster: jobs in a file, a stand-in for sacct and sacctmgr (fake_sacct.py), and the configuration of an API
server that reads them."""

import json
import os
import sys
import time

from harness import write

HERE = os.path.dirname(os.path.abspath(__file__))


def install(directory, jobs, mode="ok"):
    """Installs sacct and sacctmgr in `directory`/bin. Their output depends on jobs.json and mode in `directory`."""
    write(directory + "/jobs.json", json.dumps(jobs))
    write(directory + "/mode", mode)
    with open(HERE + "/fake_sacct.py", encoding="utf-8") as f:
        program = f.read().replace("#!/usr/bin/env python3", "#!%s -SE" % sys.executable, 1)  # it starts often, and faster so
    for name in ("sacct", "sacctmgr"):
        write(directory + "/bin/" + name, program, 0o755)


def random_jobs(count, begin, end, rng):
    """Jobs that ended at least a minute before `end`."""
    jobs = []
    for i in range(count):
        start = rng.randrange(begin, end - 120)
        stop = min(start + rng.choice([7, 60, 61, 333, 900, 2400]), end - 60)
        jobs.append({"id": str(1000 + i), "name": "job%d" % i, "user": "u%d" % (i % 5), "account": "p%d" % (i % 3),
                     "cpus": 1 + i % 4, "start": start, "end": stop})
    return jobs


def api_config(directory, begin=None, data=None, database_url=None, interval="1s", max_interval="1h", tsdb=None, environment=None):
    """The cluster `test` from `begin` on (default: ten minutes ago), with the updater `prom` if there is a TSDB. `environment`: more
    variables for fake_sacct.py."""
    return """
ceems_api_server:
  data:
    path: %s
%s    update_interval: %s
    max_update_interval: %s
    update_from: %s
    time_zone: UTC
  admin:
    users: [operator]
clusters:
  - id: test
    manager: slurm
    updaters: [%s]
    cli:
      path: %s/bin
      environment_variables:
        CEEMS_FAKE_JOBS: %s/jobs.json
        CEEMS_FAKE_MODE_FILE: %s/mode
        PATH: /usr/bin:/bin
%s%s""" % (data or directory + "/data", "    database_url: %s\n" % database_url if database_url else "", interval, max_interval,
         time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begin or time.time() - 600)), "prom" if tsdb else "", directory, directory,
         directory, "".join("        %s: '%s'\n" % pair for pair in (environment or {}).items()),
         "updaters:\n  - id: prom\n    updater: tsdb\n    web:\n      url: %s\n" % tsdb if tsdb else "")
