-- The console: who is signed in, when keys were last used, and who did what. docs/FORMAT.md, "Catalog".
-- The tables are counted anew; the number of the last change stays.
UPDATE sums SET tables = x'';

-- Sessions that a sign-in made. `id` is an HMAC with the secret of the key, so a cookie cannot be made from it.
CREATE TABLE sessions (
	id BLOB NOT NULL PRIMARY KEY,
	key_id BLOB NOT NULL,
	made_ms INTEGER NOT NULL,
	seen_ms INTEGER NOT NULL,
	ends_ms INTEGER NOT NULL,
	address BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_ending ON sessions (ends_ms);
CREATE INDEX sessions_key ON sessions (key_id, seen_ms);

-- Links that sign in once. `id` is the SHA-256 of the code in the link.
CREATE TABLE session_links (
	id BLOB NOT NULL PRIMARY KEY,
	key_id BLOB NOT NULL,
	ends_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_links_ending ON session_links (ends_ms);

-- When a key was last used, to about a minute.
CREATE TABLE key_uses (
	key_id BLOB NOT NULL PRIMARY KEY,
	used_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit (
	id INTEGER PRIMARY KEY,
	time_ms INTEGER NOT NULL,
	key_id BLOB NOT NULL,
	address BLOB NOT NULL,
	action BLOB NOT NULL,
	subject BLOB NOT NULL,
	detail BLOB NOT NULL,
	request_id BLOB NOT NULL
);
CREATE INDEX audit_refused ON audit (id) WHERE action = x'7369676e5f696e5f72656675736564';
