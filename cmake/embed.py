#!/usr/bin/env python3
"""Writes files as a C++ source, so that a program carries them (cmake/embed.cmake).

    embed.py texts OUT.cc HEADER NAMESPACE FILE...    one constant per file: kLoginHtml for login.html
    embed.py list OUT.cc HEADER NAMESPACE FILE...     files(), the files in that order: a File has a name and a text
    embed.py folder OUT.cc HEADER NAMESPACE [FOLDER]  a table of a folder of web files; empty without FOLDER

HEADER declares what OUT.cc defines. JSON is written without white space between its values. The output depends only on the content of
the files, so the same files give the same program."""

import gzip
import hashlib
import os
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
    ".png": "image/png",
}
HASHED = re.compile(r"-[A-Za-z0-9_-]{8}\.[a-z0-9]+$")  # Vite names all files below assets/ like this
STRING_OR_BLANKS = re.compile(rb'("(?:[^"\\]|\\.)*")|\s+')


def literal(data):
    """The bytes as adjacent string literals, which compile faster than a list of numbers."""
    table = ["\\%03o" % byte if byte < 32 or byte > 126 or byte in b'"\\?' else chr(byte) for byte in range(256)]
    lines = ["".join(table[byte] for byte in data[i:i + 96]) for i in range(0, len(data), 96)]
    return "\n".join('    "%s"' % line for line in lines) or '    ""'


def view(data):
    return "std::string_view{\n%s,\n    %d}" % (literal(data), len(data))


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return STRING_OR_BLANKS.sub(rb"\1", data) if path.endswith(".json") else data


def constant(path):
    """power_models.csv: kPowerModelsCsv"""
    return "k" + "".join(word.capitalize() for word in re.split(r"[^A-Za-z0-9]+", os.path.basename(path)))


def texts(paths):
    return ["const std::string_view %s = %s;\n" % (constant(path), view(read(path))) for path in paths]


def listed(paths):
    parts = ["namespace {", "", "constexpr std::array<File, %d> kFiles{{" % len(paths)]
    parts += ['  {.name = "%s",\n   .text = %s},' % (os.path.basename(path), view(read(path))) for path in paths]
    return parts + ["}};", "", "}  // namespace", "", "std::span<const File> files() { return kFiles; }", ""]


def rows(folder):
    found = []
    for inner, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(inner, name)
            kind = TYPES.get(os.path.splitext(name)[1])
            if kind is None:
                sys.exit("embed.py: %s: unknown file type, add its content type to TYPES" % full)
            with open(full, "rb") as file:
                found.append((os.path.relpath(full, folder), kind, file.read()))
    # Sorted by bytes, because std::string_view compares bytes.
    return sorted(found, key=lambda row: row[0].encode())


def table(folder):
    found = rows(folder) if folder else []
    if folder and "index.html" not in [path for path, _, _ in found]:
        sys.exit("embed.py: index.html not found in %s" % folder)
    parts = ["namespace {", "", "constexpr std::array<File, %d> kFiles{{" % len(found)]
    for path, kind, data in found:
        packed = gzip.compress(data, 9, mtime=0)
        if len(packed) > 0.9 * len(data):
            packed = b""
        etag = '\\"%s\\"' % hashlib.sha256(data).hexdigest()[:20]
        immutable = path.startswith("assets/") and HASHED.search(path) is not None
        parts.append('  {.path = "%s",\n   .content = %s,\n   .gzip = %s,\n   .content_type = "%s",\n   .etag = "%s",\n   .immutable = %s},'
                     % (path, view(data), view(packed), kind, etag, "true" if immutable else "false"))
    return parts + ["}};", "", "}  // namespace", "", "std::span<const File> files() { return kFiles; }", ""]


def main():
    kind, out, header, namespace, inputs = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
    kinds = {"texts": texts, "list": listed, "folder": lambda folders: table(folders[0] if folders else None)}
    body = kinds[kind](inputs)
    parts = ["// Written by cmake/embed.py.", '#include "%s"' % header, "", "#include <array>", "#include <string_view>", "",
             "namespace %s {" % namespace, "", *body, "}  // namespace %s" % namespace, ""]
    with open(out + ".new", "w", encoding="ascii") as file:
        file.write("\n".join(parts))
    os.replace(out + ".new", out)


if __name__ == "__main__":
    main()
