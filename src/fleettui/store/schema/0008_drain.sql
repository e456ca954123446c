-- Drains: machines that the operator wants empty. A row is a flag that is on, whatever its state.
CREATE TABLE drains (
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    id TEXT NOT NULL,                    -- another one for each drain of a machine
    state TEXT NOT NULL,                 -- planned, running, drained, blocked, failed, cancelled
    reason TEXT NOT NULL,
    flagged_by TEXT NOT NULL,            -- user@host
    since REAL NOT NULL,                 -- epoch seconds
    until REAL,                          -- epoch seconds; NULL: open
    options TEXT NOT NULL,               -- JSON of store/drains.py
    text TEXT NOT NULL,                  -- the condition that is missing, or what failed
    revision INTEGER NOT NULL,           -- grows with every change of this flag
    changed_by TEXT NOT NULL,            -- user@host
    changed_at REAL NOT NULL,            -- epoch seconds
    PRIMARY KEY (machines_dir, machine)
);

-- How far each copy of a drain is, for screens of other processes; whoever works on it writes it anew.
CREATE TABLE drain_copies (
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    place INTEGER NOT NULL,              -- order of work
    payload TEXT NOT NULL,               -- JSON of store/drains.py
    PRIMARY KEY (machines_dir, machine, place)
);

-- Every step of every drain, in the order in which it was made. Rows are added and never changed.
CREATE TABLE drain_journal (
    seq INTEGER PRIMARY KEY,
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    drain_id TEXT NOT NULL,
    at REAL NOT NULL,                    -- epoch seconds
    by TEXT NOT NULL,                    -- user@host
    pid INTEGER NOT NULL,
    step TEXT NOT NULL,
    copy TEXT NOT NULL,                  -- name of a model; empty: the machine
    target TEXT NOT NULL,
    result TEXT NOT NULL,                -- ok, or what went wrong
    call TEXT NOT NULL                   -- the remote call, without secrets
);
CREATE INDEX drain_journal_of_machine ON drain_journal (machines_dir, machine, seq);

-- Who works on a drain: one process at a time, with a sign of life.
CREATE TABLE drain_locks (
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    holder TEXT NOT NULL,                -- user@host
    pid INTEGER NOT NULL,
    taken_at REAL NOT NULL,              -- epoch seconds
    beat_at REAL NOT NULL,               -- epoch seconds
    PRIMARY KEY (machines_dir, machine)
);
