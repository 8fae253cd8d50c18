"""Makes the client importable from the checkout."""

import tests.support.serving  # noqa: F401
