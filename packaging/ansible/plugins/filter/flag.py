"""A flag of a command line, from a name and its value."""


def flag(item):
    """{key: log.level, value: debug} -> --log.level=debug; true -> --name, false -> --no-name."""
    name, value = item["key"], item["value"]
    if value is True:
        return "--" + name
    if value is False:
        return "--no-" + name
    text = str(value)
    if any(character in text for character in " \t\n\"'\\\\$"):
        raise ValueError("--%s: %r: a value with blanks, quotes or $ cannot stand in /etc/default" % (name, text))
    return "--%s=%s" % (name, text)


class FilterModule:
    """Filters of the collection."""

    def filters(self):
        """Names and functions."""
        return {"flag": flag}
