/* Pack files that a catalog made from the journal does not know, or knows shorter than they are:
 * they were written after its last change. Nothing names their chunks, but a client may have
 * been told of them. So they get rows, and each of their xorbs a full promise. One thread.
 * Internal to storage. */
#ifndef STORAGE_REBUILD_PACK_ADOPTION_H
#define STORAGE_REBUILD_PACK_ADOPTION_H

#include "storage/core/store_row.h"
#include "storage/packs/backend.h"

struct pack_adoption {
	size_t named;   /* packs that the catalog names */
	size_t missing; /* those of them without a file */
	size_t found;   /* files without a row that got one, or moved a row to them */
	size_t grown;   /* packs that are longer than the catalog knew */
	size_t left;    /* files that are not whole packs of this store: they stay as they are */
	uint64_t promised_xorbs;
	uint32_t life; /* the newest of the files */
};
/* In a transaction of `db`. Changes no file. */
int pack_adoption_run(struct db *db, struct backend *backend, const struct store_identity *store,
	int64_t promised_ms, struct pack_adoption *out, struct error *err);

#endif
