-- Flags that the operator set on machines. A row is a flag that is on; `until` never removes one.
CREATE TABLE machine_flags (
    machines_dir TEXT NOT NULL,
    name TEXT NOT NULL,                  -- of the machine
    kind TEXT NOT NULL,                  -- maintenance
    reason TEXT,                         -- NULL: none was given
    flagged_by TEXT NOT NULL,            -- login user
    since REAL NOT NULL,                 -- epoch seconds
    until REAL,                          -- epoch seconds; NULL: open
    PRIMARY KEY (machines_dir, name, kind)
);

-- Grows with every change of a flag of a fleet, so that a running fleettui sees one made elsewhere at little cost.
CREATE TABLE flag_revisions (
    machines_dir TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
);
