"""The names of policies. A policy without its stricter rules is another policy, and has another name."""

from __future__ import annotations

WITHOUT_STRICTER = ":without-stricter"
"""What stands behind the name of a policy without its stricter rules (as in LeanGuard/Spec/Policy.lean)."""


def policy_name(policy: str, *, stricter: bool) -> str:
    """The policy's name, with or without its stricter rules."""
    return policy if stricter or policy.endswith(WITHOUT_STRICTER) else policy + WITHOUT_STRICTER


def base_name(policy: str) -> str:
    """The name of the policy with all its rules."""
    return policy.removesuffix(WITHOUT_STRICTER)
