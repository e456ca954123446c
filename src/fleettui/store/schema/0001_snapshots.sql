-- Last snapshots. One fleet is one machines folder, named by its absolute path.
CREATE TABLE fleet_snapshots (
    machines_dir TEXT PRIMARY KEY,
    written_at REAL NOT NULL,   -- epoch seconds
    taken_at REAL NOT NULL,     -- epoch seconds
    interval_s REAL NOT NULL,
    writer_pid INTEGER NOT NULL,
    writer_kind TEXT NOT NULL,  -- dashboard, watch, serve, demo
    payload TEXT NOT NULL       -- sealed JSON of store/codec.py: everything of the fleet but its machines
);

CREATE TABLE machine_snapshots (
    id INTEGER PRIMARY KEY,
    machines_dir TEXT NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    taken_at REAL NOT NULL,     -- epoch seconds of the fleet snapshot that brought this row
    routing TEXT NOT NULL,      -- sealed JSON of store/routing_part.py: what routing reads of the machine
    payload TEXT NOT NULL,      -- sealed JSON of store/codec.py: everything, up to half a minute older
    UNIQUE (machines_dir, name)
);
