-- What routing knows beyond the last snapshot.

-- Leases: choices of `--route` whose effect no poll has shown yet. A row past `until` counts for nothing.
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    port INTEGER NOT NULL,               -- of the engine
    engine TEXT NOT NULL,
    model TEXT NOT NULL,                 -- canonical name
    digest TEXT,                         -- NULL: not known
    kind TEXT NOT NULL,                  -- resident, cold
    vram_mib INTEGER NOT NULL,           -- reserved; 0 for a resident copy
    gpu INTEGER,                         -- card it is expected on; NULL: several, or not known
    pid INTEGER NOT NULL,                -- of the asker; means nothing once it has ended
    owner TEXT NOT NULL,                 -- login user
    taken_at REAL NOT NULL,              -- epoch seconds
    until REAL NOT NULL                  -- epoch seconds
);
CREATE INDEX leases_of_fleet ON leases (machines_dir, until);

-- The catalog as a running fleettui read it last, so that `--route` needs no YAML.
CREATE TABLE catalogs (
    machines_dir TEXT PRIMARY KEY,
    written_at REAL NOT NULL,            -- epoch seconds
    payload TEXT NOT NULL                -- JSON of store/catalog.py
);

-- What weights are made of, by digest: the same on every machine of every fleet.
CREATE TABLE model_shapes (
    digest TEXT PRIMARY KEY,
    read_at REAL NOT NULL,               -- epoch seconds
    payload TEXT NOT NULL                -- JSON of store/model_shapes.py
);

-- VRAM that a load of ours took, measured around it.
CREATE TABLE measured_needs (
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    digest TEXT NOT NULL,
    context INTEGER NOT NULL,            -- tokens
    gpus INTEGER NOT NULL,               -- cards it lay on
    vram_bytes INTEGER NOT NULL,
    parallel INTEGER,                    -- sequences; NULL: not known
    cache_types TEXT NOT NULL,           -- of keys and values: f16/f16
    measured_at REAL NOT NULL,           -- epoch seconds
    PRIMARY KEY (machines_dir, machine, digest, context, gpus)
);
CREATE INDEX measured_needs_of_digest ON measured_needs (machines_dir, digest);

-- How fast a machine loads models: an average that follows the last loads.
CREATE TABLE load_rates (
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    bytes_s REAL NOT NULL,
    loads INTEGER NOT NULL,              -- counted so far
    measured_at REAL NOT NULL,           -- epoch seconds
    PRIMARY KEY (machines_dir, machine)
);
