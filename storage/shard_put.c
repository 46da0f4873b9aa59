/* open --write*--> finish --spooled--> slices of the check on a helper --true--> changes, one behind the other: promises, then files --> done */
#include "storage/shard_put.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/committer.h"
#include "storage/part.h"
#include "storage/scratch.h"
#include "storage/shard_check.h"
#include "storage/shard_spool.h"
#include "storage/store_internal.h"
#include "storage/xet_file.h"
#include "storage/xorb_row.h"

enum { CHANGE_ROWS = 800, FILE_ROWS = 5, PROMISE_SLACK = 64 };

struct shard_put {
	struct change change; /* first */
	struct helper_lane lane;
	struct helper_job job;
	struct store *store;
	int64_t bucket_id;
	struct span account;
	void (*room)(void *owner);
	void (*done)(void *owner);
	void *owner;
	struct shard_spool *spool; /* until it was checked */
	struct shard_check *check;
	bool in_doubt;
	/* the committer's, while changes run */
	size_t xorb;  /* the next one to promise */
	size_t file;  /* the next one to register */
	size_t next_xorb;
	size_t next_file;
	size_t next_new_files;
	struct shard_report report;
	bool failed;
	struct error error;
};

static void settle(struct shard_put *const put)
{
	put->done(put->owner); /* `put` may be gone when this returns */
}

static void settle_failed(struct shard_put *const put, const struct error *const err)
{
	put->failed = true;
	put->error = *err;
	scratch_hide_paths(put->store, &put->error);
	settle(put);
}

static int64_t now_ms(const struct shard_put *const put)
{
	return store_clock(put->store)->wall_ms(store_clock(put->store));
}

/* Most were promised a moment ago, when they came. */
static int promise_xorbs(struct shard_put *const put, struct db *const db, size_t *const rows, struct error *const err)
{
	size_t count;
	const struct xorb *const xorbs = shard_check_xorbs(put->check, &count);
	const int64_t promise_ms = store_xet_options(put->store)->upload_promise_ms;
	const int64_t until_ms = now_ms(put) + promise_ms;
	for (put->next_xorb = put->xorb; put->next_xorb < count && *rows < CHANGE_ROWS; put->next_xorb++) {
		struct xorb xorb = xorbs[put->next_xorb];
		if (xorb.promised_ms >= until_ms - promise_ms / PROMISE_SLACK)
			continue;
		xorb.promised_ms = until_ms;
		++*rows;
		if (xorb_row_put(db, &xorb, err) != 0)
			return -1;
	}
	return 0;
}

static int add_file(struct shard_put *const put, struct db *const db, const struct shard_check_file *const file, const int64_t expires_ms,
	struct error *const err)
{
	struct xet_file row = {.hash = file->hash, .size = file->size, .expires_ms = expires_ms};
	const struct segment *const segments = shard_check_segments(put->check) + file->first_segment;
	if (part_set_add_single(db, segments, file->segment_count, &row.part_set, &row.contents, err) != 0 || xet_file_row_add(db, &row, err) != 0)
		return -1;
	put->next_new_files++;
	return 0;
}

static int register_file(struct shard_put *const put, struct db *const db, const struct shard_check_file *const file, struct error *const err)
{
	const int64_t expires_ms = now_ms(put) + XET_GRANT_MS;
	struct xet_file known;
	const int found = xet_file_row_find(db, &file->hash, &known, err);
	if (found < 0)
		return -1;
	const int kept = found == 1 ? xet_file_row_touch(db, &file->hash, false, expires_ms, err) : add_file(put, db, file, expires_ms, err);
	return kept != 0 ? -1 : xet_grant_row_put(db, &file->hash, put->bucket_id, put->account, expires_ms, err);
}

/* One change's worth: up to about CHANGE_ROWS, but one file at least. */
static int apply(struct change *const change, struct db *const db, struct error *const err)
{
	struct shard_put *const put = (struct shard_put *)change;
	size_t count;
	size_t rows = 0;
	const struct shard_check_file *const files = shard_check_files(put->check, &count);
	put->next_file = put->file;
	put->next_new_files = put->report.new_files;
	if (promise_xorbs(put, db, &rows, err) != 0)
		return -1;
	for (; put->next_file < count && rows < CHANGE_ROWS; put->next_file++) {
		rows += FILE_ROWS + files[put->next_file].segment_count;
		if (register_file(put, db, &files[put->next_file], err) != 0)
			return -1;
	}
	return 0;
}

static bool is_finished(const struct shard_put *const put)
{
	size_t xorbs;
	size_t files;
	shard_check_xorbs(put->check, &xorbs);
	shard_check_files(put->check, &files);
	return put->xorb == xorbs && put->file == files;
}

static void committed(struct change *const change)
{
	struct shard_put *const put = (struct shard_put *)change;
	put->in_doubt |= change->in_doubt;
	if (change->failed) {
		settle_failed(put, &change->error);
		return;
	}
	put->xorb = put->next_xorb;
	put->file = put->next_file;
	put->report.new_files = put->next_new_files;
	if (is_finished(put))
		settle(put);
	else
		committer_submit(store_committer(put->store), &put->change);
}

/* The spool goes while there is a thread that may wait for the disk. */
static void check_ended(struct shard_put *const put, const int result, const struct error *const err)
{
	shard_spool_free(put->spool);
	put->spool = NULL;
	if (result != 0) {
		settle_failed(put, err);
		return;
	}
	shard_check_files(put->check, &put->report.files);
	shard_check_xorbs(put->check, &put->report.xorbs);
	if (is_finished(put)) { /* nothing but empty files */
		settle(put);
		return;
	}
	put->change.apply = apply;
	put->change.done = committed;
	committer_submit(store_committer(put->store), &put->change);
}

static void run_slice(struct helper_job *const job)
{
	struct shard_put *const put = (struct shard_put *)((uint8_t *)job - offsetof(struct shard_put, job));
	struct error err = {0};
	const int result = shard_check_step(put->check, &err);
	if (result == 1)
		helpers_submit(store_helpers(put->store), &put->lane, &put->job);
	else
		check_ended(put, result, &err);
}

static void spooled(void *const owner)
{
	struct shard_put *const put = owner;
	struct error err = {0};
	struct span bytes;
	if (shard_spool_bytes(put->spool, &bytes, &err) != 0) {
		check_ended(put, -1, &err);
		return;
	}
	put->check = shard_check_new(put->store, bytes);
	put->job.run = run_slice;
	helpers_submit(store_helpers(put->store), &put->lane, &put->job);
}

static void has_room(void *const owner)
{
	const struct shard_put *const put = owner;
	if (put->room != NULL)
		put->room(put->owner);
}

struct shard_put *shard_put_open(struct store *const store, const struct shard_put_params *const params)
{
	struct shard_put *const put = memory_new(sizeof *put);
	put->store = store;
	put->bucket_id = params->bucket_id;
	put->account = span_of(memory_copy(params->account.data, params->account.len), params->account.len);
	put->room = params->room;
	put->done = params->done;
	put->owner = params->owner;
	put->spool = shard_spool_new(store, has_room, put);
	return put;
}

enum sink_result shard_put_write(struct shard_put *const put, const struct span bytes, struct error *const err)
{
	return shard_spool_write(put->spool, bytes, err);
}

void shard_put_finish(struct shard_put *const put)
{
	shard_spool_finish(put->spool, spooled);
}

int shard_put_outcome(const struct shard_put *const put, struct shard_report *const out, struct error *const err)
{
	if (put->failed)
		*err = put->error;
	else
		*out = put->report;
	return put->failed ? -1 : 0;
}

void shard_put_free(struct shard_put *const put)
{
	if (put == NULL)
		return;
	shard_spool_free(put->spool);
	shard_check_free(put->check, put->in_doubt);
	free((uint8_t *)put->account.data);
	free(put);
}
