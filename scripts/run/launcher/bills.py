"""The bills of the invented cluster: one for each month, and one for the month that goes on, until today began. The supplier states the emissions
of a month when it is over; until then, those of the contract in api_server_demo.yml count."""

import time

from . import invented
from .invented import DAY, HOUR

KWH = 3.6e6
PRICE = 0.25  # of a kWh
CONTRACT = 0.06  # kg/kWh of what the site has bought
UNKNOWN = 1.03  # what the meter counts beside everything that is read


def months(begin, end):
    """Pairs of the moments at which a month begins and ends, in local time; the first is whole, the last may end early."""
    year, month = time.localtime(begin)[:2]
    found = []
    while True:
        month += 1
        first, following = (int(time.mktime((year, number, 1, 0, 0, 0, 0, 0, -1))) for number in (month, month + 1))
        if first >= end:
            return found
        found.append((first, min(following, end)))


def kwh_between(parts, begin, end):
    """What the meter of the site counts. Each of `parts` has the time from which and until which its machines are known."""
    def joules(at):
        return sum(value for since, until, machines in parts for machine in machines
                   for series, value in machine.energy(max(since, min(at, until))) if series.startswith("ceems_node_energy"))
    services = sum(watts for _, watts in invented.SERVICES) * (end - begin)
    cooling = sum(invented.cooling_watts(at) * min(HOUR, end - at) for at in range(begin, end, HOUR))
    return UNKNOWN * (joules(end) - joules(begin) + services + cooling) / KWH


def table(parts, now):
    """As CSV."""
    today = int(time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1)))
    lines = ["period_start,period_end,kwh,cost,currency,kgco2_market"]
    for begin, end in months(parts[0][0], today):
        kwh = kwh_between(parts, begin, end)
        day = [time.strftime("%Y-%m-%d", time.localtime(at)) for at in (begin, end)]
        over = time.localtime(end).tm_mday == 1 and end - begin > 27 * DAY
        lines.append("%s,%s,%.0f,%.2f,EUR,%s" % (*day, kwh, PRICE * kwh, "%.0f" % (CONTRACT * kwh) if over else ""))
    return "\n".join(lines) + "\n"
