"""What becomes of a run of the gateway that nobody watches: the keys `headless` of YAML and TOML (interfaces.md 8)."""

from __future__ import annotations

from typing import cast

from aura import limits
from aura.config.readers import Choice, Whole
from aura.config.schema import Settings, Table
from aura.config.spec import LIVENESS_POLICIES, HeadlessSpec, Liveness

HEADLESS_TABLE: Table = {
    "policy": Choice(LIVENESS_POLICIES, later=("park",)),
    "grace_ms": Whole(0, limits.HEADLESS_GRACE_MAX_MS, "milliseconds"),
}


def build_headless(settings: Settings, prefix: str) -> HeadlessSpec:
    """Return what the keys under `prefix` say, defaults where they say nothing.

    Raises `ConfigInvalid` where a run would be cancelled before anybody can watch it.
    """
    default = HeadlessSpec()
    policy = cast(Liveness, settings.get(f"{prefix}.policy", str(default.policy)))
    grace_ms = settings.get(f"{prefix}.grace_ms", default.grace_ms)
    if policy == "cancel" and grace_ms < limits.HEADLESS_GRACE_MIN_MS:
        place = settings.items[f"{prefix}.policy"].place
        problem = f"cancel needs a grace_ms of at least {limits.HEADLESS_GRACE_MIN_MS}, found {grace_ms}"
        raise place.error(problem, hint="Set grace_ms: how long a run lives with nobody who watches it.")
    return HeadlessSpec(policy, grace_ms)
