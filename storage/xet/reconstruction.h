/* Plans the reconstruction of content that xet_content.h found. Reads the catalog and the indexes
 * of packs, and no content except inline bytes. All state is in the plan (reconstruction_plan.h).
 * Waits for the disk; one thread at a time. */
#ifndef STORAGE_XET_RECONSTRUCTION_H
#define STORAGE_XET_RECONSTRUCTION_H

#include "storage/core/store.h"
#include "storage/files/xet_content.h"
#include "storage/xet/reconstruction_plan.h"

/* Bytes [from, to) of a file. */
struct reconstruction_bytes {
	uint64_t from;
	uint64_t to;
	/* set by reconstruction_load: how many bytes of the first term lie before `from` */
	uint64_t skip;
};
/* Adds the terms of these bytes, which must lie in the content. `db` must be in the snapshot that
 * showed the content, and stay in it until reconstruction_place returns, so that no chunk is
 * deleted meanwhile. Adds nothing for empty content. not_ready for a derived version without a made
 * file; too_large; corrupt. */
int reconstruction_load(struct reconstruction *plan, struct store *store, struct db *db,
	const struct xet_content *content, struct reconstruction_bytes *bytes, struct error *err);
/* After the last load: merges the terms into ranges, and computes the offsets of the pieces in the
 * shown xorbs. */
int reconstruction_place(
	struct reconstruction *plan, struct store *store, bool as_stored, struct error *err);

#endif
