/* Reconstructions of what xet_content.h found. Reads the catalog and the indexes of packs, no
 * content but inline bytes. Internal state is the plan's (reconstruction_plan.h). Blocking reads;
 * one thread at a time. */
#ifndef STORAGE_XET_RECONSTRUCTION_H
#define STORAGE_XET_RECONSTRUCTION_H

#include "storage/core/store.h"
#include "storage/files/xet_content.h"
#include "storage/xet/reconstruction_plan.h"

/* Adds the terms of bytes [from, to) of the content, which lie in it; *out_skip is how many bytes
 * of the first term lie before them. `db` is in the snapshot in which the content was found, and
 * stays in it until reconstruction_place is through: so no chunk goes meanwhile. Nothing for an
 * empty content; not_ready for one whose records have not been made; too_large; corrupt. */
int reconstruction_load(struct reconstruction *plan, struct store *store, struct db *db,
	const struct xet_content *content, uint64_t from, uint64_t to, uint64_t *out_skip,
	struct error *err);
/* All terms are there: merges them and says where in the shown xorbs the pieces lie. */
int reconstruction_place(
	struct reconstruction *plan, struct store *store, bool as_stored, struct error *err);

#endif
