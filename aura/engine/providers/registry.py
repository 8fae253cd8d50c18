"""From a provider's configuration to the provider: the one place that knows which type is which class."""

from __future__ import annotations

from aura.clock import Clock, SystemClock
from aura.config.spec import ProviderSpec
from aura.engine.io import IoThread
from aura.engine.providers.base import Provider
from aura.errors import ConfigInvalid


def build_provider(spec: ProviderSpec, io: IoThread, clock: Clock | None = None) -> Provider:
    """Return the provider that `spec` describes. It contacts nobody; a script file is read and checked here.

    Build each provider once per process: a script counts its calls and used entries for the whole process, and an HTTP
    provider keeps connections. Raises `ConfigInvalid`, naming file and key.
    """
    if spec.type != "script":
        from aura.engine.providers.chat import ChatProvider
        from aura.engine.providers.endpoint import endpoint_of

        return ChatProvider(endpoint_of(spec), io, clock or SystemClock())
    from aura.engine.providers.script import ScriptProvider
    from aura.engine.providers.script_file import read_script

    if spec.file is None:
        raise ConfigInvalid(f"{spec.source}: {spec.name}.file is missing", hint="Name the script's YAML file.")
    return ScriptProvider(read_script(spec.file))
