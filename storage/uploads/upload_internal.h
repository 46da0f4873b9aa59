/* What the modules of upload.h share: the frame of a call that ends in a change. Internal to
 * storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_INTERNAL_H
#define STORAGE_UPLOADS_UPLOAD_INTERNAL_H

#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/objects/object_row.h"
#include "storage/uploads/upload_row.h"
#include "storage/versions/upload_set.h"

struct upload_call {
	struct change change; /* first; and this struct first in its owner */
	struct store *store;
	struct arena *arena;   /* the texts */
	struct upload_ref ref; /* copied */
	void (*done)(void *owner);
	void *owner;
	bool failed;
	struct error error;
};
/* Zeroed memory before. `ref->id` need not be known yet. */
void upload_call_init(struct upload_call *call, struct store *store, const struct upload_ref *ref,
	void (*done)(void *owner), void *owner);
void upload_call_release(struct upload_call *call);
/* The change goes to the committer; its `done`, when NULL, settles. */
void upload_call_submit(struct upload_call *call);
/* The change's end as the call's. */
void upload_call_take_change(struct upload_call *call);
void upload_call_settle(struct upload_call *call); /* the call may be gone when this returns */
/* Before the outcome of others is read: 0, or -1 with the call's failure. */
int upload_call_outcome(const struct upload_call *call, struct error *err);

/* The upload of the call, open, and its bucket as they are now: no_bucket, no_upload. `out_bucket`
 * may be NULL. With `arena` NULL the row's texts stay empty. */
int upload_call_find_open(const struct upload_call *call, struct db *db, struct arena *arena,
	struct bucket *out_bucket, struct upload_row *out, struct error *err);
/* The same through a reader. */
int upload_find_open(struct store *store, const struct upload_ref *ref, struct arena *arena,
	struct upload_row *out, struct error *err);
/* Whether a part may come so: invalid, invalid_request. */
int upload_part_check(const struct upload_row *upload, uint32_t number,
	enum checksum_algorithm declared, struct error *err);
/* As callers see a row. */
struct upload upload_of_row(const struct upload_row *row);
struct uploaded_part uploaded_part_of(
	const struct upload_set_part *part, const struct upload_checksum *checksum);

#endif
