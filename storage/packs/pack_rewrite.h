/* Writes a sealed pack again, without its dead chunks or with other records in place of damaged
 * ones. The new file lies beside the old one, which stays until the catalog names the new one.
 * Chunks keep their numbers. A caller rewrites one pack at a time. */
#ifndef STORAGE_PACKS_PACK_REWRITE_H
#define STORAGE_PACKS_PACK_REWRITE_H

#include "storage/packs/pack_store_parts.h"

/* Called between pieces of up to 1 MiB, with the bytes read and written since the last call. false
 * stops the rewrite. */
struct pack_pace {
	bool (*spend)(void *owner, size_t bytes);
	void *owner;
};

/* Gives the length that the pack's file would have with these chunks alone (pack_table.h), and the
 * present one. */
int pack_rewrite_measure(struct pack_store *store, const struct pack_id *pack, const uint8_t *live,
	uint64_t *out_length, uint64_t *out_old_length, struct error *err);

/* Returns the index of the new file, which is then durable. NULL with the error set (busy:
 * stopped), and without a new file. Every record is verified on its way: corrupt when one is
 * damaged. */
struct pack_index *pack_rewrite(struct pack_store *store, const struct pack_id *pack,
	const uint8_t *live, const struct pack_pace *pace, struct error *err);

/* Verified records of the same chunks. */
struct pack_patch {
	const uint32_t *numbers; /* chunk numbers in the pack, rising */
	uint32_t count;
	/* one for each number; `offset` is that of the record in `bytes` */
	const struct pack_entry *entries;
	struct span bytes;
};
/* The same with all chunks that the old file has, and with the patch's records. Other records are
 * copied as they are, right or wrong. Records that the file lacks become zeros, which no checksum
 * fits. If the file has a record but cannot be read, it fails and may be tried again. corrupt when
 * the patch's chunks are not those of the pack, or when even the index cannot be read; busy while
 * the pack grows. */
struct pack_index *pack_rewrite_patched(struct pack_store *store, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err);

#endif
