"""A QEMU machine: Debian's kernel, unpacked but not installed, and an initramfs with busybox and the programs of a test. The test uses a
shell in the machine over a serial line, and its port 9010 over a forwarded port. KVM is used where a kernel boots with it, else
emulation; $CEEMS_VM_ACCEL, "kvm" or "tcg", overrides that."""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import harness  # noqa: E402
from harness import free_port, skip, write  # noqa: E402

CACHE = os.environ.get("CEEMS_VM_CACHE", os.path.join(ROOT, "build", "vm"))
# Times out later than on an idle host by this factor, because an emulated machine whose host is busy with other work is slow.
PATIENCE = 4
MODULES = ["virtio_pci", "virtio_net", "virtio_blk", "ipmi_devintf", "ipmi_si", "dummy", "crc32_generic", "rdma_rxe"]


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True, **options).stdout


def wait_until(what, condition, timeout=30.0, every=0.1):
    return harness.wait_until(what, condition, PATIENCE * timeout, every)


def limit_run(seconds):
    """Ends the test by an exception if it takes longer, so that the machine ends, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("vm: ended by a signal"))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("vm: did not finish within %d s" % (PATIENCE * seconds)))
    signal.alarm(PATIENCE * seconds)


def find(program):
    """Finds a program, even in directories that are not on a user's PATH."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/local/sbin")


class Suite:
    """The packages of a Debian suite. apt reads lists of its own, so the machine's sources stay as they are."""

    def __init__(self, name, directory):
        self.apt = os.path.join(directory, "apt")
        shutil.rmtree(directory, ignore_errors=True)
        for folder in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(self.apt, folder))
        targets = output("apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages").split()
        repository = next((uri for uri in targets if uri.rstrip("/").endswith("/debian")), None)
        if repository is None:
            skip("apt has no source of Debian's main archive")
        write(os.path.join(self.apt, "sources.list"), "deb %s %s main\n" % (repository, name))
        self.options = ["-qq", "-o", "Dir::Etc::sourcelist=%s/sources.list" % self.apt, "-o", "Dir::Etc::sourceparts=/dev/null",
                        "-o", "Dir::State::lists=%s/lists" % self.apt, "-o", "Dir::Cache=%s/cache" % self.apt,
                        "-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=" + output("id", "-un").strip()]
        output("apt-get", *self.options, "update")

    def cache(self, *arguments):
        return output("apt-cache", *self.options, *arguments)

    def unpack(self, packages, tree):
        """Downloads packages and unpacks them into `tree`. The lists are removed."""
        output("apt-get", *self.options, "download", *packages, cwd=self.apt)
        for deb in glob.glob(self.apt + "/*.deb"):
            output("dpkg", "-x", deb, tree)
        shutil.rmtree(self.apt)

    @staticmethod
    def pythons(name):
        """A tree with the Python interpreters of a suite and what they need, for chroot, and their versions: ["3.9"]."""
        directory = os.path.join(CACHE, "python", name)
        tree = os.path.join(directory, "tree")
        if not os.path.exists(os.path.join(directory, "complete")):
            print("vm: downloading the Python interpreters of %s" % name, flush=True)
            try:
                suite = Suite(name, directory)
                interpreters = re.findall(r"^(python3\.\d+-minimal) ", suite.cache("search", "-n", r"^python3\.[0-9]+-minimal$"), re.MULTILINE)
                packages = interpreters + ["lib" + package for package in interpreters]
                suite.unpack(packages + ["libc6", "libexpat1", "zlib1g", "libgcc-s1", "libzstd1", "libcrypt1"], tree)
            except subprocess.CalledProcessError:
                skip("cannot download the Python interpreters of Debian's suite %s" % name)
            for library in glob.glob(os.path.join(tree, "usr", "lib", "x86_64-linux-gnu", "gconv")) + glob.glob(
                    os.path.join(tree, "usr", "share", "*")):
                shutil.rmtree(library)
            for folder in ("lib", "lib64"):  # recent packages have these in /usr only
                if not os.path.exists(os.path.join(tree, folder)):
                    os.symlink("usr/" + folder, os.path.join(tree, folder))
            write(os.path.join(directory, "complete"), "")
        versions = [os.path.basename(path)[len("python"):] for path in glob.glob(os.path.join(tree, "usr", "bin", "python3.*"))]
        return tree, sorted(versions, key=lambda version: int(version.split(".")[1]))


class Kernel:
    """Debian's kernel and its headers, downloaded once into the cache."""

    def __init__(self, version):
        self.version = version
        self.directory = os.path.join(CACHE, version)
        self.image = os.path.join(self.directory, "boot", "vmlinuz-" + version)

    @staticmethod
    def of_suite(suite):
        """The kernel for cloud machines of another Debian suite: "bullseye", "trixie", "sid"."""
        directory = os.path.join(CACHE, "suite", suite)
        done = glob.glob(os.path.join(directory, "*", "complete"))
        if not done:
            Kernel._fetch_of_suite(suite, directory)
            done = glob.glob(os.path.join(directory, "*", "complete"))
        if not done:
            skip("cannot download the kernel of Debian's suite %s" % suite)
        kernel = Kernel(os.path.basename(os.path.dirname(done[0])))
        kernel.directory = os.path.dirname(done[0])
        kernel.image = os.path.join(kernel.directory, "vmlinuz")
        return kernel

    @staticmethod
    def _fetch_of_suite(name, directory):
        """Unpacks the packages of the kernel."""
        print("vm: downloading the kernel of %s" % name, flush=True)
        try:
            suite = Suite(name, directory)
            found = re.findall(r"Depends: (linux-image-[0-9]\S+)", suite.cache("depends", "linux-image-cloud-amd64"))
            packages = [found[0]]
            packages += re.findall(r"Depends: (linux-(?:binary|modules|base)-[0-9]\S+)", suite.cache("depends", found[0]))
            version = found[0][len("linux-image-"):]
            tree = os.path.join(directory, version)
            suite.unpack(packages, tree)
        except (subprocess.CalledProcessError, IndexError):
            return
        images = glob.glob(os.path.join(tree, "boot", "vmlinuz-*")) + glob.glob(os.path.join(tree, "**", "vmlinuz"), recursive=True)
        shutil.copy(images[0], os.path.join(tree, "vmlinuz"))
        if not os.path.exists(os.path.join(tree, "lib")):
            os.symlink("usr/lib", os.path.join(tree, "lib"))
        output(find("depmod"), "-b", tree, version)
        write(os.path.join(tree, "complete"), "")

    @staticmethod
    def get():
        done = sorted(glob.glob(os.path.join(CACHE, "[0-9]*", "complete")))
        if done:
            return Kernel(os.path.basename(os.path.dirname(done[-1])))
        found = re.search(r"Depends: linux-image-(\S+)", output("apt-cache", "depends", "linux-image-amd64"))
        if not found:
            skip("apt does not know the package linux-image-amd64")
        kernel = Kernel(found.group(1))
        kernel._unpack()
        return kernel

    def _unpack(self):
        headers = "linux-headers-" + self.version
        packages = ["linux-image-" + self.version, headers]
        packages += re.findall(r"Depends: (linux-\S+)", output("apt-cache", "depends", headers))
        shutil.rmtree(self.directory, ignore_errors=True)
        debs = os.path.join(self.directory, "debs")
        os.makedirs(debs)
        print("vm: downloading %s" % " ".join(packages), flush=True)
        try:
            # Run by root, apt would switch to a user that may not write here.
            output("apt-get", "-qq", "-o", "APT::Sandbox::User=" + output("id", "-un").strip(), "download", *packages, cwd=debs)
        except subprocess.CalledProcessError:
            skip("cannot download the packages of Debian's kernel %s" % self.version)
        for deb in glob.glob(debs + "/*.deb"):
            output("dpkg", "-x", deb, self.directory)
        shutil.rmtree(debs)
        output(find("depmod"), "-b", self.directory, self.version)
        makefile = os.path.join(self.headers, "Makefile")
        with open(makefile) as f:
            text = f.read()
        write(makefile, text.replace(" /usr/src/", " %s/usr/src/" % self.directory))
        write(os.path.join(self.directory, "complete"), "")

    @property
    def headers(self):
        return os.path.join(self.directory, "usr", "src", "linux-headers-" + self.version)

    def module_files(self, names):
        """The files of these modules and of their dependencies, in the order in which they must be loaded."""
        files = []
        for name in names:
            lines = output(find("modprobe"), "-d", self.directory, "-S", self.version, "--show-depends", name)
            files += [line.split()[1] for line in lines.splitlines() if line.startswith("insmod")]
        return list(dict.fromkeys(files))

    def build_modules(self, directory):
        """Builds the sources of modules/ in `directory`."""
        shutil.copytree(os.path.join(HERE, "modules"), directory)
        done = subprocess.run(["make", "-s", "-C", self.headers, "M=" + directory, "modules"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
        assert done.returncode == 0, done.stdout


class Initramfs:
    """A tree of files that is packed into an archive for the kernel."""

    def __init__(self, directory):
        self.directory = directory
        for folder in ("bin", "dev", "etc", "modules", "proc", "sys", "tmp", "root"):
            os.makedirs(os.path.join(directory, folder))
        busybox = find("busybox")
        self.copy(busybox, "bin/busybox")
        for applet in output(busybox, "--list").split():
            link = os.path.join(directory, "bin", applet)
            if not os.path.lexists(link):
                os.symlink("busybox", link)
        self.modules = 0

    def copy(self, source, target=None, mode=0o755):
        path = os.path.join(self.directory, (target or source).lstrip("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        shutil.copy(os.path.realpath(source), path)
        os.chmod(path, mode)

    def program(self, source, target, libraries=()):
        """Adds a program with its shared libraries, including those that it opens at run time."""
        self.copy(source, target)
        for binary in (source, *libraries):
            for path in re.findall(r"(/\S+) \(0x", output("ldd", binary)):
                self.copy(path)
        for library in libraries:
            self.copy(library)

    def module(self, source):
        """Loads modules at the start, in the order of the calls."""
        self.modules += 1
        target = "modules/%03d-%s" % (self.modules, os.path.basename(source))
        tool = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-dqc"]}.get(os.path.splitext(source)[1])
        if tool is None:
            self.copy(source, target, 0o644)
        else:  # busybox cannot load a compressed module
            with open(os.path.join(self.directory, os.path.splitext(target)[0]), "wb") as f:
                subprocess.run(tool + [source], stdout=f, check=True)

    def text(self, path, content):
        write(os.path.join(self.directory, path.lstrip("/")), content)

    def pack(self, archive):
        output("sh", "-c", 'find . | cpio -o -H newc --quiet -R 0:0 | gzip -1 >"$1"', "sh", archive, cwd=self.directory)


class CommandFailed(AssertionError):
    pass


ACCELERATORS = {"kvm": ["-accel", "kvm", "-cpu", "host"], "tcg": ["-accel", "tcg,thread=multi", "-cpu", "max"]}
KVM_LIMIT = 20  # seconds for a kernel to boot; with working KVM it takes one or two
BOOTED = b"probe: booted"


def boots_with_kvm(kernel):
    """/dev/kvm that can be opened is not enough: nested in a machine without VMX or SVM (the module kvm_pvm), Debian's kernels start
    and get nowhere, instruction by instruction."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    with tempfile.TemporaryDirectory(prefix="ceems-kvm-") as directory:
        tree = Initramfs(directory + "/tree")
        tree.text("init", "#!/bin/busybox sh\necho '%s'\nexec sleep 100\n" % BOOTED.decode())
        os.chmod(directory + "/tree/init", 0o755)
        tree.pack(directory + "/initramfs")
        with open(directory + "/console", "wb") as console:
            process = subprocess.Popen(
                ["qemu-system-x86_64", *ACCELERATORS["kvm"], "-m", "512", "-smp", "2", "-display", "none", "-nodefaults", "-no-reboot",
                 "-serial", "stdio", "-kernel", kernel.image, "-initrd", directory + "/initramfs",
                 "-append", "console=ttyS0 quiet panic=-1 rdinit=/init"], stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        try:
            end = time.monotonic() + KVM_LIMIT
            while process.poll() is None and time.monotonic() < end:
                with open(directory + "/console", "rb") as console:
                    if BOOTED in console.read():
                        return True
                time.sleep(0.1)
            return False
        finally:
            process.kill()
            process.wait()


def accelerator(kernel):
    """"kvm" or "tcg". Tried once for each kernel and boot of the host."""
    forced = os.environ.get("CEEMS_VM_ACCEL", "")
    if forced:
        if forced not in ACCELERATORS:
            sys.exit("vm: CEEMS_VM_ACCEL is '%s', expected kvm or tcg" % forced)
        return forced
    with open("/proc/sys/kernel/random/boot_id") as f:
        note = os.path.join(CACHE, "accelerator", f.read().strip(), kernel.version)
    if not os.path.exists(note):
        found = "kvm" if boots_with_kvm(kernel) else "tcg"
        if found == "tcg" and os.path.exists("/dev/kvm"):
            print("vm: Linux %s does not boot with /dev/kvm within %d s, so it is emulated" % (kernel.version, KVM_LIMIT), flush=True)
        os.makedirs(os.path.dirname(note), exist_ok=True)
        write(note, found)
    with open(note) as f:
        return f.read()


class Machine:
    """A running machine. A context manager that ends it."""

    address = "10.0.2.2"  # of the host

    def __init__(self, kernel, archive, scratch, bmc_socket=None, disk=None, options="", share=None, port=None, memory=1024):
        """`memory`: MiB. `share`: a directory of the host that the machine can mount read-only, as "host" with the file system 9p.
        `port`: of the host, by which port 9010 of the machine can be reached; default: any that is free."""
        self.accelerator = accelerator(kernel)
        self.port = port or free_port()
        self.console_path = os.path.join(scratch, "console.log")
        agent = os.path.join(scratch, "agent")
        self.console = open(self.console_path, "wb")
        bmc = ["-chardev", "socket,id=bmc,reconnect=1,path=%s" % bmc_socket, "-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc",
               "-device", "isa-ipmi-kcs,bmc=bmc0"] if bmc_socket else []
        files = ["-virtfs", "local,path=%s,mount_tag=host,security_model=none,readonly=on,multidevs=remap" % share] if share else []
        drive = ["-drive", "if=virtio,format=raw,file=" + disk] if disk else []
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", *ACCELERATORS[self.accelerator], "-m", str(memory), "-smp", "2", "-display", "none", "-nodefaults",
             "-no-reboot", "-serial", "stdio",
             "-chardev", "socket,id=agent,server=on,wait=off,path=" + agent, "-serial", "chardev:agent",
             "-nic", "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:9010" % self.port,
             "-kernel", kernel.image, "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init " + options] + bmc + drive + files,
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console)
        self.received = b""
        self.commands = 0
        try:
            wait_until("QEMU starts", lambda: os.path.exists(agent) or not self.alive(), 20)
            assert self.alive(), self.console_text()
            self.agent = socket.socket(socket.AF_UNIX)
            self.agent.connect(agent)
            self._wait_for(rb"agent: ready", PATIENCE * 200)
        except BaseException:
            self._end()
            raise

    def alive(self):
        return self.process.poll() is None

    def console_text(self):
        with open(self.console_path, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def _wait_for(self, pattern, timeout):
        end = time.monotonic() + timeout
        while True:
            found = re.search(pattern, self.received)
            if found:
                before = self.received[:found.start()]
                self.received = self.received[found.end():]
                return before.decode("utf-8", "replace"), found
            left = end - time.monotonic()
            if left <= 0 or not self.alive():
                raise AssertionError("the machine does not respond:\n%s\nconsole:\n%s" % (
                    self.received[-2000:].decode("utf-8", "replace"), self.console_text()[-3000:]))
            self.agent.settimeout(min(left, 1.0))
            try:
                data = self.agent.recv(65536)
            except socket.timeout:
                continue
            if not data:
                raise AssertionError("the machine ended:\n" + self.console_text()[-3000:])
            self.received += data

    def run(self, command, timeout=60.0):
        """Returns the output of a shell command in the machine. Raises CommandFailed with the output if the command fails."""
        timeout *= PATIENCE
        self.commands += 1
        text = '{ %s\n} </dev/null 2>&1\necho "@%d:$?@"\n' % (command, self.commands)
        self.agent.settimeout(timeout)
        self.agent.sendall(text.encode())
        answer, found = self._wait_for(rb"@%d:(\d+)@\r?\n" % self.commands, timeout)
        answer = answer.replace("\r\n", "\n").strip()
        if found.group(1) != b"0":
            raise CommandFailed("'%s' ended with %s in the machine: %s" % (command, found.group(1).decode(), answer))
        return answer

    def start(self, command, log="/dev/null"):
        """Starts a command in the background and returns its process ID."""
        return int(self.run("%s >%s 2>&1 & echo $!" % (command, log)))

    def _end(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        self.console.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()
