#include "storage/run_tables/server_key.h"

#include "storage/run_tables/step_anchor_key.h"
#include "storage/run_tables/view_key.h"

int server_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err)
{
	return step_anchor_key_guard(db, bucket, key, err) != 0
		? -1
		: view_key_guard(db, bucket, key, err);
}
