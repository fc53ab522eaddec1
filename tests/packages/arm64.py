"""The check `arm64`: the packages of arm64 installed in a root file system of Debian 12 whose programs QEMU runs."""
import pathlib
import re
import shutil
import subprocess
import sys

import roots

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "build/package-arm64/bin"
PACKAGES = ("common", "tools", "exporter", "api-server", "lb", "redfish-proxy", "mail", "k8s-admission-controller")
PAGES = ("intel-2s", "slurm-v1", "slurm-v2", "fabric", "openpbs-v2")  # cases of tests/golden that need nothing but files
SERVER = """mkdir -p /tmp/server && printf 'ceems_api_server:\\n  data:\\n    path: /tmp/server\\nclusters: []\\nupdaters: []\\n' >/tmp/server.yml
ceems_api_server --config.file=/tmp/server.yml --web.listen-address=127.0.0.1:19020 >/tmp/server.log 2>&1 &
for i in $(seq 60); do
  ceems_api_server --health --web.listen-address=127.0.0.1:19020 && break
  sleep 1
done >/tmp/health.log 2>&1
ceems_api_server --health --web.listen-address=127.0.0.1:19020 || { cat /tmp/health.log /tmp/server.log >&2; exit 1; }
kill $!
wait $! || { cat /tmp/server.log >&2; exit 1; }
cat /tmp/server/*.db | head -c 15"""


def require() -> None:
    """Raises roots.Missing with what to do."""
    if not shutil.which("qemu-aarch64-static"):
        raise roots.Missing("qemu-aarch64-static is not installed (scripts/setup arm64)")
    missing = [name for name in ("ceems_exporter", "ceems_api_server", "ceems_tool") if not (PROGRAMS / name).exists()]
    if missing:
        raise roots.Missing(f"{', '.join(missing)} not in {PROGRAMS} (make packages ARCH=arm64)")
    probe = subprocess.run([roots.IN_ARM64, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise roots.Missing(f"this kernel cannot run programs of arm64 in a namespace (Linux 6.7 with binfmt_misc can): {probe.stderr.strip()}")


def pages(root: roots.Copy) -> int:
    """The exporter's pages of hosts that are folders, compared with those of x86-64."""
    sys.path.insert(0, str(ROOT / "tests/golden"))
    import exporter_golden  # noqa: PLC0415
    for name in PAGES:
        case = exporter_golden.CASES[name]
        folder = f"fixtures/{case.machine}"
        shutil.copytree(ROOT / "tests" / folder, root.root / folder, symlinks=True, dirs_exist_ok=True)
        flags = " ".join(f"'{flag}'" for flag in case.flags)
        page = root.run(f"cd / && ceems_exporter --once --collector.empty-hostname-label --no-security.drop-privileges --path.procfs={folder}/proc "
                        f"--path.sysfs={folder}/sys --path.cgroupfs={folder}/sys/fs/cgroup {flags}")
        expected = (ROOT / f"tests/golden/exporter/{name}.txt").read_text().splitlines()
        got = exporter_golden.deterministic(page)
        differing = sorted(set(got) ^ set(expected))
        assert not differing, f"{name}: differs from the page of x86-64:\n" + "\n".join(differing[:20])
    return len(PAGES)


def installed(root: roots.Copy, debs: list[pathlib.Path], programs: list[str]) -> str:
    assert root.run("uname -m") == "aarch64"
    root.run(f"dpkg -i {root.add(*debs)}")
    for program in programs:
        text = root.run(f"{program} --version")
        assert f"{program}, version" in text and "linux/arm64" in text, text
        assert root.run(f"zcat /usr/share/man/man8/{program}.8.gz").startswith(".TH"), f"{program}: manual page"
    # The hash of the password is made by the host's libcrypt.
    made = root.run("ceems_tool config create-web-config --basic-auth --output-dir=/tmp/made")
    assert "basic_auth_users" in made + root.text("/tmp/made/web-config.yml"), made
    root.run("ceems_tool check web-config /tmp/made/web-config.yml")
    root.write("/etc/ceems/service-token", "5" * 64 + "\n")
    root.run("ceems_tool check config /usr/share/ceems/examples/api-server-config.yml")
    doctor = root.try_run("ceems_exporter doctor --profiling.ebpf").stdout
    assert "the profiler needs x86-64" in doctor, doctor[-1500:]
    root.write("/tmp/postgres.yml", "ceems_api_server:\n  data: {database_url: 'postgresql://ceems@127.0.0.1:1/ceems'}\nclusters: []\nupdaters: []\n")
    refused = root.try_run("timeout 20 ceems_api_server --config.file=/tmp/postgres.yml --web.listen-address=127.0.0.1:19021 2>&1").stdout
    assert "127.0.0.1" in refused and "Connection refused" in refused, f"libpq of the host: {refused[-800:]}"
    database = root.run(SERVER)
    assert database == "SQLite format 3", f"the database begins with {database!r}"
    return f"{len(programs)} programs run, {pages(root)} pages of the exporter equal those of x86-64, the API server answers"


def machine_of(path: pathlib.Path) -> str:
    text = subprocess.run(["readelf", "-h", path], check=True, capture_output=True, text=True).stdout
    return re.search(r"Machine:\s+(.*)", text)[1]
