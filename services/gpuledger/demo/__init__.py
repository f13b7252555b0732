"""The demo's bundled data: three real traces with a budget file for them, and the scenario of a simulated month."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
"""Folder of the bundled files; see its README for sources and licences."""
