-- What the catalog says of itself, so that damage to it shows. docs/FORMAT.md, "Catalog".

-- Which store this is, and how often it has been started.
CREATE TABLE store (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	id BLOB NOT NULL,
	life INTEGER NOT NULL
);
-- The number of the last change, and rows and sums of all tables but this one.
CREATE TABLE sums (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	change INTEGER NOT NULL,
	tables BLOB NOT NULL
);
-- Names of pack files that gc has dropped or replaced: what stands here may be removed.
CREATE TABLE removals (
	file BLOB NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- Over a key and its grants, and over what a bucket allows to others; filled in C.
ALTER TABLE keys ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE buckets ADD COLUMN access INTEGER NOT NULL DEFAULT 0;
-- Keys that are revoked although their rows cannot be removed.
CREATE TABLE revoked_keys (
	key_id BLOB NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- It had no user.
DROP TABLE settings;

-- Rows from before a column was added are shorter than its table, which keeps no sum of them right: each is written once more.
UPDATE buckets SET versioning = versioning;
UPDATE derive_waiting SET after_ms = after_ms;
UPDATE packs SET length = length;
UPDATE part_sets SET row_count = row_count;
UPDATE parts SET size = size;
UPDATE runs SET keep_steps = keep_steps;
UPDATE steps SET content = content;
UPDATE versions SET contents = contents;

-- Chunks whose stored bytes were found damaged: nothing new may lead to them until they are right again.
CREATE TABLE damaged_chunks (
	pack INTEGER NOT NULL,
	chunk INTEGER NOT NULL,
	PRIMARY KEY (pack, chunk)
) WITHOUT ROWID;
