"""Wattmeters that validate_energy can read: BMCs, hwmon, a CSV of readings, or a command."""

import base64
import csv
import datetime
import glob
import json
import math
import os
import re
import shlex
import ssl
import subprocess
import urllib.request

MAX_WATTS = 1e5


class Failure(Exception):
    """What stops the validation, in words for the user."""


def check_watts(value, where):
    if not math.isfinite(value) or not 0 < value <= MAX_WATTS:
        raise Failure("%s: expected watts, got %s" % (where, value))
    return value


def run_tool(command, where):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure("%s: %s" % (where, error)) from error
    if done.returncode:
        raise Failure("%s: exit status %d: %s" % (where, done.returncode, done.stderr.strip()[:200]))
    return done.stdout


def dcmi_watts(text):
    found = re.search(r"Instantaneous power reading:\s*([0-9.]+)\s*Watts", text)
    if not found:
        raise Failure("ipmitool: no 'Instantaneous power reading' in its output")
    return check_watts(float(found.group(1)), "ipmitool")


def redfish_watts(document):
    """Watts of a Power, EnvironmentMetrics or Sensor resource."""
    candidates = [(control or {}).get("PowerConsumedWatts") for control in document.get("PowerControl") or []]
    candidates += [(document.get("PowerWatts") or {}).get("Reading"), document.get("Reading")]
    for value in candidates:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return check_watts(float(value), "redfish")
    raise Failure("redfish: the resource has no PowerConsumedWatts, PowerWatts or Reading")


def parse_time(text):
    try:
        return float(text)
    except ValueError:
        return datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00")).timestamp()


def csv_readings(lines, name, offset=0.0):
    """(time, watts) of each line. A first line that cannot be read is a header."""
    readings = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = next(csv.reader([line], delimiter=";" if ";" in line else ","))
        try:
            when, watts = parse_time(fields[0]), float(fields[1])
        except (ValueError, IndexError) as error:
            if not readings and number == 1:
                continue
            raise Failure("%s:%d: expected 'time,watts', got '%s'" % (name, number, line.strip()[:80])) from error
        readings.append((when + offset, check_watts(watts, "%s:%d" % (name, number))))
    if not readings:
        raise Failure("%s: no readings" % name)
    return sorted(readings)


class Meter:
    """A wattmeter. read() returns watts, or None for one whose readings come later, in late()."""

    def __init__(self, options):
        kind, _, argument = (options.meter or "").partition(":")
        self.name = options.meter
        self.options = options
        self.argument = argument
        self.late_file = None
        if kind == "ipmitool" and not argument:
            self.read = lambda: dcmi_watts(run_tool(["ipmitool", "dcmi", "power", "reading"], "ipmitool"))
        elif kind == "redfish" and argument.startswith(("http://", "https://")):
            self.read = self.redfish
        elif kind == "hwmon":
            self.argument = argument or self.find_hwmon()
            self.read = self.hwmon
        elif kind == "csv" and argument:
            if not os.path.isfile(argument):
                raise Failure("--meter: no file %s" % argument)
            self.late_file = argument
            self.read = lambda: None
        elif kind == "command" and argument:
            self.read = self.command
        else:
            raise Failure("--meter: expected ipmitool, redfish:URL, hwmon[:FILE], csv:FILE or command:COMMAND, got '%s'" % options.meter)

    @staticmethod
    def find_hwmon():
        for chip in sorted(glob.glob("/sys/class/hwmon/hwmon*")):
            with open(chip + "/name", encoding="utf-8") as name:
                if name.read().strip() == "power_meter":
                    for file in sorted(glob.glob(chip + "/power*_average") + glob.glob(chip + "/power*_input")):
                        return file
        raise Failure("--meter: no ACPI power meter below /sys/class/hwmon")

    def hwmon(self):
        try:
            with open(self.argument, encoding="utf-8") as file:
                return check_watts(int(file.read()) / 1e6, self.argument)
        except (OSError, ValueError) as error:
            raise Failure("%s: %s" % (self.argument, error)) from error

    def command(self):
        text = run_tool(shlex.split(self.argument), "--meter command").strip()
        try:
            return check_watts(float(text), "--meter command")
        except ValueError as error:
            raise Failure("--meter command: expected watts, got '%s'" % text[:80]) from error

    def redfish(self):
        request = urllib.request.Request(self.argument, headers={"Accept": "application/json"})
        if self.options.redfish_auth:
            with open(self.options.redfish_auth, encoding="utf-8") as file:  # "user:password"
                request.add_header("Authorization", "Basic " + base64.b64encode(file.read().strip().encode()).decode())
        context = ssl.create_default_context()
        if self.options.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                return redfish_watts(json.load(answer))
        except (OSError, ValueError) as error:
            raise Failure("%s: %s" % (self.argument, error)) from error

    def late(self):
        if not self.late_file:
            return []
        with open(self.late_file, encoding="utf-8") as file:
            return csv_readings(file, self.late_file, self.options.csv_offset)
