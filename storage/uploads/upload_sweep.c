#include "storage/uploads/upload_sweep.h"

#include "storage/uploads/upload_row.h"
#include "storage/versions/bucket_sweep.h"
#include "storage/versions/upload_set.h"

enum { EXPIRED_ROWS = 256, ORPHAN_UPLOADS = 64 };

static int sweep_unlisted(struct db *db, bool *out_found, struct error *err);
static int sweep_orphans(struct db *db, bool *out_found, struct error *err);
static int sweep_versions(struct db *db, int64_t bucket, struct error *err);
static int sweep_expired(struct db *db, int64_t now_ms, bool *out_found, struct error *err);

int upload_sweep(struct db *db, int64_t now_ms, bool *out_found, struct error *err)
{
	if (sweep_unlisted(db, out_found, err) != 0)
		return -1;
	if (*out_found)
		return 0;
	if (sweep_orphans(db, out_found, err) != 0)
		return -1;
	return *out_found ? 0 : sweep_expired(db, now_ms, out_found, err);
}

int upload_sweep_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t ignored[3];
	int found = upload_row_find_trimming(db, &ignored[0], &ignored[1], err);
	if (found == 0)
		found = upload_row_find_orphan(db, &ignored[0], &ignored[1], &ignored[2], err);
	if (found == 0)
		found = upload_row_find_expired(db, now_ms - UPLOAD_KEPT_MS, &ignored[0], err);
	*out_has = found == 1;
	return found < 0 ? -1 : 0;
}

static int sweep_unlisted(struct db *db, bool *out_found, struct error *err)
{
	int64_t number = 0;
	int64_t set = 0;
	bool more = false;
	const int found = upload_row_find_trimming(db, &number, &set, err);
	*out_found = found == 1;
	if (found != 1)
		return found;
	if (upload_set_trim(db, set, PART_SWEEP_ROWS, &more, err) != 0)
		return -1;
	return more ? 0 : upload_row_set_trimmed(db, number, err);
}

static int sweep_orphans(struct db *db, bool *out_found, struct error *err)
{
	int64_t bucket = 0;
	int64_t number = 0;
	int64_t set = 0;
	int found = 1;
	*out_found = false;
	for (int i = 0; i < ORPHAN_UPLOADS; i++) {
		found = upload_row_find_orphan(db, &bucket, &number, &set, err);
		if (found != 1)
			break;
		*out_found = true;
		if (number == 0)
			return sweep_versions(db, bucket, err);
		if (part_set_drop(db, set, err) != 0 || upload_row_remove(db, number, err) != 0)
			return -1;
	}
	return found < 0 ? -1 : 0;
}

static int sweep_versions(struct db *db, int64_t bucket, struct error *err)
{
	bool more = false;
	if (bucket_sweep_versions(db, bucket, &more, err) != 0)
		return -1;
	return more ? 0 : upload_row_forget_bucket(db, bucket, err);
}

static int sweep_expired(struct db *db, int64_t now_ms, bool *out_found, struct error *err)
{
	int64_t number = 0;
	int found = 1;
	*out_found = false;
	for (int i = 0; i < EXPIRED_ROWS; i++) {
		found = upload_row_find_expired(db, now_ms - UPLOAD_KEPT_MS, &number, err);
		if (found != 1)
			break;
		*out_found = true;
		if (upload_row_remove(db, number, err) != 0)
			return -1;
	}
	return found < 0 ? -1 : 0;
}
