"""Every bound of the client, with its unit in the name and its reason beside it. It holds numbers and nothing
else.
"""

from __future__ import annotations

from typing import Final

# One HTTP call
CONNECT_TIMEOUT_S: Final = 5.0  # a server on this machine accepts at once; longer means it is not there
READ_TIMEOUT_S: Final = 30.0  # the server itself waits at most 10 s for a commit
WAIT_MARGIN_S: Final = 10.0  # how much later than promised a long-poll or a heartbeat may come
EXCERPT_CHARS: Final = 300  # of a foreign answer shown in an error: enough to recognise it

# Trying again
BACKOFF_FIRST_S: Final = 0.05  # a restart on this machine takes well under a second
BACKOFF_MAX_S: Final = 2.0  # so that a server that is back is noticed soon
RETRY_AFTER_MAX_S: Final = 30.0  # a longer Retry-After is not believed
CALL_RETRY_S: Final = 10.0  # one call: from its first failure to giving up
RECONNECT_S: Final = 120.0  # wait and events: an outage that lasts longer is reported
STOP_SLICE_S: Final = 0.2  # stop() is asked this often while a wait sleeps between attempts

# Reading the journal
JOURNAL_LIMIT: Final = 500  # the contract's default page
JOURNAL_LIMIT_MAX: Final = 5000  # the contract's largest page
JOURNAL_WAIT_MAX_S: Final = 60  # the contract's longest long-poll
WAIT_POLL_S: Final = 1  # how long stop() may go unnoticed in a quiet wait
HEARTBEAT_S: Final = 15  # the contract's default

# Processes
LAUNCH_TIMEOUT_S: Final = 60.0  # required MCP servers may need most of it
READY_POLL_S: Final = 0.02  # the ready file is looked for this often
LAUNCH_EXIT_S: Final = 2.0  # a server that failed to start, or lost its launcher, ends by itself
STOP_TIMEOUT_S: Final = 75.0  # the server gives a run 60 s to settle, then saves
STOP_POLL_S: Final = 0.05  # an attached server's end is looked for this often
TERM_GRACE_S: Final = 10.0  # from SIGTERM to SIGKILL
KILL_GRACE_S: Final = 5.0  # from SIGKILL to the end of the process
STORE_TIMEOUT_S: Final = 120.0  # an export of a very large session
