"""marshmallow schemas of requests: what may come in, strictly. What goes out is encoded once, in `aura.wire`."""
