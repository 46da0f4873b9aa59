/* The table `versions`: one immutable row per object version; only is_current changes. Each row's checksum covers its fields and the sum of
 * its contents, and is verified whenever the row is read. Internal to storage. */
#ifndef STORAGE_VERSION_H
#define STORAGE_VERSION_H

#include "storage/db.h"
#include "storage/object.h"

enum version_kind { VERSION_INLINE = 0, VERSION_SEGMENTS = 1 };

struct version {
	int64_t sequence;
	uint8_t id[VERSION_ID_BYTES];
	int64_t bucket;
	struct span key;
	bool is_current;
	enum version_kind kind;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES];
	struct digest128 digest;
	struct chunk_id file_hash;
	int64_t modified_ms;
	struct span headers;  /* a header_blob */
	int64_t part_set;     /* of VERSION_SEGMENTS */
	uint64_t contents;    /* sum of the part set or inline bytes */
};

/* Each: 1 found, 0 absent, -1 (corrupt when the row's checksum does not match). With `arena` NULL key and headers stay empty. */
int version_find_current(struct db *db, int64_t bucket, struct span key, struct arena *arena, struct version *out, struct error *err);
int version_find_id(struct db *db, int64_t bucket, struct span key, const uint8_t id[VERSION_ID_BYTES], struct version *out,
	struct error *err);
int version_find_sequence(struct db *db, int64_t sequence, struct arena *arena, struct version *out, struct error *err);
/* As the current one of its key, which must have none; sets version->sequence. */
int version_add(struct db *db, struct version *version, struct error *err);
/* Current no longer: hidden when a step names it (invariant 6), else removed with what it leads to. */
int version_retire(struct db *db, const struct version *version, struct error *err);
/* A step named it and does no more: removed unless it is current or another step names it. */
int version_unpin(struct db *db, int64_t sequence, struct error *err);
/* Whether the bucket has a current version. */
int version_any_in_bucket(struct db *db, int64_t bucket, bool *out_any, struct error *err);

/* Current versions of a bucket from key `from` (inclusive), in byte order: db_step the statement and read rows; db_reset it. */
struct db_statement *version_scan(struct db *db, int64_t bucket, struct span from, struct error *err);
struct span version_scan_key(struct db_statement *scan); /* until the next step */
void version_scan_entry(struct db_statement *scan, struct object_entry *out); /* all but the key */

#endif
