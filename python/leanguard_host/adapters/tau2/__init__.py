"""The three domains of tau2-bench, and tau-bench's airline: their databases, tools, recorded episodes and tasks.

The tools do what the benchmark's do, so that no benchmark package is needed; with `tau2` installed a test compares
both.
"""

from leanguard_host.adapters.tau2.backend import Backend, ToolError
from leanguard_host.adapters.tau2.domains import DOMAINS, open_backend
from leanguard_host.adapters.tau2.session import Session

__all__ = ["DOMAINS", "Backend", "Session", "ToolError", "open_backend"]
