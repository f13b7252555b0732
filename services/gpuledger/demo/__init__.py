"""The demo's bundled data: three real traces, and a budget file for them."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
"""Folder of the bundled files; see its README for sources and licences."""
