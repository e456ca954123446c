-- The timeline of each fleet: one row is one event, repetitions counted in it.
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- grows with each new event, so that readers can follow
    machines_dir TEXT NOT NULL,
    at REAL NOT NULL,                    -- epoch seconds
    machine TEXT NOT NULL,               -- empty: about no machine
    kind TEXT NOT NULL,                  -- model/event.py has them
    severity TEXT NOT NULL,              -- good, note, warn, bad
    subject TEXT NOT NULL,               -- what it is about within its kind
    text TEXT NOT NULL,
    by_whom TEXT,                        -- user@host of a decision
    details TEXT NOT NULL,               -- JSON object
    count INTEGER NOT NULL,
    last_at REAL NOT NULL,               -- epoch seconds of the last repetition, else `at`
    UNIQUE (machines_dir, at, machine, kind, subject)
);

CREATE INDEX events_by_time ON events (machines_dir, last_at);

-- Which process writes the events of a fleet: one at a time, as long as it renews its entry.
CREATE TABLE event_writers (
    machines_dir TEXT PRIMARY KEY,
    owner TEXT NOT NULL,                 -- empty: it ended in order
    pid INTEGER NOT NULL,
    kind TEXT NOT NULL,                  -- dashboard, status --watch
    renewed_at REAL NOT NULL             -- epoch seconds
);
