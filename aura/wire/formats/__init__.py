"""Conversations in the formats of other programs: one module per format, pure, from bytes to values and back."""
