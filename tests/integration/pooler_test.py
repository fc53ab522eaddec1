#!/usr/bin/env python3
"""The API server behind pgbouncer: with pool_mode = transaction it does not start and says what to set, with pool_mode = session it works.
CEEMS_PGBOUNCER names the program where it is not installed."""

import os
import pwd
import random
import shutil
import subprocess
import sys
import time

import fake_slurm
from harness import free_port, get, need_programs, scratch, skip, start_api_server, wait_until, write
from postgres_test import Postgres


def main():
    bouncer = os.environ.get("CEEMS_PGBOUNCER") or shutil.which("pgbouncer", path="/usr/sbin:" + os.environ.get("PATH", ""))
    if not bouncer:
        skip("pgbouncer is not installed (Debian package pgbouncer)")
    need_programs("psql")
    user = ["--security.run-as-user=root"] if os.geteuid() == 0 else []
    with scratch("ceems-pooler-") as directory:
        postgres = Postgres(directory + "/pg")
        begin = int(time.time()) - 600
        fake_slurm.install(directory, fake_slurm.random_jobs(5, begin, begin + 300, random.Random(1)))
        try:
            for mode in ("transaction", "session"):
                port = free_port()
                home = "%s/%s" % (directory, mode)
                os.makedirs(home)
                who = {}
                if os.geteuid() == 0:
                    account = pwd.getpwnam("postgres")
                    os.chown(home, account.pw_uid, account.pw_gid)
                    who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
                write(home + "/users", '"ceems" ""\n')
                write(home + "/bouncer.ini", "[databases]\nceems = host=%s dbname=postgres user=ceems\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
                      "listen_port=%d\nauth_type=any\nauth_file=%s/users\npool_mode=%s\nunix_socket_dir=\nlogfile=%s/log\npidfile=%s/pid\n"
                      "ignore_startup_parameters=extra_float_digits,options\n" % (postgres.directory, port, home, mode, home, home))
                with open(home + "/out", "wb") as log:
                    program = subprocess.Popen([bouncer, home + "/bouncer.ini"], stdout=log, stderr=log, **who)
                try:
                    url = "postgresql://ceems@127.0.0.1:%d/ceems?sslmode=disable" % port
                    wait_until("pgbouncer answers", lambda: subprocess.run(
                        ["psql", "-qAtX", "-d", url, "-c", "SELECT 1"], capture_output=True).returncode == 0)
                    config = fake_slurm.api_config(directory, begin, home, url, "1s", "60s")
                    server, address = start_api_server(directory, config, user, wait=False, name=mode)
                    with server:
                        if mode == "session":
                            server.wait_ready(address + "/health")
                            wait_until("a window is written", lambda: postgres.query("SELECT count(*) FROM ceems_watermarks") != [["0"]])
                        else:
                            wait_until("the server has given up", lambda: not server.alive())
                            assert "set pool_mode = session" in server.output(), server.output()[-2000:]
                            assert postgres.query("SELECT count(*) FROM pg_tables WHERE tablename = 'units'") == [["0"]]
                finally:
                    program.terminate()
                    program.wait(20)
        finally:
            postgres.stop("QUIT")
    return 0


if __name__ == "__main__":
    sys.exit(main())
