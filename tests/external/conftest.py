"""Collected only where the peers are installed: `make external` puts them into an environment of their own."""

from __future__ import annotations

from tests.external.peers import PEERS

collect_ignore_glob = [] if PEERS else ["test_*.py"]
