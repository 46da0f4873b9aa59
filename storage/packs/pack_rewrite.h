/* A sealed pack is written anew, without its dead chunks or with other records in place of damaged
 * ones: into a file of its own, beside the old one, which stays until the catalog names the new
 * one. Chunks keep their numbers. One pack at a time per caller. */
#ifndef STORAGE_PACKS_PACK_REWRITE_H
#define STORAGE_PACKS_PACK_REWRITE_H

#include "storage/packs/pack_store_parts.h"

/* Called between pieces of up to a MiB, with the bytes read and written since: false stops. */
struct pack_pace {
	bool (*spend)(void *owner, size_t bytes);
	void *owner;
};

/* Length that the pack's file would have with these chunks alone (pack_table.h), and that it
 * has. */
int pack_rewrite_measure(struct pack_store *store, const struct pack_id *pack, const uint8_t *live,
	uint64_t *out_length, uint64_t *out_old_length, struct error *err);

/* The index of the new file, which is durable then; NULL with the error set (busy: stopped) and
 * nothing left behind. Every record is verified on its way: corrupt when one is damaged. */
struct pack_index *pack_rewrite(struct pack_store *store, const struct pack_id *pack,
	const uint8_t *live, const struct pack_pace *pace, struct error *err);

/* Records of the same chunks, verified. */
struct pack_patch {
	const uint32_t *numbers; /* of chunks of the pack, rising */
	uint32_t count;
	const struct pack_entry *entries; /* of each; its offset is that of the record in `bytes` */
	struct span bytes;
};
/* The same with all chunks that the old file has, and with the patch's records. The others are
 * copied as they lie, right or not; what the file has not becomes zeros, which no checksum fits.
 * Fails, and may be tried again, when it has them and cannot be read. corrupt when the pack has
 * other chunks there than the patch, or when not even its index can be read; busy while it
 * grows. */
struct pack_index *pack_rewrite_patched(struct pack_store *store, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err);

#endif
