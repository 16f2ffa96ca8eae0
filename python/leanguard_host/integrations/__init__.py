"""Ready connections to agent frameworks: each sends every tool call of a model through a guard.

`openai` and `anthropic` work on plain dictionaries and need no library of theirs; `langchain` wraps LangChain tools
(extra `langchain`); `mcp` is a proxy for MCP servers (extra `mcp`, command `leanguard mcp`).
"""

from __future__ import annotations


class MissingExtraError(ImportError):
    """An integration needs a library that is not installed; says which extra brings it."""

    def __init__(self, extra: str, error: ImportError) -> None:
        super().__init__(
            f"This needs the extra `{extra}`: pip install 'leanguard[{extra}]' ({error}).", name=error.name
        )
        self.extra = extra
