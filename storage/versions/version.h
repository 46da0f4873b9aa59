/* The table `versions`: one row per object version. Its bytes never change, nor what is said of
 * them; state, retired_ms, tags and acl may. The row's checksum covers everything but state and
 * retired_ms, and with `contents` the sum of its bytes. It is verified whenever the row is read.
 * Internal to storage. */
#ifndef STORAGE_VERSIONS_VERSION_H
#define STORAGE_VERSIONS_VERSION_H

#include "storage/db/db.h"
#include "storage/versions/object.h"

/* Numbers are stored in the catalog. */
enum version_kind {
	VERSION_INLINE = 0,
	VERSION_SEGMENTS = 1, /* parts of a set */
	/* A set of one part; the version's row says everything of it but the segments. */
	VERSION_SINGLE = 2,
	VERSION_DERIVED = 3 /* a recipe (derived.h); part_set is 0 */
};
enum version_state {
	VERSION_HIDDEN = 0,  /* its key does not show it; it stays while something names it */
	VERSION_CURRENT = 1, /* markers too */
	VERSION_OLDER = 2    /* its key shows it by id */
};

struct version {
	int64_t sequence;
	uint8_t id[VERSION_ID_BYTES];
	bool has_id; /* false: the null version */
	/* Not a column: set by version_push and by callers that have the bucket's row. */
	bool in_versioned_bucket;
	/* Not a column: set by version_push (adopt_note.h). Once the version is committed,
	 * store_wake tells the step worker. */
	bool completes_publish;
	int64_t bucket;
	struct span key;
	enum version_state state;
	bool is_marker; /* then kind is VERSION_INLINE, without bytes or a row in inline_bytes */
	enum version_kind kind;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES];
	bool has_digest;
	struct digest128 digest;
	bool has_file_hash;
	struct chunk_id file_hash;
	struct checksum checksum;
	uint32_t part_count;
	enum storage_class storage_class;
	enum canned_acl acl;
	int64_t modified_ms;
	int64_t retired_ms;
	struct span headers; /* a header_blob */
	struct span tags;    /* a tag_set */
	/* 0 for VERSION_INLINE, and in a new VERSION_SINGLE until it is added and gets its own
	 * (part.h). */
	int64_t part_set;
	uint64_t contents; /* sum of the part set, inline bytes or recipe */
};

/* Each returns 1 found, 0 absent, -1 (corrupt when the row's checksum does not match). With `arena`
 * NULL, key, headers and tags stay empty. */
int version_find_current(struct db *db, int64_t bucket, struct span key, struct arena *arena,
	struct version *out, struct error *err);
/* By its id: current, older or hidden, whether or not its key shows it under that id. */
int version_find_id(struct db *db, struct object_place place, const uint8_t id[VERSION_ID_BYTES],
	struct arena *arena, struct version *out, struct error *err);
/* The null version, current or older. */
int version_find_null(struct db *db, int64_t bucket, struct span key, struct arena *arena,
	struct version *out, struct error *err);
/* As clients name it; never a hidden version. */
int version_find_ref(struct db *db, struct object_place place, const struct version_ref *ref,
	struct arena *arena, struct version *out, struct error *err);
int version_find_sequence(struct db *db, int64_t sequence, struct arena *arena, struct version *out,
	struct error *err);
/* The same for a version that another row names: damaged when there is none. 0, -1. */
int version_need_sequence(struct db *db, int64_t sequence, struct arena *arena, struct version *out,
	struct error *err);

/* Puts a new version on top of its key. By the bucket's versioning the current version becomes
 * older, or the null version is replaced. Sets version->sequence, has_id and state. PutObject,
 * CopyObject, CompleteMultipartUpload and delete markers all go through here. `current` is what
 * version_find_current gave, NULL when there is none. */
int version_push(struct db *db, enum bucket_versioning versioning, const struct version *current,
	struct version *version, struct error *err);
/* Takes the version off its key for good: hides it while something names it (invariant 6), else
 * removes it with its bytes. When it was current, the newest older version becomes current.
 * `now_ms` is the time for the bucket's totals; 0: not known. */
int version_remove(struct db *db, const struct version *version, int64_t now_ms, struct error *err);
/* Takes away a version whose bucket is gone: removes it, or hides it when something names it or its
 * row is damaged. A damaged row costs its space and keeps nothing else from being swept. No other
 * version takes its place. */
int version_abandon(struct db *db, int64_t sequence, struct error *err);
/* Adds a version that no key shows. It stays while something names it (version_is_named). Sets
 * version->sequence and state. */
int version_add_hidden(struct db *db, struct version *version, struct error *err);
/* Whether something names the version, so that it stays when its key does not show it: a step, a
 * fold, a derived version that is made of it, or background work. */
int version_is_named(struct db *db, int64_t sequence, bool *out_is_named, struct error *err);
/* To be called when something does not name the version any more. Removes it unless its key shows
 * it or something else names it. A damaged row stays as it is. */
int version_drop_unless_named(struct db *db, int64_t sequence, struct error *err);
/* Writes tags and acl of `version`, which must have all its texts, and the row's new checksum. */
int version_update(struct db *db, const struct version *version, struct error *err);
/* Makes the hidden version the current one of its key; precondition when its key shows a
 * version. */
int version_show(struct db *db, int64_t sequence, struct error *err);
/* The version's bytes come from elsewhere from here on. Writes kind, part_set, contents and digest
 * of `version`, which must have all its texts. The caller drops what held the bytes before. */
int version_replace_contents(struct db *db, const struct version *version, struct error *err);
/* Sets the digest of a version that has none. */
int version_set_digest(
	struct db *db, int64_t sequence, const struct digest128 *digest, struct error *err);
/* Sets the Xet file hash of a version that has none, if its contents are still these. A damaged row
 * stays as it is. */
int version_set_file_hash(struct db *db, int64_t sequence, uint64_t contents,
	const struct chunk_id *hash, struct error *err);
/* Whether the bucket shows any version, current or older, marker or not. */
int version_any_in_bucket(struct db *db, int64_t bucket, bool *out_any, struct error *err);

/* Current versions of a bucket from key `from` (inclusive) on, in byte order, without markers.
 * db_step the statement, read its rows and db_reset it. */
struct db_statement *version_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err);
struct span version_scan_key(struct db_statement *scan); /* until the next step */
void version_scan_entry(struct db_statement *scan, struct object_entry *out); /* all but the key */

/* Older versions of a bucket, delete markers too, in the same way: from key `from` (inclusive) on,
 * the newest first within a key. */
struct version_older {
	struct span key; /* until the next step */
	int64_t sequence;
	uint64_t size;
};
struct db_statement *version_older_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err);
/* Only those of this key that come behind the version with this sequence. */
struct db_statement *version_older_scan_behind(
	struct db *db, struct object_place place, int64_t sequence, struct error *err);
void version_older_read(struct db_statement *scan, struct version_older *out);

#endif
