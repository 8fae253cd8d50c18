"""marshmallow schemas, strict in both directions.

Those of requests (`automation`) decide what may come in. Those of answers (`records`, `event_data`) describe and check
what goes out, which is encoded elsewhere in `aura.wire`, once and without them.
"""
