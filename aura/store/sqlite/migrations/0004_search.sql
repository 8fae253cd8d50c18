-- Full-text search over messages. The index is external content: it holds words and positions, the text itself stays in
-- message.body alone. Nothing here runs when a message is appended: `aura search` brings the index up to date by
-- message.id, from the mark on. A program that knows only the schema before this one may go on writing.

-- What of a message is searched: its text, and the names and arguments of the calls it asks for, without the escapes of
-- JSON; of each a million characters, so that no step of the index keeps writers waiting long. Thinking is not searched.
-- There is no json_each in it, because FTS5 reads its content without virtual tables. Deleting from the index takes the
-- same words out again, so a change of this view needs an index made anew.
CREATE VIEW message_text AS
SELECT m.id, substr(json_extract(m.body, '$.Content'), 1, 1000000) AS content,
       (WITH RECURSIVE call (n) AS (
            SELECT 0 WHERE json_array_length(m.body, '$.calls') > 0
            UNION ALL
            SELECT n + 1 FROM call WHERE n + 1 < json_array_length(m.body, '$.calls')
        )
        SELECT substr(group_concat(
            json_extract(m.body, '$.calls[' || n || '].name') || ' ' || replace(replace(replace(replace(replace(replace(
                json_extract(m.body, '$.calls[' || n || '].arguments'),
                '\\', ' '), '\n', ' '), '\r', ' '), '\t', ' '), '\"', ' '), '\u', ' '), char(10)), 1, 1000000)
        FROM call) AS calls
FROM (
    -- substr would end at a NUL, so it becomes a space; what is written as a backslash and u0000 stays as it is.
    SELECT id, CASE WHEN instr(body, '\u0000')
                    THEN replace(replace(replace(body, '\\', char(1)), '\u0000', ' '), char(1), '\\') ELSE body
               END AS body
    FROM message
) m;

CREATE VIRTUAL TABLE message_search USING fts5 (
    content, calls, content = 'message_text', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

-- All messages up to the mark are in the index, and no message after it.
CREATE TABLE message_search_mark (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    mark  INTEGER NOT NULL
) STRICT;

INSERT INTO message_search_mark (id, mark) VALUES (1, 0);

CREATE TRIGGER message_unindex BEFORE DELETE ON message
WHEN OLD.id <= (SELECT mark FROM message_search_mark) BEGIN
    INSERT INTO message_search (message_search, rowid, content, calls)
    SELECT 'delete', id, content, calls FROM message_text WHERE id = OLD.id;
END;

-- SQLite gives the ids after the largest one away again, so the mark never stays above it.
CREATE TRIGGER message_unmark AFTER DELETE ON message
WHEN OLD.id > (SELECT coalesce(max(id), 0) FROM message) BEGIN
    UPDATE message_search_mark SET mark = min(mark, (SELECT coalesce(max(id), 0) FROM message));
END;
