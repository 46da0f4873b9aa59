/* Keys with their grants, and what buckets allow to others: their sums. The master key must open
 * what is sealed in the keys; where it opens none, it is the wrong one. */
#include "storage/fsck/fsck_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/digest/seal.h"
#include "storage/buckets/bucket_access.h"
#include "storage/buckets/key_row.h"

enum { ARENA_BYTES = 1 << 20, SECRET_MAX_BYTES = 4096 };

static int check_rows(struct fsck *fsck, struct error *err);
static int try_master_key(struct fsck *fsck, struct error *err);
static int find_sealed(struct fsck *fsck, bool *out_has, bool *out_opens, struct error *err);
static bool opens(const struct fsck *fsck, const struct key_record *key);
static int check_keys(struct fsck *fsck, struct error *err);
static int check_next_key(struct fsck *fsck, int64_t *row, struct error *err);
static int check_buckets(struct fsck *fsck, struct error *err);
static int check_next_bucket(struct fsck *fsck, int64_t *bucket, struct error *err);

int fsck_rights(struct fsck *fsck, struct error *err)
{
	if (db_snapshot_begin(fsck->db, err) != 0)
		return -1;
	const int result = check_rows(fsck, err);
	db_snapshot_end(fsck->db);
	return result;
}

static int check_rows(struct fsck *fsck, struct error *err)
{
	int result = try_master_key(fsck, err);
	if (result == 0)
		result = check_keys(fsck, err);
	if (result != 0 && fsck_tell_failure(fsck, FINDING_TABLE, "table keys", err) != 0)
		return -1;
	return check_buckets(fsck, err) != 0
		? fsck_tell_failure(fsck, FINDING_TABLE, "table buckets", err)
		: 0;
}

static int try_master_key(struct fsck *fsck, struct error *err)
{
	bool has = false;
	bool is_opened = false;
	if (!fsck->has_key)
		return 0;
	if (find_sealed(fsck, &has, &is_opened, err) != 0)
		return -1;
	fsck->has_key = is_opened;
	return !has || is_opened
		? 0
		: fsck_tell(fsck, FINDING_MASTER_KEY, fsck->params->master_key,
			  "It opens none of the keys in this catalog: it is the master key of another"
			  " store, or has changed. No server starts with it.",
			  err);
}

/* Whether there are sealed secrets, and one that the master key opens. */
static int find_sealed(struct fsck *fsck, bool *out_has, bool *out_opens, struct error *err)
{
	int64_t row = INT64_MIN;
	int got = 1;
	while (got == 1 && !*out_opens) {
		struct key_record key;
		struct arena *arena = arena_new(ARENA_BYTES);
		got = key_row_next(fsck->db, row, arena, &key, &row, err);
		const bool is_sealed = got == 1 && !key.is_damaged;
		*out_has |= is_sealed;
		*out_opens = is_sealed && opens(fsck, &key);
		arena_free(arena);
	}
	return got < 0 ? -1 : 0;
}

static bool opens(const struct fsck *fsck, const struct key_record *key)
{
	struct buffer plain;
	struct error ignored;
	buffer_init(&plain, SECRET_MAX_BYTES);
	const bool is_opened =
		seal_open(fsck->master_key, key->sealed_secret, &plain, &ignored) == 0;
	if (plain.data != NULL)
		explicit_bzero(plain.data, plain.len);
	buffer_release(&plain);
	return is_opened;
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
	const bool is_locked = got == 1 && fsck->has_key && !key.is_damaged && !opens(fsck, &key);
	if (got == 1 && (key.is_damaged || is_locked)) {
		snprintf(subject, sizeof(subject), "key %.*s", (int)span_slice(key.id, 0, 64).len,
			(const char *)key.id.data);
		if (fsck_tell(fsck, FINDING_RIGHTS, subject,
			    is_locked ? "The master key does not open its secret, so it opens"
					" nothing."
				      : "The key or one of its grants is damaged, so it opens"
					" nothing.",
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
