"""Pieces of queries. Watts and joules are those of the nodes, without PUE, unless the name of a record ends in `pue`."""

from .model import Formula

UNIT_ENERGY = "ceems_compute_unit_energy_joules_total"
NODE_ENERGY = "ceems_node_energy_joules_total"
SYSTEM = "ceems_system_energy_joules_total"
ENDED = "ceems_ended_units_energy_joules_total"
UNALLOCATED = "ceems_unallocated_energy_joules_total"
FACTOR = "ceems_emissions_gCo2_kWh"
JOULES = "3.6e6"  # in a kilowatt-hour


def selector(metric, labels=""):
    return "%s{%s}" % (metric, labels) if labels else metric


def rate(metric, labels=""):
    return "rate(%s[$__rate_interval])" % selector(metric, labels)


def increase(metric, labels=""):
    return "increase(%s[$__range])" % selector(metric, labels)


def total(what, by=""):
    return "sum by (%s) (%s)" % (by, what) if by else "sum(%s)" % what


def named(what, label, value):
    return 'label_replace(%s, "%s", "%s", "", "")' % (what, label, value)


def in_words(text):
    """A label value that people read as the name of a line: build.py translates it."""
    return "<<%s>>" % text


def charged(labels):
    """What units, ended units, the system and nobody were charged: together what the node used. (`or` would not do: it ignores the name
    of the metric, so the second of two metrics with the same labels would be lost.)"""
    return '{__name__=~"%s", %s}' % ("|".join((UNIT_ENERGY, ENDED, SYSTEM, UNALLOCATED)), labels)


def any_of(parts):
    return " or ".join(parts)


def same_labels(first, second):
    """The first; where it has no series, the second, which has the same labels."""
    return Formula("(%s) or (%s)" % (first, second), first)


def instead(first, second):
    """The first; the second only where the first has no series at all."""
    return Formula("(%s) or ((%s) unless on () (%s))" % (first, second, first), first)


def power_of_records(labels, by):
    """Watts of units by recording rules: host, and GPUs where there are any."""
    host = total(selector("uuid:ceems_host_power_watts:pue", labels), by)
    gpu = total(selector("uuid:ceems_gpu_power_watts:pue", labels), by)
    return "%s + (%s or 0 * %s)" % (host, gpu, host)


def energy_of_records(record, labels):
    """Kilowatt-hours in the range by a record of watts, one value a minute."""
    return "sum(sum_over_time(%s[$__range:1m])) * 60 / %s" % (selector(record, labels), JOULES)
