"""Adapters: what turns one backend's state, tools and episodes into snapshots, calls and events."""
