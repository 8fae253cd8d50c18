"""The root of everything that the client raises, and the client's own errors. The contract's codes are in
`codes`.

`except AutomationError` catches all of them but `StopRequested`, which is no failure. An error holds what the
server or the program said; it never holds the token. Making an error from a document is the job of `_decode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class AutomationError(Exception):
    """Base of every failure.

    `code` is the contract's code (or the client's own), `message` one line, `retryable` what the server said
    about trying the same thing again, `details` the contract's details, `hint` what to do, where something is
    known. `retry_after_s` is the Retry-After of an HTTP answer.
    """

    CODE: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        details: Mapping[str, Json] | None = None,
        hint: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = self.CODE
        self.message = message
        self.retryable = retryable
        self.details: dict[str, Json] = dict(details or {})
        self.hint = hint
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}" if self.code else self.message
        return f"{text} ({self.hint})" if self.hint else text


class NetworkError(AutomationError):
    """The server could not be reached, or the connection broke, for as long as the call's bound allows.

    `may_have_arrived` is False when the request certainly did not reach the server.
    """

    CODE = "network"

    def __init__(self, message: str, *, may_have_arrived: bool = True, hint: str | None = None) -> None:
        super().__init__(message, retryable=True, hint=hint)
        self.may_have_arrived = may_have_arrived


class ProgramFailed(AutomationError):
    """The aura program did not do its part.

    `details["reason"]`: `not_started` (it could not be executed), `exited` (it ended without saying why; see
    `details["exit_code"]`, negative for a signal), `timeout` (it was ended by the client), `no_ready_file`
    (there is no ready file to attach to), `still_running` (an attached server did not end in time).
    """

    CODE = "program_failed"


class ContractDrift(AutomationError):
    """The server or the program does not speak the contract that this client was made for.

    `where` is the answer that was read, `field` the path of the first offending field ("" for the whole
    document), `fields` all of them. Install the client and the program from the same commit.
    """

    CODE = "contract_drift"

    def __init__(self, where: str, field: str, problem: str, fields: tuple[str, ...] = ()) -> None:
        at = f"{where}: {field}" if field else where
        others = ", ".join(other for other in fields if other != field)
        also = f" (also: {others})" if others else ""
        super().__init__(f"{at}: {problem}{also}", hint="install client and program from the same commit")
        self.where = where
        self.field = field
        self.problem = problem
        self.fields = fields or ((field,) if field else ())

    def __reduce__(self) -> tuple[type[ContractDrift], tuple[str, str, str, tuple[str, ...]]]:
        return type(self), (self.where, self.field, self.problem, self.fields)


class StopRequested(Exception):
    """`Client.wait` was asked to stop. The run goes on: nothing was cancelled.

    `after` is the seq of the last event that was delivered: pass it to the next `wait` as `after`.
    """

    def __init__(self, run_id: str, after: int) -> None:
        super().__init__(run_id, after)
        self.run_id = run_id
        self.after = after

    def __str__(self) -> str:
        return f"stopped waiting for {self.run_id} after event {self.after}"
