-- Steps that the server understands: derived objects, proof, folds, the fleet, publishing in parts. docs/FORMAT.md, "Catalog".

-- Derived objects: versions of kind 3. The recipe tells how their bytes come from other versions, which stay as long as they are named here.
CREATE TABLE derivations (
	version INTEGER PRIMARY KEY,
	depth INTEGER NOT NULL,
	recipe BLOB NOT NULL,
	parts BLOB
);
CREATE TABLE derivation_sources (
	version INTEGER NOT NULL,
	ordinal INTEGER NOT NULL,
	source INTEGER NOT NULL,
	PRIMARY KEY (version, ordinal)
) WITHOUT ROWID;
CREATE INDEX derivation_sources_source ON derivation_sources (source);
-- Hidden versions that background work has made and nothing names yet.
CREATE TABLE scratch_versions (
	version INTEGER PRIMARY KEY
);

-- Proof of steps, and the anchors that the server makes (form 2 in step_objects). verified: 0 pending, 1 ok, 2 failed. made: how many derivations
-- deep the made anchor is, NULL when there is none; made_bytes: of its files.
ALTER TABLE steps ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN verify_error BLOB;
ALTER TABLE steps ADD COLUMN made INTEGER;
ALTER TABLE steps ADD COLUMN made_bytes INTEGER;
CREATE INDEX steps_pending ON steps (id) WHERE state = 0 AND verified = 0;
CREATE INDEX steps_made ON steps (run, step) WHERE state = 0 AND made IS NOT NULL;

-- Folds: deltas over several steps.

-- The fleet: replicas, pins, retention, forks.
ALTER TABLE runs ADD COLUMN settings BLOB;

-- Publishing: parts of large steps, webhooks, hot-load.

-- Views and adopted runs.
