"""The parts that `make run` starts and stops: Prometheus, the exporter, the API server and demo units, all on loopback."""


class Problem(Exception):
    """A problem that the user can understand and fix. Shown without a stack trace."""
