"""Parts of bench/RESULTS.md that programs write: between <!-- begin NAME --> and <!-- end NAME -->."""


def write_section(path, name, text):
    """Replaces the section, or adds it at the end of the file."""
    begin, end = "<!-- begin %s -->" % name, "<!-- end %s -->" % name
    with open(path, encoding="utf-8") as page:
        before, _, rest = page.read().partition(begin)
    _, _, after = rest.partition(end)
    with open(path, "w", encoding="utf-8") as page:
        page.write("%s%s\n\n%s\n\n%s%s" % (before, begin, text, end, after))
