/* The Xet file hash of one version, and the change that writes some. These calls wait for the disk:
 * helpers and workers alone. Internal to storage. */
#ifndef STORAGE_FILES_FILE_HASH_FIND_H
#define STORAGE_FILES_FILE_HASH_FIND_H

#include "storage/core/work_pace.h"
#include "storage/versions/version.h"

enum { FILE_HASHES_MAX = 256 /* of one change */ };

struct file_hash_found {
	int64_t version;
	uint64_t contents; /* what the hash was found of: the change leaves others alone */
	struct chunk_id hash;
};
enum file_hash_state {
	FILE_HASH_FOUND,
	FILE_HASH_SETTLED, /* it has one, is a marker or gone */
	FILE_HASH_DECODES  /* its bytes must be decoded, and that was not asked for */
};
struct file_hash_facts {
	enum file_hash_state state;
	int64_t modified_ms;          /* FILE_HASH_DECODES */
	struct file_hash_found found; /* FILE_HASH_FOUND */
	bool has_hash;                /* FILE_HASH_SETTLED: it has this one */
	struct chunk_id hash;
};
/* `pace` NULL: nothing is decoded. corrupt; busy when the pace says so. */
int file_hash_find(struct store *store, int64_t version, const struct work_pace *pace,
	struct file_hash_facts *out, struct error *err);
/* Up to FILE_HASHES_MAX, as one change. */
int file_hash_write(
	struct store *store, const struct file_hash_found *found, size_t count, struct error *err);
/* Current versions without a hash above `after`, rising. */
int file_hash_lacking(struct store *store, int64_t after, int64_t *out, size_t capacity,
	size_t *out_count, struct error *err);

#endif
