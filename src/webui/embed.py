#!/usr/bin/env python3
"""Writes the files of a built web page as a C++ source: embed.py OUT.cc [DIST]. Without DIST the table is empty.

The output depends only on the content of the files, so the same page gives the same program."""

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


def literal(data):
    """The bytes as adjacent string literals, which compile faster than a list of numbers."""
    table = ["\\%03o" % byte if byte < 32 or byte > 126 or byte in b'"\\?' else chr(byte) for byte in range(256)]
    lines = ["".join(table[byte] for byte in data[i:i + 96]) for i in range(0, len(data), 96)]
    return "\n".join('    "%s"' % line for line in lines) or '    ""'


def view(data):
    return "std::string_view{\n%s,\n    %d}" % (literal(data), len(data))


def rows(dist):
    found = []
    for folder, _, names in os.walk(dist):
        for name in names:
            full = os.path.join(folder, name)
            kind = TYPES.get(os.path.splitext(name)[1])
            if kind is None:
                sys.exit("embed.py: %s: unknown file type, add its content type to TYPES" % full)
            with open(full, "rb") as f:
                found.append((os.path.relpath(full, dist), kind, f.read()))
    # Sorted by bytes, because std::string_view compares bytes.
    return sorted(found, key=lambda row: row[0].encode())


def main():
    out, dist = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    found = rows(dist) if dist else []
    if dist and "index.html" not in [path for path, _, _ in found]:
        sys.exit("embed.py: index.html not found in %s" % dist)
    parts = ["// Written by src/webui/embed.py.", '#include "webui/files.h"', "", "#include <array>", "",
             "namespace ceems::webui {", "namespace {", "", "constexpr std::array<File, %d> kFiles{{" % len(found)]
    for path, kind, data in found:
        packed = gzip.compress(data, 9, mtime=0)
        if len(packed) > 0.9 * len(data):
            packed = b""
        etag = '\\"%s\\"' % hashlib.sha256(data).hexdigest()[:20]
        immutable = path.startswith("assets/") and HASHED.search(path) is not None
        parts.append('  {.path = "%s",\n   .content = %s,\n   .gzip = %s,\n   .content_type = "%s",\n   .etag = "%s",\n   .immutable = %s},'
                     % (path, view(data), view(packed), kind, etag, "true" if immutable else "false"))
    parts += ["}};", "", "}  // namespace", "", "std::span<const File> files() { return kFiles; }", "",
              "}  // namespace ceems::webui", ""]
    with open(out + ".new", "w", encoding="ascii") as f:
        f.write("\n".join(parts))
    os.replace(out + ".new", out)


if __name__ == "__main__":
    main()
