/* One derived version on its way to a made file (xet_make.h):
 *
 *   plan --change: room--> [helper: decode a slice, again and again] --stored, hash compared--> change: packs, set, row --COMMIT--> end
 *
 * A slice at a time, so that other jobs get their turn. Internal to xet_make. */
#ifndef STORAGE_XET_XET_MAKING_H
#define STORAGE_XET_XET_MAKING_H

#include "storage/core/store.h"
#include "storage/files/xet_file.h"
#include "storage/objects/put_body.h"
#include "storage/versions/part_ends.h"

struct xet_making {
	struct change change; /* first */
	struct helper_job job;
	struct helper_lane lane;
	struct store *store;
	int64_t sequence;
	/* For who owns it: whether to give up, room for that many bytes (of all that is under way,
	 * with these), the end. */
	bool (*goes_on)(struct xet_making *making);
	uint64_t (*reserve)(struct xet_making *making, uint64_t bytes);
	void (*ended)(struct xet_making *making);
	void *owner;
	bool failed; /* once ended */
	struct error error;

	struct version version;
	struct arena *arena; /* its key */
	uint64_t reserved;   /* bytes of everything under way */
	struct part_ends ends;
	struct body_source *source;
	uint8_t *block;
	struct span untaken; /* of the block */
	uint64_t taken;      /* bytes that the ingest has */
	atomic_uint resumes;
	struct put_body body;
	bool fits;                     /* the change has made room */
	struct xet_file_damage damage; /* found on the way */
	bool is_known;                 /* the file is there: nothing to do but to touch it */
};

/* Zeroed, with what the owner says filled in. */
void xet_making_run(struct xet_making *making);
/* Once ended. */
void xet_making_release(struct xet_making *making);

#endif
