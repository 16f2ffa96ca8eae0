"""The three domains of tau2-bench, and tau-bench's airline: their databases, tools, recorded episodes and tasks.

The tools do what the benchmark's do, so that no benchmark package is needed (`open_backend`). With `tau2` installed,
its own environment can be driven instead (`open_environment`); a test compares both.
"""

from leanguard_host.adapters.tau2.backend import Backend, ToolError
from leanguard_host.adapters.tau2.domains import DOMAINS, open_backend
from leanguard_host.adapters.tau2.live import Live, Tau2MissingError, open_environment
from leanguard_host.adapters.tau2.session import Session

__all__ = [
    "DOMAINS",
    "Backend",
    "Live",
    "Session",
    "Tau2MissingError",
    "ToolError",
    "open_backend",
    "open_environment",
]
