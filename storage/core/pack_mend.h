/* Mends damaged chunks of a pack: the pack is written again (pack_rewrite.h) with sound records of
 * the same bytes. Its chunks keep their numbers, so all rows that lead to them stay right. Internal
 * to storage. */
#ifndef STORAGE_CORE_PACK_MEND_H
#define STORAGE_CORE_PACK_MEND_H

#include "storage/core/store.h"
#include "storage/packs/pack_rewrite.h"

/* Runs on the mend lane, so that no other mend touches the pack. The caller holds a reference to
 * the pack (pack_store_refer), so that gc does not touch it. Waits for the disk and the committer.
 * busy: the pack was not sealed yet, and is being sealed now. */
int pack_mend(struct store *store, const struct pack_id *pack, const struct pack_patch *patch,
	struct error *err);

#endif
