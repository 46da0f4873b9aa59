-- Buckets of a Hub: xorbs and files by their Xet hashes, what was promised of them, totals of buckets. docs/FORMAT.md, "Catalog".

-- What of a pack Xet clients cannot read is asked of each record.
ALTER TABLE packs DROP COLUMN has_private_codecs;

-- Xorbs that clients may name: uploaded ones, and those that an answer about a chunk has named. The pack stays whole until promised_ms.
CREATE TABLE xorbs (
	hash BLOB NOT NULL PRIMARY KEY,
	pack INTEGER NOT NULL,
	first INTEGER NOT NULL,
	count INTEGER NOT NULL,
	promised_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX xorbs_pack ON xorbs (pack, promised_ms);

-- Files that a shard has registered (is_made 0), or that were made of a derived version (is_made 1). Each holds its part set until expires_ms; versions
-- made of it share the set.
CREATE TABLE xet_files (
	hash BLOB NOT NULL PRIMARY KEY,
	size INTEGER NOT NULL,
	part_set INTEGER NOT NULL,
	contents INTEGER NOT NULL,
	is_made INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX xet_files_expiring ON xet_files (expires_ms);
CREATE INDEX xet_files_made ON xet_files (is_made, expires_ms, size);
-- Who has registered a file, and for which bucket.
CREATE TABLE xet_grants (
	file BLOB NOT NULL,
	bucket INTEGER NOT NULL,
	account BLOB NOT NULL,
	expires_ms INTEGER NOT NULL,
	PRIMARY KEY (file, bucket, account)
) WITHOUT ROWID;
CREATE INDEX xet_grants_expiring ON xet_grants (expires_ms);

-- An account's own buckets in the order of their names.
CREATE INDEX buckets_owner ON buckets (account, name);

CREATE INDEX versions_file ON versions (file_hash, bucket) WHERE length(file_hash) > 0;
CREATE INDEX versions_unhashed ON versions (sequence) WHERE state = 1 AND is_marker = 0 AND length(file_hash) = 0;

-- What a bucket shows: current versions that are no markers. Every bucket has a row from its creation on.
CREATE TABLE bucket_totals (
	bucket INTEGER PRIMARY KEY,
	files INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL
);
INSERT INTO bucket_totals (bucket, files, bytes, updated_ms)
	SELECT b.id, count(v.sequence), coalesce(sum(v.size), 0), coalesce(max(v.modified_ms), b.created_ms)
	FROM buckets b LEFT JOIN versions v ON v.bucket = b.id AND v.state = 1 AND v.is_marker = 0 GROUP BY b.id, b.created_ms;

-- While a pack is promised, nothing that leads to it is replaced by a delta: the version is not looked at before this.
ALTER TABLE derive_waiting ADD COLUMN after_ms INTEGER NOT NULL DEFAULT 0;

-- What leads to the pack, by the rows of segments themselves: the sum of 3 * first + count. What the index segments_pack shows must give the same, or gc
-- keeps off.
ALTER TABLE packs ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
-- The column `bytes` and the plus keep this from being read off that index itself.
UPDATE packs SET named = t.total FROM (SELECT pack, sum(3 * first + count) AS total FROM segments WHERE bytes >= 0 GROUP BY +pack) AS t
	WHERE t.pack = packs.number;
