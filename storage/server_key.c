#include "storage/server_key.h"

#include "storage/step_anchor.h"
#include "storage/view_job.h"

int server_key_guard(struct db *const db, const int64_t bucket, const struct span key, struct error *const err)
{
	return step_anchor_guard(db, bucket, key, err) != 0 ? -1 : view_guard(db, bucket, key, err);
}
