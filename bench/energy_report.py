"""The report of validate_energy: tables and plots, as Markdown with SVG files or as one HTML file."""

import datetime
import html
import math
import os
import re
import statistics

NOTABLE_BUSY = 0.03  # part of the CPUs that other processes used
FEW_READINGS = 5

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")


def svg(width, height, body, title):
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="sans-serif" '
            'font-size="12"><title>%s</title>\n<rect width="100%%" height="100%%" fill="white"/>\n%s\n</svg>\n'
            % (width, height, width, height, html.escape(title), "\n".join(body)))


def text_at(x, y, text, anchor="start"):
    return '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (x, y, anchor, html.escape(text))


def nice_step(span, most=6):
    step = 10 ** math.floor(math.log10(span / most))
    return next(step * factor for factor in (1, 2, 5, 10) if span / (step * factor) <= most)


def axis(low, high, y_of, left, right):
    """Lines and labels of a vertical axis."""
    body = []
    step = nice_step(high - low)
    value = math.ceil(low / step) * step
    while value <= high:
        y = y_of(value)
        body.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>' % (left, y, right, y))
        body.append(text_at(left - 6, y + 4, "%g" % value, "end"))
        value += step
    return body


def plot_power(windows, readings):
    """Power at the wall over time, with the loads and the means of the windows."""
    width, height, left, top, bottom = 900, 320, 60, 20, 40
    begin, end = readings[0][0], readings[-1][0]
    high = 1.08 * max(watts for _, watts in readings)
    x_of = lambda when: left + (width - left - 20) * (when - begin) / max(1e-9, end - begin)  # noqa: E731
    y_of = lambda watts: height - bottom - (height - top - bottom) * watts / high  # noqa: E731
    body = []
    for window in windows:
        if window.name != "idle":
            body.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#eeeeee"><title>%s</title></rect>' % (
                x_of(window.begin), top, x_of(window.end) - x_of(window.begin), height - top - bottom, html.escape(window.name)))
    body += axis(0, high, y_of, left, width - 20)
    body.append('<polyline fill="none" stroke="%s" points="%s"/>' % (
        COLOURS[0], " ".join("%.1f,%.1f" % (x_of(when), y_of(watts)) for when, watts in readings)))
    for window in windows:
        body.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2"/>' % (
            x_of(window.begin), y_of(window.wall), x_of(window.end), y_of(window.wall), COLOURS[1]))
    body.append(text_at(left, height - 12, "0 s"))
    body.append(text_at(width - 20, height - 12, "%.0f s" % (end - begin), "end"))
    body.append(text_at(left, 14, "W at the wall; grey: a load was measured; red: mean of the window"))
    return svg(width, height, body, "Power at the wall")


def plot_loads(outcomes):
    """Due and charged watts of each load, side by side."""
    row, left, width = 46, 260, 900
    high = 1.1 * max(max(o.due, o.charged) for o in outcomes)
    scale = (width - left - 90) / high
    body = [text_at(left, 14, "W; blue: due by the wattmeter, red: charged by the exporter")]
    for i, o in enumerate(outcomes):
        y = 28 + row * i
        body.append(text_at(left - 8, y + 20, label_of(o), "end"))
        for k, watts in enumerate((o.due, o.charged)):
            body.append('<rect x="%d" y="%d" width="%.1f" height="14" fill="%s"/>' % (left, y + 16 * k, scale * max(0, watts), COLOURS[k]))
            body.append(text_at(left + scale * max(0, watts) + 5, y + 16 * k + 11, "%.1f" % watts))
    return svg(width, 34 + row * len(outcomes), body, "Due and charged")


def label_of(outcome):
    return outcome.load + (": " + outcome.part if outcome.part else "")


def summary(outcomes):
    """Mean absolute error in percent of all, and bias and mean absolute error by kind of load."""
    kinds = {}
    for o in outcomes:
        kinds.setdefault("two at once" if o.part else o.load.split(",")[0] if "thread" not in o.load else "one thread", []).append(o)
    rows = [(kind, len(some), statistics.fmean(o.percent() for o in some), statistics.fmean(abs(o.percent()) for o in some),
             statistics.fmean(abs(o.share_percent()) for o in some)) for kind, some in kinds.items()]
    return statistics.fmean(abs(o.percent()) for o in outcomes), rows


def report(node, windows, outcomes, readings, options):
    mape, kinds = summary(outcomes)
    idle = [w for w in windows if w.name == "idle"]
    residual = max(abs(w.residual) / max(w.node, 1e-9) for w in windows)
    slow = min(w.distinct for w in windows)
    blocks = [("h1", "Energy of loads against a wattmeter"),
              ("p", "%s. %s. %d s a load after %d s to settle." % (
                  datetime.datetime.fromtimestamp(node.now()).strftime("%Y-%m-%d %H:%M"),
                  node.describe()[0].upper() + node.describe()[1:], options.seconds, options.settle)),
              ("p", "The mean absolute error of the energy charged to a load is **%.1f %%**." % mape),
              ("h2", "By kind of load"),
              ("table", ("load", "runs", "bias, %", "mean error, %", "mean error of the share, %"),
               [(kind, str(runs), "%+.1f" % bias, "%.1f" % error, "%.1f" % share) for kind, runs, bias, error, share in kinds]),
              ("p", "Due is the idle power at the wall times the load's share of the CPUs, and the power that it adds. The error of the share "
                    "compares with the same part of what the exporter's own meters see, which tells a wrong split from a meter that sees "
                    "too little."),
              ("h2", "Every load"),
              ("table", ("load", "added at the wall, W", "due, W", "charged, W", "error, %", "error of the share, %"),
               [(label_of(o), "%.1f ± %.1f" % (o.marginal, o.error), "%.1f" % o.due, "%.1f" % o.charged, "%+.1f" % o.percent(),
                 "%+.1f" % o.share_percent()) for o in outcomes]),
              ("svg", "loads", plot_loads(outcomes)),
              ("h2", "The node"),
              ("table", ("", "wattmeter, W", "exporter, W", "difference, %"),
               [("idle (mean of %d)" % len(idle), "%.1f" % statistics.fmean(w.wall for w in idle), "%.1f" % statistics.fmean(w.node for w in idle),
                 "%+.1f" % (100 * (statistics.fmean(w.node for w in idle) / statistics.fmean(w.wall for w in idle) - 1)))] +
               [(w.name, "%.1f" % w.wall, "%.1f" % w.node, "%+.1f" % (100 * (w.node / w.wall - 1))) for w in windows if w.name != "idle"]),
              ("p", "The exporter's energy of the node came from %s. What it charged differs from that by at most %.4f %%." % (
                  " and ".join(sorted({w.source for w in windows})), 100 * residual)),
              ("p", "For a node class without meters: `--collector.energy.model-watts=idle=%.0f,full=%.0f`%s" % (
                  statistics.fmean(w.wall for w in idle), max(w.wall for w in windows),
                  "." if any(w.name.endswith(" %d cores" % len(node.cores)) for w in windows) else " (the full load was not measured)."))]
    busy = statistics.fmean(w.busy for w in idle)
    if busy > NOTABLE_BUSY:
        blocks.append(("p", "Attention: the node was not idle. In the idle windows %.0f %% of its CPUs were busy." % (100 * busy)))
    if slow < FEW_READINGS:
        blocks.append(("p", "Attention: in one window the wattmeter showed only %d different readings. It averages or is read too rarely: "
                            "raise `--seconds` to at least ten of its periods." % slow))
    blocks.append(("svg", "power", plot_power(windows, readings)))
    return blocks


def as_html(blocks):
    def inline(text):
        text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text, quote=False))
        return re.sub(r"`(.+?)`", r"<code>\1</code>", text)

    out = ['<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>%s</title>\n'
           '<style>body{font-family:sans-serif;max-width:60em;margin:2em auto}'
           'td,th{padding:.2em .8em;text-align:right}td:first-child,th:first-child{text-align:left}</style>' % html.escape(blocks[0][1])]
    for block in blocks:
        if block[0] == "table":
            out.append("<table><tr>%s</tr>" % "".join("<th>%s</th>" % inline(cell) for cell in block[1]))
            out += ["<tr>%s</tr>" % "".join("<td>%s</td>" % inline(cell) for cell in row) for row in block[2]]
            out.append("</table>")
        elif block[0] == "svg":
            out.append(block[2])
        else:
            out.append("<%s>%s</%s>" % (block[0], inline(block[1]), block[0]))
    return "\n".join(out) + "\n</html>\n"


def as_markdown(blocks, picture):
    """`picture(name)` is the name of the file of a plot."""
    out = []
    for block in blocks:
        if block[0] == "table":
            out.append("\n".join(["| %s |" % " | ".join(block[1]), "|%s" % ("---|" * len(block[1]))] +
                                 ["| %s |" % " | ".join(row) for row in block[2]]))
        elif block[0] == "svg":
            out.append("![%s](%s)" % (block[1], os.path.basename(picture(block[1]))))
        else:
            out.append({"h1": "# ", "h2": "## ", "p": ""}[block[0]] + block[1])
    return "\n\n".join(out) + "\n"


def write_report(blocks, output):
    stem, suffix = os.path.splitext(output)
    picture = lambda name: "%s-%s.svg" % (stem, name)  # noqa: E731
    files = {output: as_html(blocks) if suffix == ".html" else as_markdown(blocks, picture)}
    if suffix != ".html":
        files.update({picture(block[1]): block[2] for block in blocks if block[0] == "svg"})
    for name, text in files.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    return sorted(files)
