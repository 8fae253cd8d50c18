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

-- A session without a head is on its way out: its rows go in several transactions, its own row goes last.
DROP TRIGGER session_update;
CREATE TRIGGER session_update BEFORE UPDATE ON session BEGIN
    SELECT RAISE(ABORT, 'the session is frozen') WHERE OLD.frozen;
    SELECT RAISE(ABORT, 'the session is being removed')
    WHERE OLD.head IS NULL AND NEW.head IS NULL AND EXISTS (SELECT 1 FROM revision WHERE sid = OLD.sid);
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
    SELECT RAISE(ABORT, 'a session loses its head only with its whole journal, and with no run that is live')
    WHERE NEW.head IS NULL AND OLD.head IS NOT NULL
      AND (NEW.journal_floor <> NEW.last_seq + 1
           OR EXISTS (SELECT 1 FROM run WHERE sid = OLD.sid AND state IN ('accepted', 'running', 'finished')));
END;
