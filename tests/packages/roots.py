"""Root file systems of Debian's releases, made once by debootstrap below build/packages/roots, and copies of them for tests."""
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / "build/packages/roots"
NO_SERVICES = "#!/bin/sh\nexit 101\n"
EXTRA = "systemd libnss-extrausers libcrypt1 libpq5"


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
        made = subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates,passwd", suite, root, mirror()], stdout=output, stderr=subprocess.STDOUT, check=False)
        if made.returncode != 0:
            raise Missing(f"{suite}: debootstrap failed, see {log}")
        (root / "usr/sbin/policy-rc.d").write_text(NO_SERVICES)
        (root / "usr/sbin/policy-rc.d").chmod(0o755)
        script = (f"export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && apt-get -qq install -y --no-install-recommends {EXTRA} && "
                  "sed -i 's/^passwd:.*/passwd: files extrausers/' /etc/nsswitch.conf && "
                  "echo 'remote:x:4242:65534::/home/remote:/bin/sh' >/var/lib/extrausers/passwd && apt-get clean && rm -rf /var/lib/apt/lists/*")
        if subprocess.run(["chroot", root, "sh", "-c", script], stdout=output, stderr=subprocess.STDOUT, check=False).returncode != 0:
            raise Missing(f"{suite}: its packages cannot be installed, see {log}")
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    shutil.rmtree(root)
    (CACHE / f"{suite}.extra").touch()
    return archive


class Copy:
    """A root file system to change. Commands run in namespaces of their own, so that nothing is left running or mounted."""

    def __init__(self, suite: str, directory: pathlib.Path):
        self.suite, self.root = suite, directory / suite
        archive = base(suite)
        self.root.mkdir(parents=True)
        subprocess.run(["tar", "-C", self.root, "-xf", archive], check=True)
        shutil.copytree(ROOT / "packaging", self.root / "src", ignore=shutil.ignore_patterns("grafana"))

    def try_run(self, script: str, network: bool = False, timeout: int = 150, **environment: str) -> subprocess.CompletedProcess:
        full = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", **environment}
        # Nothing in it can listen where other programs of this machine do: the network is its own, with loopback, unless apt needs it.
        own = [] if network else ["--net"]
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", *own, f"--mount-proc={self.root}/proc", "sh", "-c",
                               f'[ -n "$1" ] || ip link set lo up; exec chroot "{self.root}" sh -c "$0"', script, "yes" if network else ""],
                              env=full, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False)

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
