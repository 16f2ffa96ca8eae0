"""Replaying recorded episodes: what was decided of each call, kept while it runs, as totals and as a page."""

from leanguard_host.replay.deciding import Decider, replay, replay_episode
from leanguard_host.replay.page import page
from leanguard_host.replay.summary import CATEGORIES, CONSENT, NOT_EVALUATED, Decided, Summary

__all__ = [
    "CATEGORIES",
    "CONSENT",
    "NOT_EVALUATED",
    "Decided",
    "Decider",
    "Summary",
    "page",
    "replay",
    "replay_episode",
]
