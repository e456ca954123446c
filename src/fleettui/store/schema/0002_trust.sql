-- What the operator decided about host keys, for each machine under the address it was decided for.
CREATE TABLE trust_decisions (
    machines_dir TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,               -- host:port as dialled
    kind TEXT NOT NULL,                  -- pinned, rejected, removed, pending
    key_type TEXT NOT NULL DEFAULT '',   -- of the key that was approved or rejected
    fingerprint TEXT NOT NULL DEFAULT '',
    decided_at REAL,                     -- epoch seconds
    decided_by TEXT NOT NULL DEFAULT '', -- user@host
    how TEXT NOT NULL DEFAULT '',        -- approve, add, bulk, reject, remove
    tombstone INTEGER NOT NULL DEFAULT 0, -- known_hosts is no approval: 1 for this name, 2 for the address too
    offer_type TEXT NOT NULL DEFAULT '', -- of the key that the machine showed and that is not approved
    offer_fingerprint TEXT NOT NULL DEFAULT '',
    offer_expected TEXT NOT NULL DEFAULT '', -- fingerprints that were known then, separated by spaces
    offer_at REAL,                       -- epoch seconds: when that key was first seen
    PRIMARY KEY (machines_dir, name, address)
);

-- Grows with every decision of a fleet, so that a running fleettui sees one made elsewhere at little cost.
CREATE TABLE trust_revisions (
    machines_dir TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
);
