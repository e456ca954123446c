-- What the dashboard remembers between runs, so that it opens as it was left: our own view, nothing of machines.
CREATE TABLE ui_state (
    machines_dir TEXT NOT NULL,
    part TEXT NOT NULL,                  -- app, or the name of a screen
    contents TEXT NOT NULL,              -- JSON object
    PRIMARY KEY (machines_dir, part)
);
