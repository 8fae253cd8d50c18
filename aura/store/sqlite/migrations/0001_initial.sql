-- The first schema. Times are Unix milliseconds; hashes are SHA-256.

CREATE TABLE session (
    sid               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    title             TEXT NOT NULL,
    created_at_ms     INTEGER NOT NULL,
    updated_at_ms     INTEGER NOT NULL,
    head              INTEGER REFERENCES revision (id) DEFERRABLE INITIALLY DEFERRED,  -- the newest revision
    frozen            INTEGER NOT NULL DEFAULT 0 CHECK (frozen IN (0, 1)),
    parent_id         TEXT,
    parent_revision   TEXT,
    messages          INTEGER NOT NULL DEFAULT 0,   -- stored non-system messages
    last_seq          INTEGER NOT NULL DEFAULT 0,
    chain_hash        BLOB NOT NULL,                -- of the last event
    journal_floor     INTEGER NOT NULL DEFAULT 1,   -- events below it may be deleted
    persisted_seq     INTEGER NOT NULL DEFAULT 0,   -- of the last session.persisted event
    epoch             INTEGER NOT NULL DEFAULT 0,   -- claimed by a lease's first commit
    holder            TEXT,                         -- the lease that claimed the epoch
    holder_pid        INTEGER,
    holder_url        TEXT,
    last_batch        TEXT,                         -- id of the holder's last batch
    last_batch_seq    INTEGER,                      -- its first seq
    profile           TEXT NOT NULL DEFAULT 'automation'
) STRICT;

-- System prompts, referenced by revisions: a prompt is written once, not at each checkpoint.
CREATE TABLE prompt (
    id      INTEGER PRIMARY KEY,
    sha256  TEXT NOT NULL UNIQUE,
    text    TEXT NOT NULL
) STRICT;

-- An append-only list of messages. It begins with the first base_length messages of its base.
CREATE TABLE chain (
    id           INTEGER PRIMARY KEY,
    sid          INTEGER NOT NULL REFERENCES session (sid),
    base         INTEGER REFERENCES chain (id),
    base_length  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX chain_base ON chain (base);
CREATE INDEX chain_sid ON chain (sid);

CREATE TABLE message (
    id       INTEGER PRIMARY KEY,
    chain    INTEGER NOT NULL REFERENCES chain (id),
    idx      INTEGER NOT NULL,          -- position in the whole conversation
    ordinal  INTEGER,                   -- position among non-system messages; NULL for a system message
    role     TEXT NOT NULL,
    body     TEXT NOT NULL,             -- canonical JSON of the message, verbatim
    UNIQUE (chain, idx)
) STRICT;

-- A saved state; its chain is one of the same session. There is no index but (sid, n), because each costs a page at every
-- checkpoint: looking for a hash or a chain scans the revisions of one session. Its document is '{"messages":[' + messages + '],"system":' + prompt + tail.
CREATE TABLE revision (
    id        INTEGER PRIMARY KEY,
    sid       INTEGER NOT NULL REFERENCES session (sid),
    n         INTEGER NOT NULL,
    sha256    TEXT NOT NULL,
    chain     INTEGER NOT NULL REFERENCES chain (id),
    length    INTEGER NOT NULL,         -- messages of the chain that belong to it
    prompt    INTEGER NOT NULL REFERENCES prompt (id),
    tail      TEXT NOT NULL,
    reason    TEXT NOT NULL,
    run       INTEGER REFERENCES run (id),
    at_ms     INTEGER NOT NULL,
    UNIQUE (sid, n)
) STRICT;

CREATE TABLE run (
    id              INTEGER PRIMARY KEY,
    run_id          TEXT NOT NULL UNIQUE,
    sid             INTEGER NOT NULL REFERENCES session (sid),
    request_id      TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('prompt', 'command')),
    text            TEXT NOT NULL,
    on_input        TEXT NOT NULL CHECK (on_input IN ('block', 'wait')),
    request_digest  TEXT NOT NULL,
    state           TEXT NOT NULL
                    CHECK (state IN ('accepted', 'running', 'finished', 'persisted', 'persist_failed', 'lost')),
    outcome         TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled', 'rejected', 'blocked')),
    error           TEXT,
    persist_error   TEXT,
    cancel          TEXT,
    result          TEXT,
    persisted       TEXT,
    stats           TEXT NOT NULL,
    accepted_seq    INTEGER NOT NULL,
    last_seq        INTEGER NOT NULL,
    accepted_at_ms  INTEGER NOT NULL,
    started_at_ms   INTEGER,
    finished_at_ms  INTEGER,
    settled_at_ms   INTEGER
) STRICT;

CREATE UNIQUE INDEX run_live ON run (sid) WHERE state IN ('accepted', 'running', 'finished');
CREATE INDEX run_session ON run (sid, id);

-- Which run a request id made. The scope is the session in the automation profile, 0 in the gateway.
CREATE TABLE request (
    scope       INTEGER NOT NULL,
    request_id  TEXT NOT NULL,
    digest      TEXT NOT NULL,
    run         INTEGER NOT NULL REFERENCES run (id),
    PRIMARY KEY (scope, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    id          INTEGER PRIMARY KEY,
    sid         INTEGER NOT NULL REFERENCES session (sid),
    seq         INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    run         INTEGER REFERENCES run (id),
    type        TEXT NOT NULL,          -- what the automation profile serves
    data        TEXT NOT NULL,          -- its exact bytes
    kind        TEXT NOT NULL,          -- what it really is
    ext         TEXT,                   -- what only the gateway and SQL need
    chain_hash  BLOB NOT NULL,          -- SHA-256 over the previous hash and this event's line
    UNIQUE (sid, seq)
) STRICT;

CREATE TABLE input (
    id              INTEGER PRIMARY KEY,
    input_id        TEXT NOT NULL UNIQUE,
    sid             INTEGER NOT NULL REFERENCES session (sid),
    run             INTEGER NOT NULL REFERENCES run (id),
    kind            TEXT NOT NULL CHECK (kind IN ('ask', 'confirm')),
    state           TEXT NOT NULL CHECK (state IN ('pending', 'answered', 'dismissed')),
    question        TEXT NOT NULL,
    answer          TEXT,
    answered_by     TEXT,
    created_at_ms   INTEGER NOT NULL,
    expires_at_ms   INTEGER,
    resolved_at_ms  INTEGER
) STRICT;

CREATE INDEX input_run ON input (run);
CREATE INDEX input_pending ON input (sid) WHERE state = 'pending';

CREATE TABLE tool_call (
    run             INTEGER NOT NULL REFERENCES run (id),
    call_id         TEXT NOT NULL,
    n               INTEGER NOT NULL,   -- tells calls apart for which a model used the same id: 0, 1, ...
    sid             INTEGER NOT NULL REFERENCES session (sid),
    name            TEXT NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('requested', 'started', 'ok', 'error', 'unknown')),
    started_seq     INTEGER,
    finished_seq    INTEGER,
    started_at_ms   INTEGER,
    finished_at_ms  INTEGER,
    args_bytes      INTEGER NOT NULL,
    result_bytes    INTEGER,
    pid             INTEGER,            -- leader of its process group
    pid_start_time  TEXT,               -- tells that process from a later one with the same pid
    PRIMARY KEY (run, call_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    run            INTEGER NOT NULL REFERENCES run (id),
    seq            INTEGER NOT NULL,    -- of the event that reported it
    sid            INTEGER NOT NULL REFERENCES session (sid),
    agent          TEXT,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,
    input_tokens   INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    cost_usd       REAL,
    at_ms          INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;                -- its rows are small: one page at each model call instead of two

-- What holds even for somebody with an SQL prompt. Each BEFORE INSERT refuses an existing key as well, because
-- INSERT OR REPLACE deletes without triggers on a connection that has recursive_triggers off.

CREATE TRIGGER event_append BEFORE INSERT ON event BEGIN
    SELECT RAISE(ABORT, 'the session is frozen')
    WHERE (SELECT frozen FROM session WHERE sid = NEW.sid);
    SELECT RAISE(ABORT, 'an event is appended at seq = last + 1')
    WHERE NEW.seq IS NOT 1 + coalesce((SELECT max(seq) FROM event WHERE sid = NEW.sid),
                                      (SELECT journal_floor - 1 FROM session WHERE sid = NEW.sid))
       OR EXISTS (SELECT 1 FROM event WHERE id = NEW.id);
END;

CREATE TRIGGER event_update BEFORE UPDATE ON event BEGIN
    SELECT RAISE(ABORT, 'events never change');
END;

CREATE TRIGGER event_delete BEFORE DELETE ON event BEGIN
    SELECT RAISE(ABORT, 'events at or above the journal floor are kept')
    WHERE OLD.seq >= coalesce((SELECT journal_floor FROM session WHERE sid = OLD.sid), 0);
END;

CREATE TRIGGER session_insert BEFORE INSERT ON session BEGIN
    SELECT RAISE(ABORT, 'the session exists')
    WHERE EXISTS (SELECT 1 FROM session WHERE id = NEW.id OR sid = NEW.sid);
END;

CREATE TRIGGER session_update BEFORE UPDATE ON session BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE OLD.frozen;
    SELECT RAISE(ABORT, 'a session keeps its id') WHERE NEW.id <> OLD.id OR NEW.sid <> OLD.sid;
    SELECT RAISE(ABORT, 'seq, epoch and journal floor never go back')
    WHERE NEW.last_seq < OLD.last_seq OR NEW.epoch < OLD.epoch OR NEW.journal_floor < OLD.journal_floor;
    SELECT RAISE(ABORT, 'last_seq is the seq of the last event')
    WHERE NEW.last_seq <> OLD.last_seq
      AND NEW.last_seq IS NOT (SELECT max(seq) FROM event WHERE sid = OLD.sid);
    SELECT RAISE(ABORT, 'the journal floor is at most last_seq + 1') WHERE NEW.journal_floor > NEW.last_seq + 1;
    SELECT RAISE(ABORT, 'the head is a revision of the session')
    WHERE NEW.head IS NOT OLD.head AND NOT EXISTS (SELECT 1 FROM revision WHERE id = NEW.head AND sid = OLD.sid);
END;

CREATE TRIGGER session_delete BEFORE DELETE ON session BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE OLD.frozen;
    SELECT RAISE(ABORT, 'a session is kept as long as its events and revisions')
    WHERE EXISTS (SELECT 1 FROM event WHERE sid = OLD.sid) OR EXISTS (SELECT 1 FROM revision WHERE sid = OLD.sid);
END;

CREATE TRIGGER prompt_insert BEFORE INSERT ON prompt BEGIN
    SELECT RAISE(ABORT, 'the prompt exists')
    WHERE EXISTS (SELECT 1 FROM prompt WHERE id = NEW.id OR sha256 = NEW.sha256);
END;

CREATE TRIGGER prompt_update BEFORE UPDATE ON prompt BEGIN
    SELECT RAISE(ABORT, 'prompts never change');
END;

CREATE TRIGGER prompt_delete BEFORE DELETE ON prompt BEGIN
    SELECT RAISE(ABORT, 'a revision has the prompt') WHERE EXISTS (SELECT 1 FROM revision WHERE prompt = OLD.id);
END;

CREATE TRIGGER chain_insert BEFORE INSERT ON chain BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE (SELECT frozen FROM session WHERE sid = NEW.sid);
    SELECT RAISE(ABORT, 'the chain exists') WHERE EXISTS (SELECT 1 FROM chain WHERE id = NEW.id);
END;

CREATE TRIGGER chain_update BEFORE UPDATE ON chain BEGIN
    SELECT RAISE(ABORT, 'chains never change');
END;

CREATE TRIGGER chain_delete BEFORE DELETE ON chain BEGIN
    SELECT RAISE(ABORT, 'the chain is in use')
    WHERE EXISTS (SELECT 1 FROM revision WHERE sid = OLD.sid AND chain = OLD.id)
       OR EXISTS (SELECT 1 FROM chain WHERE base = OLD.id)
       OR EXISTS (SELECT 1 FROM message WHERE chain = OLD.id);
END;

CREATE TRIGGER message_insert BEFORE INSERT ON message BEGIN
    SELECT RAISE(ABORT, 'the session is frozen')
    WHERE (SELECT frozen FROM session JOIN chain USING (sid) WHERE chain.id = NEW.chain);
    SELECT RAISE(ABORT, 'the message exists')
    WHERE EXISTS (SELECT 1 FROM message WHERE chain = NEW.chain AND idx = NEW.idx)
       OR EXISTS (SELECT 1 FROM message WHERE id = NEW.id);
END;

CREATE TRIGGER message_update BEFORE UPDATE ON message BEGIN
    SELECT RAISE(ABORT, 'messages never change');
END;

CREATE TRIGGER message_delete BEFORE DELETE ON message BEGIN
    SELECT RAISE(ABORT, 'a revision contains the message')
    WHERE EXISTS (SELECT 1 FROM revision WHERE sid = (SELECT sid FROM chain WHERE id = OLD.chain)
                  AND chain = OLD.chain AND length > OLD.idx)
       OR EXISTS (SELECT 1 FROM chain WHERE base = OLD.chain AND base_length > OLD.idx);
END;

CREATE TRIGGER revision_insert BEFORE INSERT ON revision BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE (SELECT frozen FROM session WHERE sid = NEW.sid);
    SELECT RAISE(ABORT, 'the revision exists')
    WHERE EXISTS (SELECT 1 FROM revision WHERE sid = NEW.sid AND n = NEW.n)
       OR EXISTS (SELECT 1 FROM revision WHERE id = NEW.id);
END;

CREATE TRIGGER revision_update BEFORE UPDATE ON revision BEGIN
    SELECT RAISE(ABORT, 'revisions never change');
END;

CREATE TRIGGER revision_delete BEFORE DELETE ON revision BEGIN
    SELECT RAISE(ABORT, 'the head and the revisions of a frozen session are kept')
    WHERE EXISTS (SELECT 1 FROM session WHERE sid = OLD.sid AND (head = OLD.id OR frozen));
END;

CREATE TRIGGER run_insert BEFORE INSERT ON run BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE (SELECT frozen FROM session WHERE sid = NEW.sid);
    SELECT RAISE(ABORT, 'the run exists')
    WHERE EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id OR id = NEW.id);
    SELECT RAISE(ABORT, 'another run of the session has not settled')
    WHERE EXISTS (SELECT 1 FROM run WHERE sid = NEW.sid AND state IN ('accepted', 'running', 'finished'));
END;

CREATE TRIGGER run_update BEFORE UPDATE ON run BEGIN
    SELECT RAISE(ABORT, 'the run has settled') WHERE OLD.state IN ('persisted', 'persist_failed', 'lost');
    SELECT RAISE(ABORT, 'a run keeps its id and request')
    WHERE NEW.id <> OLD.id OR NEW.run_id <> OLD.run_id OR NEW.sid <> OLD.sid OR NEW.request_id <> OLD.request_id
       OR NEW.request_digest <> OLD.request_digest OR NEW.text <> OLD.text OR NEW.accepted_seq <> OLD.accepted_seq;
END;

CREATE TRIGGER run_delete BEFORE DELETE ON run BEGIN
    SELECT RAISE(ABORT, 'a run is kept as long as its events')
    WHERE OLD.last_seq >= coalesce((SELECT journal_floor FROM session WHERE sid = OLD.sid), 0);
END;

CREATE TRIGGER request_insert BEFORE INSERT ON request BEGIN
    SELECT RAISE(ABORT, 'the request exists')
    WHERE EXISTS (SELECT 1 FROM request WHERE scope = NEW.scope AND request_id = NEW.request_id);
END;

CREATE TRIGGER request_update BEFORE UPDATE ON request BEGIN
    SELECT RAISE(ABORT, 'requests never change');
END;

CREATE TRIGGER request_delete BEFORE DELETE ON request BEGIN
    SELECT RAISE(ABORT, 'a request is kept as long as its run') WHERE EXISTS (SELECT 1 FROM run WHERE id = OLD.run);
END;

-- The public views: what people query. Columns end with their unit; *_at is RFC 3339 text.

CREATE VIEW v_session AS
SELECT s.id AS session_id, s.title,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at_ms / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.updated_at_ms / 1000.0, 'unixepoch') AS updated_at,
       r.sha256 AS revision, r.n AS revisions, s.messages, s.frozen, s.parent_id, s.parent_revision,
       s.last_seq, s.persisted_seq, s.profile
FROM session s LEFT JOIN revision r ON r.id = s.head;

CREATE VIEW v_run AS
SELECT r.run_id, s.id AS session_id, r.request_id, r.kind, r.text, r.on_input, r.state, r.outcome,
       json_extract(r.error, '$.code') AS error_code, json_extract(r.error, '$.message') AS error_message,
       json_extract(r.result, '$.content') AS result,
       json_extract(r.persisted, '$.revision') AS revision,
       json_extract(r.stats, '$.iterations') AS iterations,
       json_extract(r.stats, '$.tool_errors') AS tool_errors,
       r.cancel IS NOT NULL AS cancel_requested, r.accepted_seq, r.last_seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.accepted_at_ms / 1000.0, 'unixepoch') AS accepted_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.settled_at_ms / 1000.0, 'unixepoch') AS settled_at,
       r.settled_at_ms - r.accepted_at_ms AS duration_ms
FROM run r JOIN session s USING (sid);

CREATE VIEW v_event AS
SELECT s.id AS session_id, e.seq, strftime('%Y-%m-%dT%H:%M:%fZ', e.at_ms / 1000.0, 'unixepoch') AS at,
       r.run_id, e.type, e.kind, e.data, e.ext
FROM event e JOIN session s USING (sid) LEFT JOIN run r ON r.id = e.run;

CREATE VIEW v_message AS
WITH RECURSIVE segment (sid, chain, until) AS (
    SELECT s.sid, r.chain, r.length FROM session s JOIN revision r ON r.id = s.head
    UNION ALL
    SELECT g.sid, c.base, min(c.base_length, g.until)
    FROM segment g JOIN chain c ON c.id = g.chain WHERE c.base IS NOT NULL
)
SELECT s.id AS session_id, m.idx, m.ordinal, m.role,
       json_extract(m.body, '$.Content') AS content,
       json_extract(m.body, '$.tool_name') AS tool_name,
       json_extract(m.body, '$.ID') AS message_id, m.body
FROM segment g
JOIN session s ON s.sid = g.sid
JOIN message m ON m.chain = g.chain AND m.idx < g.until;

CREATE VIEW v_tool_call AS
SELECT s.id AS session_id, r.run_id, t.call_id, t.name, t.status, t.started_seq, t.finished_seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at_ms / 1000.0, 'unixepoch') AS started_at,
       t.finished_at_ms - t.started_at_ms AS duration_ms, t.args_bytes, t.result_bytes
FROM tool_call t JOIN session s USING (sid) JOIN run r ON r.id = t.run;

CREATE VIEW v_revision AS
SELECT s.id AS session_id, v.n, v.sha256 AS revision, v.length AS messages, v.reason, r.run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.at_ms / 1000.0, 'unixepoch') AS at, v.id = s.head AS is_head
FROM revision v JOIN session s USING (sid) LEFT JOIN run r ON r.id = v.run;

CREATE VIEW v_usage AS
SELECT s.id AS session_id, r.run_id, u.agent, u.provider, u.model, u.input_tokens, u.output_tokens, u.cost_usd,
       strftime('%Y-%m-%dT%H:%M:%fZ', u.at_ms / 1000.0, 'unixepoch') AS at
FROM usage u JOIN session s USING (sid) JOIN run r ON r.id = u.run;
