-- What machines are made of, as `fleettui inventory collect` measured it; of each machine the last few.
CREATE TABLE profiles (
    machines_dir TEXT NOT NULL,
    machine TEXT NOT NULL,
    collected_at REAL NOT NULL,          -- epoch seconds
    payload TEXT NOT NULL,               -- JSON of view/profile_document.py
    PRIMARY KEY (machines_dir, machine, collected_at)
);
