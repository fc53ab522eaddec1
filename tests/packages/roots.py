"""Root file systems of Debian's releases, made once by debootstrap below build/packages/roots, and copies of them for tests. Those of
arm64 have a name such as "bookworm-arm64", and QEMU runs their programs."""
import os
import pathlib
import shutil
import stat
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / "build/packages/roots"
NO_SERVICES = "#!/bin/sh\nexit 101\n"
EXTRA = "systemd libnss-extrausers libcrypt1 libpq5"
IN_ARM64 = HERE / "in_arm64"
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0), "console": (5, 1), "ptmx": (5, 2)}


class Missing(Exception):
    """A root file system that cannot be had, with the reason."""


def mirror() -> str:
    text = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages"], capture_output=True, text=True, check=False).stdout
    return next((line for line in text.splitlines() if line.rstrip("/").endswith("/debian")), "")


def base(suite: str) -> pathlib.Path:
    """The archive of the root file system. Users of the name service `extrausers` are in it: `remote`."""
    archive = CACHE / f"{suite}.tar"
    if (CACHE / f"{suite}.extra").exists() and archive.exists():
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    root = CACHE / suite
    shutil.rmtree(root, ignore_errors=True)
    log = CACHE / f"{suite}.log"
    with log.open("w") as output:
        if not debootstrap(suite, root, output):
            raise Missing(f"{suite}: debootstrap failed, see {log}")
        (root / "usr/sbin/policy-rc.d").write_text(NO_SERVICES)
        (root / "usr/sbin/policy-rc.d").chmod(0o755)
        script = (f"export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && apt-get -qq install -y --no-install-recommends {EXTRA} && "
                  "sed -i 's/^passwd:.*/passwd: files extrausers/' /etc/nsswitch.conf && "
                  "echo 'remote:x:4242:65534::/home/remote:/bin/sh' >/var/lib/extrausers/passwd && apt-get clean && rm -rf /var/lib/apt/lists/*")
        # By QEMU, systemd would take a quarter of an hour.
        if not machine(suite) and subprocess.run(["chroot", root, "sh", "-c", script], stdout=output, stderr=subprocess.STDOUT, check=False).returncode != 0:
            raise Missing(f"{suite}: its packages cannot be installed, see {log}")
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    shutil.rmtree(root)
    (CACHE / f"{suite}.extra").touch()
    return archive


def machine(suite: str) -> list:
    """What runs commands of the root file system."""
    return [IN_ARM64] if suite.endswith("-arm64") else []


def debootstrap(suite: str, root: pathlib.Path, output) -> bool:
    release, _, architecture = suite.partition("-")
    foreign = [f"--arch={architecture}", "--foreign"] if architecture else []
    include = "ca-certificates,passwd" + (",libpq5" if foreign else "")
    options = {"stdout": output, "stderr": subprocess.STDOUT, "check": False}
    command = ["debootstrap", "--variant=minbase", f"--include={include}", *foreign, release, root, mirror()]
    if subprocess.run(command, **options).returncode != 0:
        return False
    if not foreign:
        return True
    # Its own programs do the rest. They cannot make devices in a user namespace; `lxc` lets debootstrap not try.
    for name, numbers in DEVICES.items():
        device = root / "dev" / name
        if not device.exists():
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(*numbers))
        device.chmod(0o666)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "container": "lxc"}
    return subprocess.run([*machine(suite), "unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", root, "/debootstrap/debootstrap", "--second-stage"],
                          env=environment, **options).returncode == 0


class Copy:
    """A root file system to change. Commands run in namespaces of their own, so that nothing is left running or mounted."""

    def __init__(self, suite: str, directory: pathlib.Path):
        self.suite, self.root = suite, directory / suite
        self.patience = 4 if machine(suite) else 1  # QEMU is slow
        archive = base(suite)
        self.root.mkdir(parents=True)
        subprocess.run(["tar", "-C", self.root, "-xf", archive], check=True)
        shutil.copytree(ROOT / "packaging", self.root / "src", ignore=shutil.ignore_patterns("grafana"))

    def try_run(self, script: str, network: bool = False, timeout: int = 150, **environment: str) -> subprocess.CompletedProcess:
        full = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", **environment}
        # Nothing in it can listen where other programs of this machine do: the network is its own, with loopback, unless apt needs it.
        own = [] if network else ["--net"]
        return subprocess.run([*machine(self.suite), "unshare", "--mount", "--pid", "--fork", *own, f"--mount-proc={self.root}/proc", "sh", "-c",
                               f'[ -n "$1" ] || ip link set lo up; exec chroot "{self.root}" sh -c "$0"', script, "yes" if network else ""],
                              env=full, capture_output=True, text=True, timeout=timeout * self.patience, stdin=subprocess.DEVNULL, check=False)

    def run(self, script: str, **environment: str) -> str:
        done = self.try_run(script, **environment)
        if done.returncode != 0:
            raise AssertionError(f"{self.suite}: {script}: status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
        return done.stdout.strip()

    def text(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text()

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def exists(self, path: str) -> bool:
        file = self.root / path.lstrip("/")
        return file.exists() or file.is_symlink()

    def add(self, *files: pathlib.Path) -> str:
        """Copies packages into the root file system; returns their paths there."""
        (self.root / "packages").mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, self.root / "packages")
        return " ".join(f"/packages/{file.name}" for file in files)
