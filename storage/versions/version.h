/* The table `versions`: one row per object version. Its bytes and what is said of them never
 * change; state, retired_ms, tags and acl may. Each row's checksum covers all but state and
 * retired_ms, and the sum of its contents; it is verified whenever the row is read. Internal to
 * storage. */
#ifndef STORAGE_VERSIONS_VERSION_H
#define STORAGE_VERSIONS_VERSION_H

#include "storage/db/db.h"
#include "storage/versions/object.h"

/* Numbers are stored in the catalog. */
enum version_kind {
	VERSION_INLINE = 0,
	VERSION_SEGMENTS = 1, /* parts of a set */
	/* a set that is one part, of which the version's row says all but the segments */
	VERSION_SINGLE = 2,
	VERSION_DERIVED = 3 /* a recipe (derived.h): part_set 0 */
};
enum version_state {
	VERSION_HIDDEN = 0,  /* its key does not show it: version_is_pinned */
	VERSION_CURRENT = 1, /* markers too */
	VERSION_OLDER = 2    /* its key shows it by id */
};

struct version {
	int64_t sequence;
	uint8_t id[VERSION_ID_BYTES];
	bool has_id; /* false: the null version */
	/* no column: set by version_push and whoever has the bucket's row */
	bool in_versioned_bucket;
	/* no column: set by version_push (adopt_note.h); store_wake once it is committed */
	bool completes_publish;
	int64_t bucket;
	struct span key;
	enum version_state state;
	bool is_marker; /* kind VERSION_INLINE, no bytes, no row in inline_bytes */
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
	/* 0 for VERSION_INLINE, and in a new VERSION_SINGLE until version_push gave it its own
	 * (part.h) */
	int64_t part_set;
	uint64_t contents; /* sum of the part set, inline bytes or recipe */
};

/* Each: 1 found, 0 absent, -1 (corrupt when the row's checksum does not match). With `arena` NULL
 * key, headers and tags stay empty. */
int version_find_current(struct db *db, int64_t bucket, struct span key, struct arena *arena,
	struct version *out, struct error *err);
/* Current, older or hidden, by its id (whether or not its key shows it by that). */
int version_find_id(struct db *db, int64_t bucket, struct span key,
	const uint8_t id[VERSION_ID_BYTES], struct arena *arena, struct version *out,
	struct error *err);
/* The null version, current or older. */
int version_find_null(struct db *db, int64_t bucket, struct span key, struct arena *arena,
	struct version *out, struct error *err);
/* As clients name it: never a hidden one. */
int version_find_ref(struct db *db, int64_t bucket, struct span key, const struct version_ref *ref,
	struct arena *arena, struct version *out, struct error *err);
int version_find_sequence(struct db *db, int64_t sequence, struct arena *arena, struct version *out,
	struct error *err);

/* Puts a new version on top of its key: by the bucket's versioning (s3.md 5.9) the current one is
 * retired, becomes older, or the null version is replaced. Sets version->sequence, has_id, state.
 * The one door for PutObject, CopyObject, CompleteMultipartUpload and markers. `current`: what
 * version_find_current gave, NULL when absent. */
int version_push(struct db *db, enum bucket_versioning versioning, const struct version *current,
	struct version *version, struct error *err);
/* Leaves its key for good: hidden when it is pinned (invariant 6), else removed with what it leads
 * to. When it was current, the newest older one takes its place. `now_ms`: when, for the bucket's
 * totals; 0: not known. */
int version_remove(struct db *db, const struct version *version, int64_t now_ms, struct error *err);
/* A version that a bucket showed which is gone: removed, or hidden while it is pinned, or when its
 * row is damaged (that costs its space and keeps nothing else from being swept). Nothing takes its
 * place. */
int version_abandon(struct db *db, int64_t sequence, struct error *err);
/* A new version that no key shows: it stays while something names it (version_is_pinned). Sets
 * version->sequence, state. */
int version_add_hidden(struct db *db, struct version *version, struct error *err);
/* Whether something keeps the version when its key does not: a step, a fold, a derived version that
 * is made of it, or background work. */
int version_is_pinned(struct db *db, int64_t sequence, bool *out_is_pinned, struct error *err);
/* What named it does no more: removed unless its key still shows it or it is pinned otherwise. A
 * damaged row stays as it is. */
int version_unpin(struct db *db, int64_t sequence, struct error *err);
/* Writes tags and acl of `version` (with all its texts) and the row's checksum anew. */
int version_update(struct db *db, const struct version *version, struct error *err);
/* The hidden version becomes the current one of its key, which must show none. precondition
 * otherwise. */
int version_show(struct db *db, int64_t sequence, struct error *err);
/* The version's bytes come from elsewhere from here on: writes kind, part_set, contents and digest
 * of `version` (with all its texts). What held them before is the caller's to drop. */
int version_replace_contents(struct db *db, const struct version *version, struct error *err);
/* The digest of a version that had none; it stays what it says, so only the row's checksum
 * changes. */
int version_set_digest(
	struct db *db, int64_t sequence, const struct digest128 *digest, struct error *err);
/* The Xet file hash of a version that had none, if its contents are still these. A damaged row
 * stays as it is. */
int version_set_file_hash(struct db *db, int64_t sequence, uint64_t contents,
	const struct chunk_id *hash, struct error *err);
/* Whether the bucket shows any version, current or older, marker or not. */
int version_any_in_bucket(struct db *db, int64_t bucket, bool *out_any, struct error *err);

/* Current versions of a bucket from key `from` (inclusive), in byte order, without markers: db_step
 * the statement and read rows; db_reset it. */
struct db_statement *version_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err);
struct span version_scan_key(struct db_statement *scan); /* until the next step */
void version_scan_entry(struct db_statement *scan, struct object_entry *out); /* all but the key */

#endif
