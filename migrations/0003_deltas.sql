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
-- Full checkpoints: versions that wait to be held against earlier ones, and what each series of them stands on.
CREATE TABLE derive_waiting (
	version INTEGER PRIMARY KEY
);
CREATE TABLE derive_series (
	series BLOB NOT NULL PRIMARY KEY,
	root INTEGER NOT NULL,
	root_count INTEGER NOT NULL,
	root_bytes INTEGER NOT NULL,
	head INTEGER NOT NULL,
	head_count INTEGER NOT NULL,
	head_bytes INTEGER NOT NULL,
	head_delta INTEGER NOT NULL
) WITHOUT ROWID;
-- Hidden versions that background work has made and nothing names yet.
CREATE TABLE scratch_versions (
	version INTEGER PRIMARY KEY
);

-- Proof of steps, and the anchors that the server makes (form 2 in step_objects). verified: 0 pending, 1 ok, 2 failed, 3 not asked for. made: how
-- many derivations deep the made anchor is, NULL when there is none; made_bytes: of its files; made_until_ms: it stays till then even when nothing else
-- wants it. wants_made: a made anchor is to be there, and to be listed, 1 derived,
-- 2 plain.
ALTER TABLE steps ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN verify_error BLOB;
ALTER TABLE steps ADD COLUMN made INTEGER;
ALTER TABLE steps ADD COLUMN made_bytes INTEGER;
ALTER TABLE steps ADD COLUMN made_until_ms INTEGER;
ALTER TABLE steps ADD COLUMN wants_made INTEGER;
CREATE INDEX steps_pending ON steps (id) WHERE state = 0 AND verified = 0;
CREATE INDEX steps_wanting ON steps (run, step) WHERE state = 0 AND wants_made IS NOT NULL;
CREATE INDEX steps_made ON steps (run, step) WHERE state = 0 AND made IS NOT NULL;
CREATE INDEX steps_whole ON steps (run, step) WHERE state = 0 AND (has_anchor = 1 OR made IS NOT NULL);

-- Folds: deltas over several steps. kind: 0 skip (made after each publish), 1 direct (asked for). state: 0 wanted, 1 made, 2 refused (it cannot be
-- made), 3 being released. A row of fold_objects pins its version, which is hidden.
CREATE TABLE folds (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run INTEGER NOT NULL,
	from_step INTEGER NOT NULL,
	to_step INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	state INTEGER NOT NULL,
	format BLOB NOT NULL,
	bytes INTEGER NOT NULL,
	used_ms INTEGER NOT NULL,
	UNIQUE (run, to_step, from_step)
);
CREATE INDEX folds_from ON folds (run, from_step);
CREATE INDEX folds_wanted ON folds (kind, id) WHERE state = 0;
CREATE INDEX folds_direct ON folds (used_ms) WHERE kind = 1 AND state <> 3;
CREATE INDEX folds_releasing ON folds (id) WHERE state = 3;
CREATE TABLE fold_objects (
	fold INTEGER NOT NULL,
	name BLOB NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (fold, name)
) WITHOUT ROWID;
CREATE INDEX fold_objects_version ON fold_objects (version);

-- The fleet: replicas, pins, retention, forks.
ALTER TABLE runs ADD COLUMN settings BLOB;
ALTER TABLE runs ADD COLUMN parent_run BLOB;
ALTER TABLE runs ADD COLUMN parent_step INTEGER;
ALTER TABLE runs ADD COLUMN parent_digest BLOB;
CREATE TABLE replicas (
	run INTEGER NOT NULL,
	id BLOB NOT NULL,
	document BLOB NOT NULL,
	lease_ms INTEGER NOT NULL,
	since_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (run, id)
) WITHOUT ROWID;
CREATE TABLE pins (
	run INTEGER NOT NULL,
	name BLOB NOT NULL,
	step INTEGER NOT NULL,
	expires_ms INTEGER,
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE INDEX pins_expiring ON pins (expires_ms) WHERE expires_ms IS NOT NULL;

-- Publishing: parts of large steps, webhooks, hot-load. state: 0 waits for the others, 1 published, its objects being released, 2 dead, likewise, 3
-- published and released, kept for repeats. The objects of a part are rows of step_objects, whose step is the part's id with the other sign.
CREATE TABLE step_parts (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run INTEGER NOT NULL,
	step INTEGER NOT NULL,
	part INTEGER NOT NULL,
	parts INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	state INTEGER NOT NULL,
	content BLOB NOT NULL,
	document BLOB,
	created_ms INTEGER NOT NULL
);
CREATE INDEX step_parts_of_step ON step_parts (run, step, part);
CREATE INDEX step_parts_over ON step_parts (state, created_ms);

-- Views and adopted runs. runs.adopts: 1 when what a foreign trainer puts becomes a step; runs.hot_load: the deployment whose hot-loads do. Both repeat
-- settings, so that they are found without reading them all. An adoption is a foreign publish: state 0 waits, 1 is a step, 2 failed; objects: the key,
-- or the beginning of the keys, of what it brought; base: the identity that it says it builds on, NULL when it does not say.
ALTER TABLE runs ADD COLUMN adopts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN hot_load BLOB;
CREATE INDEX runs_adopting ON runs (bucket) WHERE adopts = 1;
CREATE UNIQUE INDEX runs_hot_load ON runs (hot_load) WHERE hot_load IS NOT NULL;
CREATE TABLE adoptions (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run INTEGER NOT NULL,
	identity BLOB NOT NULL,
	convention INTEGER NOT NULL,
	state INTEGER NOT NULL,
	objects BLOB NOT NULL,
	base BLOB,
	step INTEGER,
	error BLOB,
	created_ms INTEGER NOT NULL,
	UNIQUE (run, identity)
);
CREATE INDEX adoptions_waiting ON adoptions (id) WHERE state = 0;
CREATE INDEX adoptions_step ON adoptions (run, step) WHERE step IS NOT NULL;

-- What is still to be told to the webhooks of runs.
CREATE TABLE webhook_events (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run INTEGER NOT NULL,
	body BLOB NOT NULL,
	attempts INTEGER NOT NULL,
	due_ms INTEGER NOT NULL
);
CREATE INDEX webhook_events_due ON webhook_events (due_ms);
CREATE INDEX webhook_events_run ON webhook_events (run, id);

-- Steps in the layouts of other readers. kind: 0 trl, 1 slime; state: 0 wanted, 1 made, 2 failed. Their objects are forms 3 and 4 in step_objects.
CREATE TABLE step_views (
	step INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	state INTEGER NOT NULL,
	error BLOB,
	PRIMARY KEY (step, kind)
) WITHOUT ROWID;
CREATE INDEX step_views_wanted ON step_views (step, kind) WHERE state = 0;
