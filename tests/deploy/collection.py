"""The checks of the Ansible collection: lint, and a run against a root file system of Debian 12 with the packages."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from common import BUILD, Missing, ROOT, run, same

COLLECTION = ROOT / "packaging/ansible"
LINT = BUILD / "venv/bin/ansible-lint"
VARIABLES = {
    "ceems_packages_directory": "/packages",
    "ceems_exporter_enabled_collectors": ["slurm"], "ceems_exporter_disabled_collectors": ["netdev"],
    "ceems_exporter_cli_args": {"log.level": "debug", "web.disable-exporter-metrics": True}, "ceems_exporter_dropins": ["jobs"],
    "ceems_exporter_web_listen_address": "0.0.0.0:9010", "ceems_exporter_basic_auth_users": {"prometheus": "$2y$10$" + "x" * 53},
    "ceems_api_server_clusters_config": [{"id": "slurm-0", "manager": "slurm", "updaters": [], "cli": {"path": "/usr/bin"}}],
    "ceems_lb_config": {"ceems_lb": {"strategy": "round-robin", "backends": [{"id": "slurm-0", "tsdb": [{"web": {"url": "http://localhost:9090"}}]}]},
                        "ceems_api_server": {"web": {"url": "http://localhost:9020"}}},
    "redfish_proxy_config": {"redfish_proxy": {"targets": [{"host_ip_addrs": ["10.1.0.1"], "url": "https://10.2.0.1"}]}},
    "cacct_config": {"ceems_api_server": {"cluster_id": "slurm-0", "web": {"url": "http://localhost:9020"}}},
}


def installed(directory: pathlib.Path) -> pathlib.Path:
    """The collection where Ansible looks for it."""
    place = directory / "ansible_collections/ceems/site"
    shutil.copytree(COLLECTION, place, ignore=shutil.ignore_patterns("__pycache__", ".ansible"))
    return place


def check_lint() -> str:
    """ansible-lint with its strictest profile, and yamllint for all YAML of this folder."""
    if not LINT.exists():
        raise Missing("ansible-lint is not installed (tests/deploy/tools)")
    listed = run("git", "-C", ROOT, "ls-files", "packaging/ansible/*.yml", "packaging/helm/*.yaml", "packaging/containers/*.yml", "packaging/kubernetes/*").split()
    yaml = [path for path in listed if "/templates/" not in path]
    run(BUILD / "venv/bin/yamllint", "--strict", "--config-file", ROOT / "tests/deploy/yamllint.yml", *yaml, cwd=ROOT)
    with tempfile.TemporaryDirectory() as directory:
        place = installed(pathlib.Path(directory))
        environment = {**os.environ, "PATH": f"{LINT.parent}:{os.environ['PATH']}", "ANSIBLE_COLLECTIONS_PATH": directory, "NO_COLOR": "1"}
        done = subprocess.run([LINT, "--offline", "--profile", "production", *sorted((place / "roles").iterdir()), place / "playbooks/site.yml"],
                              cwd=place, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        count = int(re.search(r"in (\d+) files processed", done.stdout + done.stderr)[1])
        assert count > 30, f"only {count} files were read"
    return f"{count} files of roles, {len(yaml)} of YAML"


def root_with_ansible(work: pathlib.Path):
    """Debian 12 with Ansible, made once."""
    sys.path.insert(0, str(ROOT / "tests/packages"))
    import roots
    archive = BUILD / "ansible.tar"
    root = roots.Copy("bookworm", work)
    if not archive.exists():
        made = root.try_run("apt-get -qq update && apt-get -qq install -y --no-install-recommends ansible-core python3-apt && rm -rf /var/lib/apt/lists/*", network=True, timeout=900)
        if made.returncode != 0:
            raise Missing(f"Ansible cannot be installed: {made.stderr[-300:]}")
        run("tar", "-C", root.root, "-cf", archive, ".")
    else:
        shutil.rmtree(root.root)
        root.root.mkdir()
        run("tar", "-C", root.root, "-xf", archive)
    return root


def check_roles() -> str:
    """All roles: in check mode, for good, and once more, which changes nothing; then what must be refused."""
    packages = pathlib.Path(os.environ.get("CEEMS_PACKAGES") or ROOT / "build/packages/out")
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        raise Missing("needs root and debootstrap")
    if not list(packages.glob("ceems-exporter_*.deb")):
        raise Missing(f"no packages in {packages}: run 'make packages'")
    with tempfile.TemporaryDirectory(prefix="ceems-ansible-") as directory:
        root = root_with_ansible(pathlib.Path(directory))
        root.add(*packages.glob("*.deb"))
        installed(root.root / "usr/share/ansible/collections")
        roles = sorted(path.name for path in (COLLECTION / "roles").iterdir() if path.name not in ("ceems_packages", "ceems_service"))
        root.write("/site.yml", json.dumps([{"hosts": "localhost", "connection": "local", "roles": [f"ceems.site.{role}" for role in roles]}]))

        def play(*arguments: str, **variables) -> str:
            root.write("/vars.json", json.dumps({**VARIABLES, **variables}))
            done = root.try_run(f"cd /tmp && ansible-playbook -i localhost, -e @/vars.json {' '.join(arguments)} /site.yml", timeout=600, HOME="/root", LC_ALL="C.UTF-8",
                                SYSTEMD_OFFLINE="1")  # nothing can be started here
            text = done.stdout + done.stderr
            return text if done.returncode == 0 else "FAILED\n" + text

        def changed(text: str) -> int:
            assert not text.startswith("FAILED"), text[-3000:]
            return int(re.search(r"changed=(\d+) .*unreachable=0 .*failed=0", text)[1])

        before = sorted(str(path) for path in (root.root / "etc").rglob("*"))
        assert changed(play("--check")) > 0, "check mode finds nothing to do"
        same(sorted(str(path) for path in (root.root / "etc").rglob("*")), before, "files in /etc after check mode")
        first = changed(play())
        same(changed(play("--diff")), 0, "changes of a second run")
        same(changed(play("--check")), 0, "changes of check mode after it")
        same(root.run("systemctl is-enabled ceems_exporter ceems_api_server ceems_lb redfish_proxy").split(), ["enabled"] * 4, "services")
        default = root.text("/etc/default/ceems_exporter")
        for line in ('CEEMS_EXPORTER_LISTEN="--web.listen-address=0.0.0.0:9010"',
                     'CEEMS_EXPORTER_OPTIONS="--collector.slurm --no-collector.netdev --log.level=debug --web.disable-exporter-metrics"'):
            assert line in default.splitlines(), default
        assert root.exists("/etc/systemd/system/ceems_exporter.service.d/jobs.conf")
        assert 'CEEMS_LB_LISTEN="--web.listen-address=127.0.0.1:9030 --web.listen-address=127.0.0.1:9040"' in root.text("/etc/default/ceems_lb")
        same(root.run("stat -c '%a %U:%G' /etc/ceems_api_server/config.yml /etc/ceems/config.yml /etc/ceems_exporter/web-config.yml").split("\n"), ["640 root:ceems"] * 3, "modes")
        # Prolog and epilog, as slurmd runs them; a job that is none writes nothing.
        root.run("SLURM_JOB_ID=7 SLURM_JOB_GPUS=0,1 /etc/slurm/prolog.d/50-ceems-gpus.sh")
        same(root.text("/run/ceems/slurm-gpu-map/7"), "0,1\n", "what the prolog writes")
        root.run("SLURM_JOB_ID=../x SLURM_JOB_GPUS=0 /etc/slurm/prolog.d/50-ceems-gpus.sh; SLURM_JOB_ID=7 /etc/slurm/epilog.d/50-ceems-gpus.sh")
        same(root.run("find /run/ceems -type f"), "", "what is left of the job")
        # A tag confines a run; a service is not opened without a password, and passwords are not taken in plain text.
        text = play("--tags", "cacct_configure", "--check", cacct_config={"ceems_api_server": {"cluster_id": "other", "web": {"url": "http://localhost:9020"}}})
        same(changed(text), 1, "changes with the tag cacct_configure")
        for variables, message in (({"ceems_exporter_basic_auth_users": {}}, "without a password"), ({"ceems_exporter_basic_auth_users": {"ada": "secret"}}, "bcrypt"),
                                   ({"ceems_exporter_cli_args": {"log.level": "a b"}}, "cannot stand"), ({"ceems_lb_config": {"ceems_lb": {"backend": []}}}, "FAILED")):
            text = play(**variables)
            assert text.startswith("FAILED") and message in text, f"{variables} is accepted: {text[-1500:]}"
        same(root.text("/etc/default/ceems_exporter"), default, "the file after refused runs")
    return f"{len(roles)} roles: {first} changes, then none"


CHECKS = {"lint": check_lint, "roles": check_roles}
