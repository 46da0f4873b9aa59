/* Keys with their grants, and what buckets allow to others: their sums. */
#include "storage/fsck/fsck_internal.h"

#include <stdio.h>

#include "storage/buckets/bucket_access.h"
#include "storage/buckets/key_row.h"

enum { ARENA_BYTES = 1 << 20 };

static int check_keys(struct fsck *fsck, struct error *err);
static int check_next_key(struct fsck *fsck, int64_t *row, struct error *err);
static int check_buckets(struct fsck *fsck, struct error *err);
static int check_next_bucket(struct fsck *fsck, int64_t *bucket, struct error *err);

int fsck_rights(struct fsck *fsck, struct error *err)
{
	if (db_snapshot_begin(fsck->db, err) != 0)
		return -1;
	int result = check_keys(fsck, err);
	if (result != 0)
		result = fsck_tell_failure(fsck, FINDING_TABLE, "table keys", err);
	if (result == 0)
		result = check_buckets(fsck, err);
	if (result != 0)
		result = fsck_tell_failure(fsck, FINDING_TABLE, "table buckets", err);
	db_snapshot_end(fsck->db);
	return result;
}

static int check_keys(struct fsck *fsck, struct error *err)
{
	int64_t row = INT64_MIN;
	int got = 1;
	while (got == 1)
		got = check_next_key(fsck, &row, err);
	return got;
}

/* 1, 0 at the end, -1. The key's id may be damaged itself, so only its printable bytes are told. */
static int check_next_key(struct fsck *fsck, int64_t *row, struct error *err)
{
	char subject[FINDING_SUBJECT_BYTES];
	struct key_record key;
	struct arena *arena = arena_new(ARENA_BYTES);
	int got = key_row_next(fsck->db, *row, arena, &key, row, err);
	if (got == 1 && key.is_damaged) {
		snprintf(subject, sizeof(subject), "key %.*s", (int)span_slice(key.id, 0, 64).len,
			(const char *)key.id.data);
		if (fsck_tell(fsck, FINDING_RIGHTS, subject,
			    "The key or one of its grants is damaged, so it opens nothing.",
			    err) != 0)
			got = -1;
	}
	arena_free(arena);
	return got;
}

static int check_buckets(struct fsck *fsck, struct error *err)
{
	int64_t bucket = INT64_MIN;
	int got = 1;
	while (got == 1)
		got = check_next_bucket(fsck, &bucket, err);
	return got;
}

static int check_next_bucket(struct fsck *fsck, int64_t *bucket, struct error *err)
{
	char subject[FINDING_SUBJECT_BYTES];
	struct span name = {0};
	struct arena *arena = arena_new(ARENA_BYTES);
	int got = bucket_access_next_wrong(fsck->db, *bucket, arena, bucket, &name, err);
	if (got == 1) {
		snprintf(subject, sizeof(subject), "bucket %.*s", (int)name.len,
			(const char *)name.data);
		if (fsck_tell(fsck, FINDING_RIGHTS, subject,
			    "What it allows to others is damaged, so it is private.", err) != 0)
			got = -1;
	}
	arena_free(arena);
	return got;
}
