/* Finds the Xet file hash of one version, and writes hashes in a change. These calls wait for the
 * disk, so only helpers and workers make them. Internal to storage. */
#ifndef STORAGE_FILES_FILE_HASH_FIND_H
#define STORAGE_FILES_FILE_HASH_FIND_H

#include "storage/core/work_pace.h"
#include "storage/versions/version.h"

enum { FILE_HASHES_MAX = 256 /* in one change */ };

struct file_hash_found {
	int64_t version;
	/* The contents that have this hash. The change does nothing when the version has other
	 * contents by then. */
	uint64_t contents;
	struct chunk_id hash;
};
enum file_hash_state {
	FILE_HASH_FOUND,
	FILE_HASH_SETTLED, /* the version has one, is a marker or is gone */
	FILE_HASH_DECODES  /* the version must be decoded, and `pace` was NULL */
};
struct file_hash_facts {
	enum file_hash_state state;
	int64_t modified_ms;          /* with FILE_HASH_DECODES */
	struct file_hash_found found; /* with FILE_HASH_FOUND */
	bool has_hash;                /* with FILE_HASH_SETTLED: the version has `hash` */
	struct chunk_id hash;
};
/* With `pace` NULL nothing is decoded. Fails with corrupt, or with busy when `pace` gives up. */
int file_hash_find(struct store *store, int64_t version, const struct work_pace *pace,
	struct file_hash_facts *out, struct error *err);
/* Writes up to FILE_HASHES_MAX hashes in one change. */
int file_hash_write(
	struct store *store, const struct file_hash_found *found, size_t count, struct error *err);
/* Lists up to `capacity` current versions above `after` that have no hash, in rising order. */
int file_hash_lacking(struct store *store, int64_t after, int64_t *out, size_t capacity,
	size_t *out_count, struct error *err);

#endif
