-- The tables are counted anew; the number of the last change stays.
UPDATE sums SET tables = x'';

-- The bytes of shared packs that are not stored in their far place yet: of each pack the bytes of its file, from 0 to the length in `packs`, in rows that
-- follow each other. The rows go with the change that seals the pack.
CREATE TABLE pack_staged (
	id INTEGER PRIMARY KEY,
	pack BLOB NOT NULL,
	start INTEGER NOT NULL,
	bytes BLOB NOT NULL,
	UNIQUE (pack, start)
);
