"""The only place of the command line where errors are rendered and become exit codes (interfaces.md section 3).

A failure leaves standard output alone. On standard error it is an `error:` and perhaps a `hint:` line, or with `--json`
one JSON object as the last line. A traceback is shown with `--debug` only.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence

import click

from aura.cli import streams
from aura.cli.main import EXIT_INTERRUPTED
from aura.cli.table import one_line
from aura.errors import AuraError, BadRequest, Internal
from aura.jsontypes import JsonValue

EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE, as other programs end when their reader is gone
_FALSE = frozenset(("", "0", "false", "f", "no", "n", "off"))


def guarded(work: Callable[[], None], args: Sequence[str]) -> int:
    """Do `work` and return the exit code of however it ended. `args` say whether to speak JSON and show tracebacks."""
    try:
        work()
        return 0
    except click.exceptions.Exit as finished:
        return finished.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        streams.discard_stdout()
        return EXIT_BROKEN_PIPE
    except click.ClickException as error:
        return _fail_usage(error, args)
    except AuraError as error:
        return _fail(error, error, args)
    except Exception as error:  # noqa: BLE001 the program's last stop: everything else is a fault of its own
        return _fail(_internal(error), error, args)


def error_fields(error: AuraError) -> dict[str, JsonValue]:
    """Return the JSON object that says what went wrong, ready to be encoded."""
    fields: dict[str, JsonValue] = {"code": error.code, "message": error.message}
    if error.hint:
        fields["hint"] = error.hint
    fields["retryable"] = error.retryable
    fields["details"] = {key: value for key, value in error.details.items() if value is not None}
    return {"error": fields}


def error_text(error: AuraError) -> str:
    """Return the lines that tell a person what went wrong."""
    return f"error: {one_line(error.message)}\n" + (f"hint: {one_line(error.hint)}\n" if error.hint else "")


def _fail(error: AuraError, cause: Exception, args: Sequence[str]) -> int:
    if _is_debug(args):
        streams.write_stderr("".join(traceback.format_exception(cause)))
    if _speaks_json(args):
        streams.write_stderr(streams.json_line(error_fields(error)))
        return 1
    streams.write_stderr(error_text(error))
    return error.exit_code


def _fail_usage(error: click.ClickException, args: Sequence[str]) -> int:
    if not _speaks_json(args):
        error.show()
        return error.exit_code
    context = getattr(error, "ctx", None)
    hint = f"See `{context.command_path} --help`." if context else None
    return _fail(BadRequest(one_line(error.format_message()), hint=hint), error, args)


def _internal(error: Exception) -> Internal:
    return Internal(
        f"internal error {os.urandom(4).hex()}: {type(error).__name__}",
        hint="Run it again with --debug, and report what it shows.",
    )


def _speaks_json(args: Sequence[str]) -> bool:
    return "--json" in _words(args)


def _is_debug(args: Sequence[str]) -> bool:
    return "--debug" in _words(args) or os.environ.get("AURA_DEBUG", "").lower() not in _FALSE


def _words(args: Sequence[str]) -> Sequence[str]:
    return args[: args.index("--")] if "--" in args else args
