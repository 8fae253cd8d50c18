"""Aura runs agents unattended and never loses track of them.

This package holds one core with three faces. The layers and what may import what are in docs/architecture.md.
"""

__version__ = "0.1.0"
API_VERSION = 1
