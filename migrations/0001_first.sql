-- The catalog, first form. docs/FORMAT.md, "Catalog", says what each table and column is for.
-- Keys, names and ids are blobs, so that their order is byte order on every engine.

CREATE TABLE settings (
	name BLOB NOT NULL PRIMARY KEY,
	value BLOB NOT NULL
);

CREATE TABLE accounts (
	id INTEGER PRIMARY KEY,
	namespace BLOB NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL
);

CREATE TABLE keys (
	id INTEGER PRIMARY KEY,
	key_id BLOB NOT NULL UNIQUE,
	account INTEGER NOT NULL REFERENCES accounts (id),
	name BLOB NOT NULL,
	sealed_secret BLOB NOT NULL,
	token_hash BLOB NOT NULL,
	is_root INTEGER NOT NULL,
	created_ms INTEGER NOT NULL
);

CREATE TABLE grants (
	key INTEGER NOT NULL REFERENCES keys (id),
	ordinal INTEGER NOT NULL,
	bucket BLOB NOT NULL,
	prefix BLOB NOT NULL,
	permissions INTEGER NOT NULL,
	PRIMARY KEY (key, ordinal)
);

CREATE TABLE buckets (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name BLOB NOT NULL UNIQUE,
	account INTEGER NOT NULL REFERENCES accounts (id),
	created_ms INTEGER NOT NULL
);

CREATE TABLE packs (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	id BLOB NOT NULL UNIQUE,
	state INTEGER NOT NULL,
	length INTEGER NOT NULL,
	chunks INTEGER NOT NULL,
	has_private_codecs INTEGER NOT NULL
);

CREATE TABLE part_sets (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	row_count INTEGER NOT NULL,
	is_dead INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX part_sets_dead ON part_sets (id) WHERE is_dead = 1;

CREATE TABLE parts (
	part_set INTEGER NOT NULL,
	number INTEGER NOT NULL,
	size INTEGER NOT NULL,
	md5 BLOB,
	digest BLOB NOT NULL,
	file_hash BLOB NOT NULL,
	sum INTEGER NOT NULL,
	PRIMARY KEY (part_set, number)
) WITHOUT ROWID;

CREATE TABLE segments (
	part_set INTEGER NOT NULL,
	number INTEGER NOT NULL,
	start INTEGER NOT NULL,
	pack INTEGER NOT NULL,
	first INTEGER NOT NULL,
	count INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	sum INTEGER NOT NULL,
	PRIMARY KEY (part_set, number, start)
) WITHOUT ROWID;
CREATE INDEX segments_pack ON segments (pack);

CREATE TABLE versions (
	sequence INTEGER PRIMARY KEY AUTOINCREMENT,
	id BLOB NOT NULL,
	bucket INTEGER NOT NULL,
	key BLOB NOT NULL,
	is_current INTEGER NOT NULL,
	is_marker INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	size INTEGER NOT NULL,
	etag BLOB NOT NULL,
	digest BLOB,
	file_hash BLOB NOT NULL,
	modified_ms INTEGER NOT NULL,
	headers BLOB NOT NULL,
	part_set INTEGER,
	contents INTEGER NOT NULL,
	checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX versions_current ON versions (bucket, key) WHERE is_current = 1;
CREATE INDEX versions_listed ON versions (bucket, key, size, etag, modified_ms, is_current, is_marker) WHERE is_current = 1 AND is_marker = 0;
CREATE INDEX versions_older ON versions (bucket, key, id) WHERE is_current = 0;

CREATE TABLE inline_bytes (
	version INTEGER PRIMARY KEY,
	bytes BLOB NOT NULL
);

CREATE TABLE runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	bucket INTEGER NOT NULL,
	name BLOB,
	epoch INTEGER NOT NULL,
	head INTEGER,
	head_digest BLOB,
	schema_digest BLOB,
	keep_steps INTEGER NOT NULL,
	steps INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	UNIQUE (bucket, name)
);
CREATE INDEX runs_ended ON runs (id) WHERE name IS NULL;

CREATE TABLE run_schemas (
	run INTEGER PRIMARY KEY,
	schema BLOB NOT NULL
);

CREATE TABLE steps (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run INTEGER NOT NULL,
	step INTEGER NOT NULL,
	state INTEGER NOT NULL,
	digest BLOB NOT NULL,
	content BLOB NOT NULL,
	has_anchor INTEGER NOT NULL,
	anchor_bytes INTEGER,
	delta_bytes INTEGER,
	created_ms INTEGER NOT NULL,
	UNIQUE (run, step)
);
CREATE INDEX steps_anchors ON steps (run, state, has_anchor, step);
CREATE INDEX steps_kept ON steps (run, step) WHERE state = 0;
CREATE INDEX steps_releasing ON steps (id) WHERE state = 1;

CREATE TABLE step_manifests (
	step INTEGER PRIMARY KEY,
	manifest BLOB NOT NULL,
	tensor_digests BLOB NOT NULL,
	checksum INTEGER NOT NULL
);

CREATE TABLE step_objects (
	step INTEGER NOT NULL,
	form INTEGER NOT NULL,
	name BLOB NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (step, form, name)
) WITHOUT ROWID;
CREATE INDEX step_objects_version ON step_objects (version);
