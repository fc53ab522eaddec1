"""cacct, ceems_tool and the user mode of ceems_exporter for users of a cluster, from the tarball that `make packages` makes (docs/install.md)."""
import os

from spack.package import *


class Ceems(Package):
    """What jobs cost in energy, emissions, CPU and GPU time: cacct shows it, as sacct does, and `ceems_exporter run` measures it."""

    homepage = "https://github.com/ceems-dev/ceems"
    manual_download = True
    license("Apache-2.0")

    version("0.1.0")

    # The programs run with glibc 2.28 and newer, and need nothing else.
    requirement = "the tarball is for Linux on x86-64"
    requires("target=x86_64:", msg=requirement)
    requires("platform=linux", msg=requirement)

    def url_for_version(self, version):
        """In the folder in which `spack install` is called."""
        return f"file://{os.getcwd()}/ceems-{version}-linux-x86_64.tar.gz"

    def install(self, spec, prefix):
        mkdirp(prefix.bin, prefix.include, prefix.share.man.man8)
        install("include/ceems_mark.h", prefix.include)
        for program in ("cacct", "ceems_exporter", "ceems_mark", "ceems_tool"):
            install(f"bin/{program}", prefix.bin)
            install(f"share/man/man8/{program}.8.gz", prefix.share.man.man8)
