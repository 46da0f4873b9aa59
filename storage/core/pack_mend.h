/* Damaged chunks of a pack get sound records of the same bytes: the pack is written anew with them
 * (pack_rewrite.h), its chunks keep their numbers, and all that leads to them reads right again.
 * Internal to storage. */
#ifndef STORAGE_CORE_PACK_MEND_H
#define STORAGE_CORE_PACK_MEND_H

#include "storage/core/store.h"
#include "storage/packs/pack_rewrite.h"

/* On the mend lane, which keeps others off, with the pack referred (pack_store_refer), which keeps
 * gc off. Waits for the disk and the committer. busy: the pack is not sealed yet, and is now being
 * sealed. */
int pack_mend(struct store *store, const struct pack_id *pack, const struct pack_patch *patch,
	struct error *err);

#endif
