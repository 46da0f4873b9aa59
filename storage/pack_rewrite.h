/* A sealed pack is written anew without its dead chunks: into a file of its own, beside the old one, which stays until the catalog names the
 * new one. Chunks keep their numbers and their stored bytes. One pack at a time per caller. */
#ifndef STORAGE_PACK_REWRITE_H
#define STORAGE_PACK_REWRITE_H

#include "storage/pack_store_internal.h"

/* Called between pieces of up to a MiB, with the bytes read and written since: false stops. */
struct pack_pace {
	bool (*spend)(void *owner, size_t bytes);
	void *owner;
};

/* Length that the pack's file would have with these chunks alone (pack_table.h), and that it has. */
int pack_rewrite_measure(struct pack_store *store, const struct pack_id *pack, const uint8_t *live, uint64_t *out_length,
	uint64_t *out_old_length, struct error *err);

/* The index of the new file, which is durable then; NULL with the error set (busy: stopped) and nothing left behind. Every record is
 * verified on its way: corrupt when one is damaged. */
struct pack_index *pack_rewrite(struct pack_store *store, const struct pack_id *pack, const uint8_t *live, const struct pack_pace *pace,
	struct error *err);

#endif
