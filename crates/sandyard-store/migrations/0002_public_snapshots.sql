-- Whether every user may start sandboxes from the snapshot.
ALTER TABLE snapshots ADD COLUMN is_public BIGINT NOT NULL DEFAULT 0;
