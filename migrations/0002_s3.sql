-- The whole of S3: versions, tags, checksums, multipart uploads, settings of buckets, packs that give space back. docs/FORMAT.md, "Catalog".

ALTER TABLE buckets ADD COLUMN versioning INTEGER NOT NULL DEFAULT 0;
ALTER TABLE buckets ADD COLUMN etag_policy INTEGER NOT NULL DEFAULT 0;

-- Settings of a bucket as documents, by kind.
CREATE TABLE bucket_documents (
	bucket INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	document BLOB NOT NULL,
	PRIMARY KEY (bucket, kind)
) WITHOUT ROWID;
CREATE INDEX bucket_documents_kind ON bucket_documents (kind, bucket);

-- What a bucket allows to an account, or (account empty) to everyone.
CREATE TABLE bucket_grants (
	bucket INTEGER NOT NULL,
	source INTEGER NOT NULL,
	ordinal INTEGER NOT NULL,
	account BLOB NOT NULL,
	prefix BLOB NOT NULL,
	permissions INTEGER NOT NULL,
	PRIMARY KEY (bucket, source, ordinal)
) WITHOUT ROWID;

-- state: 0 hidden (only a step names it), 1 current, 2 older (its key shows it by id).
ALTER TABLE versions RENAME COLUMN is_current TO state;
ALTER TABLE versions ADD COLUMN has_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN retired_ms INTEGER;
ALTER TABLE versions ADD COLUMN part_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN checksum_kind INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN checksum_value BLOB;
ALTER TABLE versions ADD COLUMN storage_class INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN acl INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN tags BLOB;
DROP INDEX versions_current;
DROP INDEX versions_listed;
DROP INDEX versions_older;
CREATE UNIQUE INDEX versions_current ON versions (bucket, key) WHERE state = 1;
CREATE INDEX versions_listed ON versions (bucket, key, size, etag, modified_ms, checksum_kind, storage_class, state, is_marker)
	WHERE state = 1 AND is_marker = 0;
CREATE INDEX versions_by_id ON versions (bucket, key, id) WHERE state <> 1;
CREATE INDEX versions_older ON versions (bucket, key, sequence DESC) WHERE state = 2;
CREATE INDEX versions_null ON versions (bucket, key) WHERE state = 2 AND has_id = 0;

-- A set may be led to by several versions: copies share it. `map` tells where each of several parts begins; NULL: one part.
ALTER TABLE part_sets ADD COLUMN holders INTEGER NOT NULL DEFAULT 1;
ALTER TABLE part_sets ADD COLUMN map BLOB;
ALTER TABLE parts ADD COLUMN checksum_value BLOB;
ALTER TABLE parts ADD COLUMN modified_ms INTEGER NOT NULL DEFAULT 0;

-- state: 0 open, 1 completed (kept for a while: a repeated completion gets the same answer), 2 completed, and parts that were not listed are
-- still to be swept. An aborted one is removed; its part set is swept.
CREATE TABLE uploads (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	upload_id BLOB NOT NULL UNIQUE,
	bucket INTEGER NOT NULL,
	key BLOB NOT NULL,
	state INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	ended_ms INTEGER,
	initiator BLOB NOT NULL,
	headers BLOB NOT NULL,
	tags BLOB,
	acl INTEGER NOT NULL,
	storage_class INTEGER NOT NULL,
	checksum_kind INTEGER NOT NULL,
	etag_policy INTEGER NOT NULL,
	part_set INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	result BLOB
);
CREATE INDEX uploads_open ON uploads (bucket, key, upload_id) WHERE state = 0;
CREATE INDEX uploads_ended ON uploads (state, ended_ms) WHERE state <> 0;

-- Deleted buckets whose open uploads are still to be swept.
CREATE TABLE gone_buckets (
	bucket INTEGER PRIMARY KEY
);

-- `file` names the pack's file once it was written anew without its dead chunks; NULL: it is named by the pack's id. `condemned_ms`: when gc
-- decided that nothing leads to it.
ALTER TABLE packs ADD COLUMN file BLOB;
ALTER TABLE packs ADD COLUMN condemned_ms INTEGER;
ALTER TABLE packs ADD COLUMN created_ms INTEGER NOT NULL DEFAULT 0;
-- Read whole for each pack that gc looks at, and nothing else of the segments.
DROP INDEX segments_pack;
CREATE INDEX segments_pack ON segments (pack, first, count);
