-- The public views again, wider: what docs/sql.md describes. They use only what SQLite 3.38 has, so that other programs
-- can read them. Columns end with their unit; *_at is RFC 3339 text for reading, *_at_ms the same moment in Unix
-- milliseconds for arithmetic.

-- Warnings are looked for by themselves, and there are few of them: other events cost this index nothing.
CREATE INDEX event_notice ON event (at_ms) WHERE kind = 'notice';

DROP VIEW v_session;
DROP VIEW v_run;
DROP VIEW v_event;
DROP VIEW v_message;
DROP VIEW v_tool_call;
DROP VIEW v_revision;
DROP VIEW v_usage;

CREATE VIEW v_session AS
SELECT s.id AS session_id, s.title,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at_ms / 1000.0, 'unixepoch') AS created_at, s.created_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.updated_at_ms / 1000.0, 'unixepoch') AS updated_at, s.updated_at_ms,
       r.sha256 AS revision, r.n AS revisions, s.messages,
       s.last_seq - s.journal_floor + 1 AS events,
       (SELECT count(*) FROM run WHERE run.sid = s.sid) AS runs,
       (SELECT run.run_id FROM run
        WHERE run.sid = s.sid AND run.state IN ('accepted', 'running', 'finished')) AS live_run_id,
       s.frozen, s.parent_id, s.parent_revision, s.last_seq, s.persisted_seq, s.profile
FROM session s LEFT JOIN revision r ON r.id = s.head;

CREATE VIEW v_run AS
SELECT r.run_id, s.id AS session_id, r.request_id, r.kind, r.text, r.on_input, r.state,
       r.state IN ('accepted', 'running', 'finished') AS live, r.outcome,
       json_extract(r.error, '$.code') AS error_code, json_extract(r.error, '$.message') AS error_message,
       json_extract(r.persist_error, '$.code') AS persist_error_code,
       json_extract(r.persist_error, '$.message') AS persist_error_message,
       json_extract(r.result, '$.content') AS result,
       json_extract(r.persisted, '$.revision') AS revision,
       json_extract(r.stats, '$.iterations') AS iterations,
       (SELECT coalesce(sum(j.value), 0) FROM json_each(r.stats, '$.tool_calls') j) AS tool_calls,
       json_extract(r.stats, '$.tool_errors') AS tool_errors,
       (SELECT sum(u.input_tokens) FROM usage u WHERE u.run = r.id) AS input_tokens,
       (SELECT sum(u.output_tokens) FROM usage u WHERE u.run = r.id) AS output_tokens,
       (SELECT sum(u.cost_usd) FROM usage u WHERE u.run = r.id) AS cost_usd,
       r.cancel IS NOT NULL AS cancel_requested,
       json_extract(r.cancel, '$.reason') AS cancel_reason, json_extract(r.cancel, '$.message') AS cancel_message,
       json_extract(r.cancel, '$.at_ms') AS cancel_at_ms,
       r.accepted_seq, r.last_seq, r.last_seq - r.accepted_seq + 1 AS events,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.accepted_at_ms / 1000.0, 'unixepoch') AS accepted_at, r.accepted_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at_ms / 1000.0, 'unixepoch') AS started_at, r.started_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_at_ms / 1000.0, 'unixepoch') AS finished_at, r.finished_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.settled_at_ms / 1000.0, 'unixepoch') AS settled_at, r.settled_at_ms,
       (SELECT u.at_ms FROM usage u WHERE u.run = r.id ORDER BY u.seq LIMIT 1) - r.started_at_ms AS first_answer_ms,
       r.settled_at_ms - r.accepted_at_ms AS duration_ms
FROM run r JOIN session s ON s.sid = r.sid;

-- A run's events lie between its first and its last seq: said here, so that one run's events are found by their key.
CREATE VIEW v_event AS
SELECT s.id AS session_id, e.seq, strftime('%Y-%m-%dT%H:%M:%fZ', e.at_ms / 1000.0, 'unixepoch') AS at, e.at_ms,
       r.run_id, e.type, e.kind, e.data, e.ext, length(CAST(e.data AS BLOB)) AS data_bytes,
       lower(hex(e.chain_hash)) AS chain_hash
FROM event e JOIN session s ON s.sid = e.sid
LEFT JOIN run r ON r.id = e.run AND r.sid = e.sid AND e.seq >= r.accepted_seq AND e.seq <= r.last_seq;

CREATE VIEW v_message AS
WITH RECURSIVE segment (sid, chain, until) AS (
    SELECT s.sid, r.chain, r.length FROM session s JOIN revision r ON r.id = s.head
    UNION ALL
    SELECT g.sid, c.base, min(c.base_length, g.until)
    FROM segment g JOIN chain c ON c.id = g.chain WHERE c.base IS NOT NULL
)
SELECT s.id AS session_id, m.idx, m.ordinal, m.role,
       json_extract(m.body, '$.Content') AS content,
       coalesce(json_array_length(m.body, '$.calls'), 0) AS calls,
       json_extract(m.body, '$.tool_name') AS tool_name,
       json_extract(m.body, '$.tool_call_id') AS call_id,
       json_extract(m.body, '$.ID') AS message_id,
       json_extract(m.body, '$.created_at') AS created_at,
       length(CAST(m.body AS BLOB)) AS body_bytes, m.body
FROM segment g
JOIN session s ON s.sid = g.sid
JOIN message m ON m.chain = g.chain AND m.idx < g.until;

CREATE VIEW v_tool_call AS
SELECT s.id AS session_id, r.run_id, t.call_id, t.n, t.name, t.status, t.started_seq, t.finished_seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at_ms / 1000.0, 'unixepoch') AS started_at, t.started_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.finished_at_ms / 1000.0, 'unixepoch') AS finished_at, t.finished_at_ms,
       t.finished_at_ms - t.started_at_ms AS duration_ms, t.args_bytes, t.result_bytes,
       (SELECT coalesce(json_extract(e.data, '$.args'), json_extract(e.ext, '$.data.args'))
        FROM event e WHERE e.sid = t.sid AND e.seq = t.started_seq) AS args,
       (SELECT coalesce(json_extract(e.data, '$.result'), json_extract(e.ext, '$.data.result'))
        FROM event e WHERE e.sid = t.sid AND e.seq = t.finished_seq) AS result,
       (SELECT coalesce(json_extract(e.data, '$.error'), json_extract(e.ext, '$.data.error'))
        FROM event e WHERE e.sid = t.sid AND e.seq = t.finished_seq) AS error
FROM tool_call t JOIN run r ON r.id = t.run JOIN session s ON s.sid = r.sid;

CREATE VIEW v_input AS
SELECT s.id AS session_id, r.run_id, i.input_id, i.kind, i.state,
       json_extract(i.question, '$.question') AS question, json_extract(i.question, '$.options') AS options,
       json_extract(i.question, '$.tool') AS tool, json_extract(i.question, '$.detail') AS detail,
       json_extract(i.question, '$.pattern') AS pattern, i.answer, i.answered_by, r.state AS run_state,
       strftime('%Y-%m-%dT%H:%M:%fZ', i.created_at_ms / 1000.0, 'unixepoch') AS created_at, i.created_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', i.expires_at_ms / 1000.0, 'unixepoch') AS expires_at, i.expires_at_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', i.resolved_at_ms / 1000.0, 'unixepoch') AS resolved_at, i.resolved_at_ms,
       i.resolved_at_ms - i.created_at_ms AS wait_ms
FROM input i JOIN run r ON r.id = i.run JOIN session s ON s.sid = r.sid;

CREATE VIEW v_revision AS
SELECT s.id AS session_id, v.n, v.sha256 AS revision, v.length AS messages, v.reason, r.run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.at_ms / 1000.0, 'unixepoch') AS at, v.at_ms, v.id = s.head AS is_head
FROM revision v JOIN session s ON s.sid = v.sid LEFT JOIN run r ON r.id = v.run;

CREATE VIEW v_usage AS
SELECT s.id AS session_id, r.run_id, u.seq, u.agent, u.provider, u.model, u.input_tokens, u.output_tokens,
       u.input_tokens + u.output_tokens AS tokens, u.cost_usd,
       strftime('%Y-%m-%dT%H:%M:%fZ', u.at_ms / 1000.0, 'unixepoch') AS at, u.at_ms
FROM usage u JOIN run r ON r.id = u.run JOIN session s ON s.sid = r.sid;
