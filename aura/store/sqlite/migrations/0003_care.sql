-- What pruning needs: where a journal begins after its first events were removed, and a way to remove a whole session.

-- The chain hash of the last event that was pruned, so that what is kept can still be proved.
CREATE TABLE journal_anchor (
    sid         INTEGER PRIMARY KEY REFERENCES session (sid),
    seq         INTEGER NOT NULL,       -- journal_floor - 1
    chain_hash  BLOB NOT NULL
) STRICT;

CREATE TRIGGER journal_anchor_insert BEFORE INSERT ON journal_anchor BEGIN
    SELECT RAISE(ABORT, 'an anchor is the hash of an event that is there')
    WHERE NEW.chain_hash IS NOT (SELECT chain_hash FROM event WHERE sid = NEW.sid AND seq = NEW.seq);
END;

CREATE TRIGGER journal_anchor_update BEFORE UPDATE ON journal_anchor BEGIN
    SELECT RAISE(ABORT, 'an anchor is the hash of an event that is there')
    WHERE NEW.sid <> OLD.sid
       OR NEW.chain_hash IS NOT (SELECT chain_hash FROM event WHERE sid = NEW.sid AND seq = NEW.seq);
END;

CREATE TRIGGER journal_anchor_delete BEFORE DELETE ON journal_anchor BEGIN
    SELECT RAISE(ABORT, 'an anchor is kept as long as its session')
    WHERE EXISTS (SELECT 1 FROM session WHERE sid = OLD.sid AND head IS NOT NULL);
END;

-- Sessions that somebody decided to remove. Their rows go in several transactions, their own row and this one go last.
CREATE TABLE removal (
    sid    INTEGER PRIMARY KEY REFERENCES session (sid),
    at_ms  INTEGER NOT NULL
) STRICT;

CREATE TRIGGER removal_insert BEFORE INSERT ON removal BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE (SELECT frozen FROM session WHERE sid = NEW.sid);
    SELECT RAISE(ABORT, 'a run of the session has not settled')
    WHERE EXISTS (SELECT 1 FROM run WHERE sid = NEW.sid AND state IN ('accepted', 'running', 'finished'));
    SELECT RAISE(ABORT, 'another session contains its messages')
    WHERE EXISTS (SELECT 1 FROM chain own JOIN chain other ON other.base = own.id
                  WHERE own.sid = NEW.sid AND other.sid <> NEW.sid);
END;

CREATE TRIGGER removal_delete BEFORE DELETE ON removal BEGIN
    SELECT RAISE(ABORT, 'the session is not removed yet') WHERE EXISTS (SELECT 1 FROM session WHERE sid = OLD.sid);
END;

-- A session that is being removed has no head, and nothing is added to it.
DROP TRIGGER session_update;
CREATE TRIGGER session_update BEFORE UPDATE ON session BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE OLD.frozen;
    SELECT RAISE(ABORT, 'the session is being removed')
    WHERE OLD.head IS NULL AND EXISTS (SELECT 1 FROM removal WHERE sid = OLD.sid);
    SELECT RAISE(ABORT, 'a session keeps its id') WHERE NEW.id <> OLD.id OR NEW.sid <> OLD.sid;
    SELECT RAISE(ABORT, 'seq, epoch and journal floor never go back')
    WHERE NEW.last_seq < OLD.last_seq OR NEW.epoch < OLD.epoch OR NEW.journal_floor < OLD.journal_floor;
    SELECT RAISE(ABORT, 'last_seq is the seq of the last event')
    WHERE NEW.last_seq <> OLD.last_seq
      AND NEW.last_seq IS NOT (SELECT max(seq) FROM event WHERE sid = OLD.sid);
    SELECT RAISE(ABORT, 'the journal floor is at most last_seq + 1') WHERE NEW.journal_floor > NEW.last_seq + 1;
    SELECT RAISE(ABORT, 'the head is a revision of the session')
    WHERE NEW.head IS NOT NULL AND NEW.head IS NOT OLD.head
      AND NOT EXISTS (SELECT 1 FROM revision WHERE id = NEW.head AND sid = OLD.sid);
    SELECT RAISE(ABORT, 'a session loses its head only when it is removed, with its whole journal')
    WHERE NEW.head IS NULL AND OLD.head IS NOT NULL
      AND (NEW.journal_floor <> NEW.last_seq + 1 OR NOT EXISTS (SELECT 1 FROM removal WHERE sid = OLD.sid));
END;

CREATE TRIGGER revision_add BEFORE INSERT ON revision BEGIN
    SELECT RAISE(ABORT, 'the session is being removed') WHERE EXISTS (SELECT 1 FROM removal WHERE sid = NEW.sid);
END;
