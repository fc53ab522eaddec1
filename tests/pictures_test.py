#!/usr/bin/env python3
"""The pictures of README.md and docs/index.md: drawn from their description, with a title and a description for those who cannot see
them, readable in light and dark, small enough for the repository, and shown with a text."""
import pathlib
import re
import struct
import subprocess
import sys
import tomllib
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
SVG = "{http://www.w3.org/2000/svg}"
MAX_BYTES = 200_000
AA = 4.5  # contrast of text (WCAG 2.2, level AA)


def drawing_is_up_to_date(drawn):
    said = subprocess.run([ROOT / "scripts/picture", "--print"], check=True, capture_output=True, text=True).stdout
    assert said == drawn, "docs/pictures/structure.svg is not what structure.toml describes; run scripts/picture"


def programs_exist(description):
    apps = {path.name for path in (ROOT / "apps").iterdir()}
    for box in description["boxes"].values():
        names = [word.strip(",") for word in box["name"].split()]
        assert not box.get("ours") or apps & set(names), f"{box['name']}: no such program in apps"
    for arrow in description["arrows"]:
        assert {arrow["from"], arrow["to"]} <= set(description["boxes"]), arrow


def drawing_is_accessible(drawn):
    root = xml.etree.ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    labels = [root.find(f".//*[@id='{name}']") for name in root.get("aria-labelledby").split()]
    assert [label.tag for label in labels] == [SVG + "title", SVG + "desc"] and all(label.text for label in labels)
    assert not re.search(r"<script|<foreignObject|href|https?://(?!www\.w3\.org/2000/svg)|@import", drawn), "the picture loads something"


def luminance(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def drawing_is_readable(drawn):
    modes = [dict(re.findall(r"--(\w+):(#[0-9a-f]{6});", part)) for part in drawn.split("prefers-color-scheme:dark")[:2]]
    assert modes[0].keys() == modes[1].keys() and modes[0] != modes[1], modes
    for colours in modes:
        for text, behind in (("text", "paper"), ("text", "soft"), ("muted", "page")):
            assert contrast(colours[text], colours[behind]) >= AA, (text, behind, contrast(colours[text], colours[behind]))
        for line in ("edge", "accent"):
            assert contrast(colours[line], colours["page"]) >= 3, (line, contrast(colours[line], colours["page"]))
    assert contrast("#000000", "#ffffff") == 21


def texts_fit(drawn):
    """By the width of a wide font: 0.6 of the size for each character, and nothing outside the picture."""
    root = xml.etree.ElementTree.fromstring(drawn)
    boxes = [tuple(float(box.get(name)) for name in ("x", "y", "width", "height")) for box in root.findall(SVG + "rect") if box.get("x")]
    width = float(root.get("width"))
    for text in root.findall(SVG + "text"):
        x, y, kind = float(text.get("x")), float(text.get("y")), text.get("class")
        length = len(text.text) * 0.6 * (15 if kind == "name" else 12.5)
        if kind in ("name", "small"):
            box = next(box for box in boxes if box[0] < x < box[0] + box[2] and box[1] < y < box[1] + box[3])
            assert length <= box[2] - 8, (text.text, length, box)
        elif kind == "label":
            left = x - length / 2 if text.get("text-anchor") == "middle" else x
            inside = [box for box in boxes if left < box[0] + box[2] and left + length > box[0] and box[1] < y < box[1] + box[3]]
            assert not inside and left + length < width, (text.text, left, length, inside)


def screenshots_are_small():
    for picture in sorted(PICTURES.glob("*.png")):
        data = picture.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR", f"{picture.name} is not a PNG file"
        width, height = struct.unpack(">II", data[16:24])
        assert width >= 1000 and height >= 600 and 10_000 < len(data) <= MAX_BYTES, (picture.name, width, height, len(data))


def pictures_are_shown():
    readme = [path.name for path in PICTURES.glob("*.png")]
    assert len(readme) == 6, readme
    for page, prefix, screens in (("README.md", "docs/pictures/", readme), ("docs/index.md", "pictures/", ["page.png"])):
        text = (ROOT / page).read_text(encoding="utf-8")
        shown = dict((path, words) for words, path in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", text))
        for name in ("structure.svg", *screens):
            assert len(shown.get(prefix + name, "")) > 30, f"{page} does not show {name} with a text that says what it shows"


def main():
    drawn = (PICTURES / "structure.svg").read_text(encoding="utf-8")
    drawing_is_up_to_date(drawn)
    programs_exist(tomllib.loads((PICTURES / "structure.toml").read_text(encoding="utf-8")))
    drawing_is_accessible(drawn)
    drawing_is_readable(drawn)
    texts_fit(drawn)
    screenshots_are_small()
    pictures_are_shown()
    print("PASS: pictures")


if __name__ == "__main__":
    sys.exit(main())
