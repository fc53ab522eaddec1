#!/usr/bin/env python3
"""Writes libraries to link with in the place of glibc's, so that programs run with an older glibc.

A stub has the symbols of this machine's library and no code. Each symbol has the newest of its versions that is not newer than the one
asked for, and symbols that came later are missing, so the linker names every function that compat.c has to replace.

Usage: glibc_stubs.py DIRECTORY 2.28"""
import pathlib
import re
import subprocess
import sys

LIBRARIES = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2")
# glibc 2.34 moved what is in these into libc.so.6. Programs name them, so that an older glibc loads them as well.
MOVED = ("libpthread.so.0", "libdl.so.2", "librt.so.1")
ROW = re.compile(r"^\s*\d+: [0-9a-f]+\s+(\d+|0x[0-9a-f]+) (\w+)\s+(?:GLOBAL|WEAK|UNIQUE)\s+\w+\s+(\d+|ABS) (\S+?)@@?GLIBC_([0-9.]+)\b")


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def symbols(path: str, newest: tuple[int, ...]) -> dict[str, tuple[str, int, str]]:
    """For each symbol of the library: version, size and type."""
    found: dict[str, tuple[str, int, str]] = {}
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        row = ROW.match(line)
        if not row or row[3] == "ABS":
            continue
        size, kind, _, name, version = row.groups()
        if number(version) <= newest and (name not in found or number(found[name][0]) < number(version)):
            found[name] = (version, int(size, 0), kind)
    return found


def write(directory: pathlib.Path, soname: str, found: dict[str, tuple[str, int, str]]) -> None:
    assembly = []
    nodes: dict[str, list[str]] = {}
    for name, (version, size, kind) in sorted(found.items()):
        section = {"TLS": '.section .tbss,"awT",@nobits', "OBJECT": ".data"}.get(kind, ".text")
        of_type = {"TLS": "@tls_object", "OBJECT": "@object"}.get(kind, "@function")
        # Programs copy variables, and the linker takes their size from here.
        assembly += [section, ".balign 32", f".globl {name}", f".type {name}, {of_type}", f".size {name}, {size}", f"{name}:", f".zero {max(size if kind != 'FUNC' else 1, 1)}"]
        nodes.setdefault(version, []).append(name)
    versions = [f"GLIBC_{version} {{ global: {' '.join(name + ';' for name in nodes[version])} }};" for version in sorted(nodes, key=number)]
    source, script = directory / f"{soname}.s", directory / f"{soname}.map"
    source.write_text("\n".join([*assembly, '.section .note.GNU-stack,"",@progbits', ""]))
    script.write_text("\n".join([*versions, ""]))
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", f"-Wl,-soname,{soname}"]
                   + ([f"-Wl,--version-script={script}"] if versions else []) + ["-o", directory / soname, source], check=True)


def main() -> None:
    directory, newest = pathlib.Path(sys.argv[1]), number(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    for soname in LIBRARIES:
        path = subprocess.run(["gcc", f"-print-file-name={soname}"], check=True, capture_output=True, text=True).stdout.strip()
        found = symbols(path, newest)
        if len(found) < 3:
            sys.exit(f"glibc_stubs: {path}: expected the symbols of glibc, found {len(found)}")
        write(directory, soname, found)
    for soname in MOVED:
        write(directory, soname, {})
    nonshared = subprocess.run(["gcc", "-print-file-name=libc_nonshared.a"], check=True, capture_output=True, text=True).stdout.strip()
    here = directory.resolve()
    (directory / "libc.so").write_text(f"GROUP({here}/libc.so.6 {nonshared} {here}/libcompat.a AS_NEEDED({here}/ld-linux-x86-64.so.2))\n")
    (directory / "libm.so").write_text(f"GROUP({here}/libm.so.6)\n")


main()
