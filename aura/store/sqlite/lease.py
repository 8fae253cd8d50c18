"""The right to write one session: liveness by a file lock, safety by an epoch (DESIGN.md section 3, Fencing)."""

from __future__ import annotations

from dataclasses import dataclass

from aura.errors import LeaseLost
from aura.store.protocol import Holder
from aura.store.sqlite.locks import SessionLock
from aura.store.sqlite.rows import SessionRow


@dataclass(frozen=True, slots=True, eq=False)
class SqliteLease:
    """A held session. `epoch` is what the first commit claims; `token` tells this holder from any other."""

    session_id: str
    epoch: int
    token: str
    holder: Holder
    lock: SessionLock

    def check_held(self) -> None:
        """Raise `LeaseLost` if the lease was released: whoever writes after that may write into another's session."""
        if not self.lock.is_held:
            raise LeaseLost(f"session {self.session_id} was released")

    def claim(self, row: SessionRow) -> SessionRow:
        """Return the row as this holder writes it. Raises `LeaseLost` if another holder has claimed an epoch since.

        Part of a transaction: the claim becomes true with the commit that carries it.
        """
        if row.epoch == self.epoch and row.holder == self.token:
            return row
        if row.epoch != self.epoch - 1:
            raise LeaseLost(f"session {row.id} is held by another process now")
        return row._replace(epoch=self.epoch, holder=self.token, holder_pid=self.holder.pid, holder_url=self.holder.url)
