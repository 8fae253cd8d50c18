"""Every bound of the program, with its unit and the reason for its size. Nothing else lives here.

Where a test must reach a bound, the code that uses it takes it as an argument and this value is the default.
"""

from __future__ import annotations

# --- input (interfaces.md section 2 and 9) -----------------------------------------------------------------------
TEXT_MAX_BYTES = 1024 * 1024  # prompt, command, answer: the contract's limit
BODY_MAX_BYTES = 4 * 1024 * 1024  # a whole request body: the contract's limit
REQUEST_ID_MAX_CHARS = 256  # the contract's limit
NESTING_MAX_COUNT = 200  # JSON levels: far above real data, far below the interpreter's recursion limit
TOKEN_MIN_CHARS = 32  # the serve token: the contract's limit
MESSAGE_EXCERPT_BYTES = 2048  # a foreign error text quoted in ours (interfaces.md section 9)

# --- store -------------------------------------------------------------------------------------------------------
COMMIT_WAIT_MS = 10_000  # a caller waits this long for its commit, then store_unavailable (DESIGN 3)
GROUP_COMMIT_MAX_COUNT = 512  # units in one transaction: bounds how long a commit holds the lock
WRITE_QUEUE_MAX_COUNT = 8192  # units waiting for the writer: a stuck disk must not eat the memory
BUSY_TIMEOUT_MS = 5_000  # SQLite's own wait; the flock comes first, so this only covers foreign tools
JOURNAL_SIZE_LIMIT_BYTES = 4 * 1024 * 1024  # what SQLite leaves of a WAL after a checkpoint (measured useful)
BALLAST_BYTES = 4 * 1024 * 1024  # given up when the disk is full, so that terminal records still fit
BALLAST_WAIT_MS = 10_000  # one maker at a time; a file system without fallocate writes the whole file
PAGE_ROWS = 256  # rows per statement in long reads: a cursor never stays open across pages
READERS_KEPT_COUNT = 8  # idle read-only connections kept for reuse
POLL_LIVE_MS = 100  # data_version poll while a run is live here: other processes' control acts within 250 ms
POLL_WATCH_MS = 50  # the same while somebody watches a session that another process holds
WAL_CHECKPOINT_BYTES = 4 * 1024 * 1024  # the writer moves the WAL into the database beyond this size

# --- journal and streams -----------------------------------------------------------------------------------------
JOURNAL_PAGE_DEFAULT_COUNT = 500  # contract
JOURNAL_PAGE_MAX_COUNT = 5000  # contract
LONG_POLL_MAX_S = 60  # contract
HEARTBEAT_DEFAULT_S = 15  # contract
HEARTBEAT_MAX_S = 60  # contract
FEED_EVENTS_COUNT = 512  # encoded events kept per watched session (DESIGN 6)
FEED_EVENTS_BYTES = 4 * 1024 * 1024  # and their size: 512 results of a megabyte each must not stay in memory
FEED_RETRY_MS = 1_000  # after the store could not be read
TRANSIENT_QUEUE_COUNT = 1024  # per stream; older live deltas are dropped, durable events supersede them
DELTA_INTERVAL_MS = 25  # deltas of one message are coalesced to at most one per interval (DESIGN 3)
ALARM_SWEEP_COUNT = 256  # deadlines kept until those that were taken back are forgotten: a run's may lie minutes ahead
RECORD_DELAY_MS = 5  # an event that need not be durable at once waits so long for others to share its commit

# --- runs --------------------------------------------------------------------------------------------------------
MAX_STEPS_DEFAULT = 50  # model calls of one turn (engine.md 1.6)
SETTLE_MS = 60_000  # a run may take this long to settle at shutdown (contract)
SETTLE_RETRY_MS = 1_000  # between attempts to write a terminal record that the store refused
CANCEL_JOIN_MS = 2_000  # a cancelled wait returns when the other side has stopped, at most after this
LAUNCHER_POLL_MS = 200  # how often a stop request is looked at while the launcher pipe is silent

# --- tools -------------------------------------------------------------------------------------------------------
BASH_TIMEOUT_MS = 120_000  # default of one command (interfaces.md section 11)
KILL_GRACE_MS = 2_000  # SIGTERM to SIGKILL (interfaces.md section 11)

# --- session locks -----------------------------------------------------------------------------------------------
LOCK_RETRY_MS = 100  # a session lock is tried this long: a look at it holds it for microseconds only
LOCK_RETRY_PAUSE_MS = 10  # between two tries

# --- configuration -----------------------------------------------------------------------------------------------
CONFIG_FILE_MAX_BYTES = 1024 * 1024  # one configuration file: prompts are long, but nobody writes a megabyte by hand
CONFIG_FILES_MAX_COUNT = 10_000  # files of one kind in one home: a home laid over a source tree must not be walked
CONFIG_VALUES_MAX_COUNT = 100_000  # values of one YAML file, aliases expanded: stops files that multiply themselves
CONFIG_NESTING_MAX_COUNT = 32  # levels of one YAML file: no key lies deeper than six
CONFIG_NAME_MAX_CHARS = 128  # an agent's or provider's name: it appears in tables and file names
CONTEXT_MAX_TOKENS = 100_000_000  # model.context: beyond every model, below every overflow
MAX_STEPS_MAX_COUNT = 100_000  # features.tools.max_steps: a larger number is a typing error
TURN_DEPTH_DEFAULT_COUNT = 5  # tool turns of one run of a TOML agent (gateway.md 1.4)
TOKEN_BUDGET_MAX_TOKENS = 1_000_000_000_000  # features.tools.token_budget: the same
OUTPUT_MAX_BYTES = 64 * 1024 * 1024  # bash output kept per stream: it is held in memory
OUTPUT_LINES_MAX_COUNT = 1_000_000  # bash output lines kept: the same
PROVIDER_TIMEOUT_MS = 300_000  # to the headers of an answer, by default (engine.md 1.7)
PROVIDER_TIMEOUT_MAX_MS = 24 * 3_600_000  # a day: longer waits are never meant
RETRY_ATTEMPTS_MAX_COUNT = 100  # extra attempts of one model call
RETRY_DELAY_MAX_MS = 3_600_000  # an hour between two attempts

# --- providers ---------------------------------------------------------------------------------------------------
PROVIDER_CONNECT_MS = 15_000  # DNS, TCP and TLS each: an unreachable host must not take the whole header timeout
PROVIDER_IDLE_MS = 300_000  # silence inside a stream: some servers send headers first and read the prompt then
PROVIDER_ERROR_BODY_BYTES = 64 * 1024  # read of an error body: enough for any JSON error; the message is cut further
PROVIDER_ERROR_BODY_MS = 2_000  # an error body that drips is classified by what has come until then
PROVIDER_BODY_BYTES = 4 * 1024 * 1024  # a metadata document: /props holds whole chat templates
PROVIDER_LINE_BYTES = 4 * 1024 * 1024  # one line of a stream: a server that never ends it must not eat the memory
PROVIDER_REPLY_BYTES = 16 * 1024 * 1024  # text, thinking and arguments of one reply: far above any real context window
RETRY_AFTER_MAX_MS = 86_400_000  # a server's hint is cut to a day, so that it stays a number that clocks can add
RETRY_AFTER_WAIT_MS = 300_000  # a hint longer than this is not slept through: the error and its hint reach the caller
IO_CLOSE_MS = 2_000  # the io thread's tasks, and then its connections, may take this long to end at close
SCRIPT_PIECE_CHARS = 16  # a scripted `content` is streamed in pieces of at most this size (interfaces.md section 5)
SCRIPT_DELAY_MS = 3_600_000  # largest scripted delay or retry hint: a longer one is a mistyped unit

# --- tools: calls, files, search, processes ----------------------------------------------------------------------
PARALLEL_CALLS_MAX_COUNT = 8  # read-only calls of one batch that run at the same time, a thread each
TOKEN_ESTIMATE_BYTES = 4  # bytes of one token where nobody counts them (engine.md 1.6, estimation divisor)
APPROVAL_DETAIL_MAX_BYTES = 16 * 1024  # what an approval shows of a call: far above real commands, small in an event
TOOL_FILE_MAX_BYTES = 16 * 1024 * 1024  # a file that Read, Edit or the own search takes whole into memory
READ_SMALL_FILE_TOKENS = 2_000  # a range of a smaller file is answered with all of it (engine.md 6.2)
LISTING_MAX_COUNT = 2_000  # entries that Ls and Glob show: more helps no model
WALK_MAX_COUNT = 200_000  # directory entries that one Ls or Glob looks at: some seconds on a slow disk
GLOB_BRACES_MAX_COUNT = 256  # patterns that the braces of one pattern may stand for: they multiply
RG_TIMEOUT_MS = 30_000  # one search (engine.md, appendix G)
RG_OUTPUT_MAX_BYTES = 256 * 1024  # matches kept: above any sensible result, below what hurts
RG_LINE_MAX_CHARS = 500  # a longer matching line is cut: minified files have lines of megabytes
TODO_MAX_COUNT = 200  # items of the todo list, which is saved at every checkpoint
BASH_TIMEOUT_MAX_MS = 3_600_000  # the longest timeout that a model may ask for
BASH_COMMAND_MAX_BYTES = 128 * 1024 - 1  # Linux takes no longer single argument
PROCESS_READ_BYTES = 64 * 1024  # one read of an output pipe: the pipe's own capacity
PROCESS_DRAIN_MS = 250  # output is still read this long after the command itself has ended
PROCESS_QUIET_MS = 50  # silence after which the rest of that time is not waited for
OUTPUT_INTERVAL_MS = 200  # live lines of a command are joined to at most one event per interval (engine.md 6.5)
OUTPUT_EVENT_MAX_BYTES = 4 * 1024  # the latest output that one such event carries
SPILL_MAX_BYTES = 64 * 1024 * 1024  # full output kept in a file per stream: a flood must not fill the disk
CANDIDATES_COUNT = 20  # session ids shown for an ambiguous prefix

# --- approvals ---------------------------------------------------------------------------------------------------
APPROVAL_TIMEOUT_MS = 60_000  # a conversational approval, by default: somebody is watching (gateway.md 1.10)
WEBHOOK_TIMEOUT_MS = 300_000  # a webhook's answer, by default: a person has to be found first (gateway.md 1.10)
APPROVAL_TIMEOUT_MAX_S = 7 * 86_400  # a week: a run that waits longer is not waiting but forgotten
WEBHOOK_SECRET_MIN_BYTES = 32  # as long as the digest that it signs with (gateway.md 1.1)
WEBHOOK_TOLERANCE_S = 300  # how far a signature's time may be off, by default (gateway.md 1.1)
WEBHOOK_TOLERANCE_MAX_S = 86_400  # the same, at most: an older signature may have been stolen long ago

# --- turns -------------------------------------------------------------------------------------------------------
PARSE_ATTEMPTS_COUNT = 4  # model calls whose tool-call JSON is broken: the first and three more (engine.md 4.5)
CHARS_PER_TOKEN = 4  # rough estimate until a server has counted
INPUT_MAX_PERCENTAGE = 80  # of the context that a conversation with a new input may fill (engine.md 1.6)

# --- command line ------------------------------------------------------------------------------------------------
IMPORT_MAX_BYTES = 512 * 1024 * 1024  # a file to import: it is decoded in memory, at several times its size
FILE_PIECE_BYTES = 1024 * 1024  # one read or write of a file: large enough that calls cost nothing
TITLE_MAX_COLUMNS = 48  # of a title in a table: the line of a listing must fit a terminal

# --- import of many ----------------------------------------------------------------------------------------------
DETECT_LINES_COUNT = 64  # lines of a file looked at until one tells its format: some begin with records of any kind
PROGRESS_INTERVAL_MS = 200  # how often the bar of a long import is drawn: a terminal is slower than the store

# --- store: the WAL ----------------------------------------------------------------------------------------------
WAL_RESTART_BYTES = 16 * 1024 * 1024  # readers without a gap keep the WAL growing: beyond this they are waited for
WAL_RESTART_BUSY_MS = 100  # for at most this long, and again only after WAL_CHECKPOINT_BYTES more
CLOSE_BUSY_MS = 200  # at close, readers of other processes are waited for this long before the WAL is left to them

# --- aura run ----------------------------------------------------------------------------------------------------
FOLLOW_TICK_MS = 200  # how soon a follower looks at Ctrl-C while nothing happens

# --- api ---------------------------------------------------------------------------------------------------------
API_CALLS_MAX_COUNT = 32  # store calls that the hub has under way at once: each holds a native thread, up to 10 s
STREAMS_MAX_COUNT = 1000  # readers that wait on gevent, streams and long-polls: some 20 kB and one descriptor each
STREAM_THREADS_COUNT = 64  # the same on waitress, where each holds a thread
RESERVE_THREADS_COUNT = 8  # waitress threads that waiting readers never take: control calls do not queue behind them
CONNECTIONS_MAX_COUNT = 4096  # open connections, idle ones included: above any descriptor limit that is usual
ACCEPT_BACKLOG_COUNT = 1024  # connections that the kernel keeps until they are accepted: a burst of 500 readers fits
STREAM_PIECE_BYTES = 64 * 1024  # events are joined to writes of about this size: few system calls, bounded memory
STREAM_BUFFER_BYTES = 256 * 1024  # waitress: bytes that a slow reader may have waiting before its thread pauses
FINISHED_KEPT_COUNT = 16  # ended messages and calls whose late live items a stream still recognises
RESPONSES_END_MS = 2_000  # at the end of the server, open responses may take this long to be finished
FLUSH_MS = 500  # waitress: after that, the last bytes of ended responses: local writes, unless a reader has stopped
FLUSH_LOOK_MS = 5  # how often it is looked whether they are out
HTTP_THREADS_END_MS = 1_000  # waitress: threads that wait for a client end once its connection is closed
HTTP_LOOP_MS = 1_000  # waitress: the socket loop looks up this often while no socket has anything to say
BODY_DRAIN_BYTES = 64 * 1024 * 1024  # waitress reads a body to its end before it answers; beyond this it hangs up
RETRY_AFTER_MS = 1_000  # what a caller is told when there are too many streams: they end often
INTEGER_MAX_CHARS = 19  # digits of a number in a query: what fits 64 bits; longer ones are taken as the largest

# --- MCP servers -------------------------------------------------------------------------------------------------
MCP_TIMEOUT_MS = 10_000  # start, initialize and list the tools of one server, by default (engine.md section 9)
MCP_TIMEOUT_MAX_MS = 600_000  # ten minutes: a first start may download the server; start-up waits for it
MCP_CONNECTING_MAX_COUNT = 16  # servers that start at the same time (engine.md section 9)
MCP_START_GRACE_MS = 1_000  # beyond a server's own time-out, for noticing that it is over
MCP_CLOSE_MS = 7_000  # the SDK's own steps to end a stubborn process take up to 6.5 s; then its group is killed
MCP_TOOL_NAME_MAX_CHARS = 64  # what the chat completions protocol takes as a function's name
MCP_TOOLS_MAX_COUNT = 1_000  # tools of one server: a listing without an end must not eat the memory
MCP_PAGES_MAX_COUNT = 100  # pages of that listing: the same
MCP_SSE_EVENT_BYTES = 64 * 1024 * 1024  # one event of an HTTP server: a whole result, held in memory
MCP_CONNECT_MS = 15_000  # DNS, TCP and TLS each, as for providers
MCP_DELETE_MS = 2_000  # saying goodbye to an HTTP server: nothing depends on its answer
MCP_STDERR_BYTES = 4 * 1024  # the last words of a stdio server, kept for the log in case it fails
MCP_SECRET_MIN_CHARS = 4  # a shorter value is no secret, and replacing it would garble every message

# --- slash commands ----------------------------------------------------------------------------------------------
TITLE_MAX_CHARS = 1_000  # of a session: far above what any list shows, far below what a list could not carry

# --- aura sql ----------------------------------------------------------------------------------------------------
SQL_TIMEOUT_MS = 30_000  # one query: its read transaction keeps the WAL from being taken up again as long as it lasts
SQL_TIMEOUT_MAX_MS = 3_600_000  # the same, for somebody who asks for it
SQL_ROWS_COUNT = 10_000  # rows of an answer: what a person may scroll through, and what a table holds in memory
SQL_ROWS_MAX_COUNT = 1_000_000_000  # what may be asked for instead; 0 stands for no limit
SQL_TICK_STEPS = 20_000  # steps of SQLite's machine between two looks at the clock: a millisecond or less
SQL_BATCH_ROWS = 256  # rows handed over at once
SQL_BATCH_MS = 100  # a row waits for others at most until the first one that comes after this
SQL_BATCHES_COUNT = 4  # batches that wait for a slow reader of the output before the query waits too
SQL_TEXT_MAX_BYTES = 1024 * 1024  # of the statements in a file: larger ones are not questions
SQL_CELL_MIN_COLUMNS = 8  # a column is not made narrower to fit the terminal; then rows are shown as blocks

# --- journals: export, import, tail, mirror ----------------------------------------------------------------------
JOURNAL_LINES_PAGE_ROWS = 2_000  # events joined by one statement: beyond it nothing gets faster
JOURNAL_PAGE_BYTES = 16 * 1024 * 1024  # and their data: such a page is held in memory, twice while it is joined
JOURNAL_IMPORT_COMMIT_COUNT = 2_000  # imported events of one transaction, some 200 ms: others write between two
JOURNAL_LINE_MAX_BYTES = 64 * 1024 * 1024  # one line to import: results are cut far below; it is held in memory
JOURNAL_PROBLEMS_MAX_COUNT = 20  # problems of one journal that are told: one is enough to doubt it
JOURNAL_VERIFY_ATTEMPTS_COUNT = 5  # checks begun again because events were pruned meanwhile
FILE_BUFFER_BYTES = 64 * 1024  # small pieces of a file are collected up to it; larger ones are written as they are
READ_AHEAD_PIECES_COUNT = 2  # pages of an export that are read while one is hashed and written
MANIFEST_MAX_BYTES = 1024 * 1024  # of an evidence bundle: ours have some hundred bytes
TAIL_DEFAULT_COUNT = 10  # events that `journal tail` shows by itself, as tail(1) does
TAIL_POLL_MS = 50  # how soon `journal tail --follow` notices another process's commit
MIRROR_CLOSE_MS = 10_000  # at the end of a server its mirror may take this long; then it is left as it is

# --- store: check, backup, prune, sizes --------------------------------------------------------------------------
CHECK_FINDINGS_MAX_COUNT = 1_000  # findings that are kept; the others are only counted: a broken table has millions
CHECK_WAL_MAX_BYTES = 64 * 1024 * 1024  # a long statement ends when it makes servers' WAL grow to this size
CHECK_TICK_STEPS = 2_000  # steps of SQLite's machine between two looks at the WAL: well under a millisecond
CHECK_PAGE_ROWS = 1_000  # rows per statement of a walk: a snapshot is held for milliseconds only
CHECK_PAGE_BYTES = 8 * 1024 * 1024  # and at most about that much text, whatever the rows hold
METER_FIRST_MS = 500  # a verb that is done by then shows no progress
METER_INTERVAL_MS = 100  # between two looks of a person
CARE_TRANSACTION_MS = 40  # what one transaction of care should take: a server that waits for it hardly notices
CARE_REST_MS = 50  # the longest rest after one, so that servers get their turn
CARE_FIRST_ROWS = 32  # rows that the first transaction removes; then it depends on how long that took
CARE_MAX_ROWS = 4_000  # and at most so many
CARE_BYTES = 4 * 1024 * 1024  # text that one transaction removes at most, but for a single larger row
PROMPTS_SCAN_MS = 100  # if finding unused prompts takes longer, removing one would keep servers waiting
BACKUP_STEP_PAGES = 2_048  # copied between two looks at the WAL and two signs of progress
BACKUP_WAL_MAX_BYTES = 1024 * 1024 * 1024  # a backup ends when the WAL grows to this meanwhile: a disk must not fill
INLINE_MAX_BYTES = 8 * 1024 * 1024  # an event or message over this size is said to be so large (DESIGN.md section 4)
STATS_DAYS_DEFAULT_COUNT = 28  # days of growth that are shown: four weeks
STATS_DAYS_MAX_COUNT = 3_660  # ten years: more is a typing error
RESULT_MAX_BYTES = 4 * 1024 * 1024  # a tool's result is cut to it, whatever its filters let through
RESULT_ERROR_MAX_BYTES = 64 * 1024  # and the error text beside it, which the result repeats

# --- questions about the past ------------------------------------------------------------------------------------
RUNS_LISTED_COUNT = 50  # `aura runs` without --limit: some screens
STATS_LINES_COUNT = 20  # lost runs, live runs, open questions shown one by one: more are a matter for `aura runs`
SEARCH_HITS_COUNT = 20  # `aura search` without --limit: what a person looks through
LISTED_MAX_COUNT = 1_000_000  # the largest --limit: a larger one is a typing error
SEARCH_STEP_BYTES = 256 * 1024  # messages indexed in one transaction: some 20 ms in which no server commits
SEARCH_STEP_ROWS = 1_000  # the same, where messages are tiny
SNIPPET_TOKENS_COUNT = 16  # words of a snippet: a line of a terminal, or two
SEARCH_SESSIONS_SHOWN_COUNT = 3  # sessions named beside a hit that several have: forks of forks may be hundreds

# --- gateway -----------------------------------------------------------------------------------------------------
LIVE_RUNS_MAX_COUNT = 512  # runs at work at once, a thread each: some 100 kB; more callers are told to come again
MCP_RETRY_MS = 30_000  # a server that failed is left alone this long, so that not each request waits for it
RELEASE_WAIT_MS = 10_000  # a session whose run has just ended is let go in this time: a commit's, at most
DISCONNECT_POLL_MS = 250  # how often it is looked whether the caller is still there: the work must end within a second
CHAT_HEARTBEAT_MS = 15_000  # silence after which a stream gets a comment line (gateway.md 3.2)
ABORT_SETTLE_MS = 5_000  # a run that is cancelled for its caller's sake settles in this time, or the stream ends first
TOOL_RESULT_MAX_CHARS = 1_000  # of a result that is shown, by default (streaming-guide.md)
STREAMING_TIMEOUT_MS = 900_000  # a whole request, by default (streaming-guide.md)
FIRST_CHUNK_TIMEOUT_MS = 90_000  # the provider's first sign of life, by default (streaming-guide.md)
STREAMING_BUFFER_COUNT = 400  # frames that are joined to one write at most, by default (streaming-guide.md)
SHUTDOWN_GRACE_MS = 30_000  # requests under way may go on for this long at shutdown, by default (streaming-guide.md)
DRAIN_MS = 5_000  # then streams are ended, which takes at most this long (streaming-guide.md)
ABORT_WAIT_MS = 400  # and what is left is aborted, and waited for this long (gateway.md 8)
PROVIDER_ERROR_SHOWN_CHARS = 500  # of what a provider said, for somebody who asks for it (gateway.md 1.1)
IDLE_LOOK_MS = 20  # at shutdown: how often it is looked whether the last run has ended, which rings no bell

# --- the gateway's options (gateway.md 1.1) ----------------------------------------------------------------------
GATEWAY_PORT = 8080  # by default
TOOL_RESULT_LIMIT_MAX_CHARS = 100_000_000  # of a result that is shown, at most: a larger number is a typing error
STREAMING_BUFFER_MAX_COUNT = 100_000  # frames, at most: they are held in memory
GATEWAY_TIMEOUT_MAX_S = 7 * 86_400  # any time of the gateway's: longer ones are never meant
INSTANCE_ID_MAX_CHARS = 128  # it stands in webhook bodies and rows
HEADLESS_GRACE_MIN_MS = 100  # before an unwatched run is cancelled: its first reader needs time (interfaces.md 10)
HEADLESS_GRACE_MAX_MS = 7 * 86_400_000  # the same, at most
