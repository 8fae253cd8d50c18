"""Recomputes a journal's hash chain from its text alone: no database, and no line is decoded.

A link is SHA-256 over the hash before it and the line without its end (DESIGN.md section 4, Evidence).
"""

from __future__ import annotations

import hashlib


class LineChain:
    """A chain that is being recomputed. `problem` is the first thing that is not as it must be, None so far."""

    def __init__(
        self,
        start_seq: int,
        start_hash: bytes,
        first_seq: int,
        *,
        expected: bytes | None = None,
        wanted_seq: int | None = None,
    ) -> None:
        """Begin with the hash of the event `start_seq`; the text begins with the event `first_seq`.

        When both are the same event, its own hash is taken as it is. `expected` is a hash that was noted earlier; the
        line of `wanted_seq` is kept.
        """
        self.seq = first_seq - 1
        self.sha256 = start_hash
        self.problem: str | None = None
        self.wanted: bytes | None = None
        self._wanted_seq = wanted_seq
        self._start_seq = start_seq
        self._expected = expected
        self.expected_seqs = [start_seq] if expected == start_hash else []
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Go on by a piece of the text, which may end anywhere."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._link(line)

    def end(self) -> None:
        """Say that the text is over."""
        if self._rest:
            self._fail(f"line {self.seq + 1} has no end")

    def _link(self, line: bytes) -> None:
        seq = self.seq + 1
        if not line.startswith(b'{"seq":%d,"time":' % seq):
            self._fail(f"where event {seq} should be is another line")
        if seq != self._start_seq:
            self.sha256 = hashlib.sha256(self.sha256 + line).digest()
        self.seq = seq
        if seq == self._wanted_seq:
            self.wanted = line
        if self.sha256 == self._expected and seq not in self.expected_seqs:
            self.expected_seqs.append(seq)

    def _fail(self, problem: str) -> None:
        if self.problem is None:
            self.problem = problem
