"""What `make run` starts and stops: Prometheus, the exporter, the API server and demo units, all on loopback."""


class Problem(Exception):
    """Something the user can understand and change; shown as it is, without a stack trace."""
