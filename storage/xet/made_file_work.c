/* A work needs no thread of its own:
 *
 *   plan (helper) --> make room (changes) --> decode (helper, in slices) --> add the row (change)
 *
 * Slices give other jobs of the helpers their turns. A slice also ends when the ingest is full; the
 * next one then begins once the ingest has room and the present job has ended (resume). The bytes
 * are cut at the ends of the version's former parts, because that gives the chunks of its file
 * hash; the hash is compared before the row is added. A work that meets a row of the file, in the
 * plan or in the last change, ends with a change that keeps this row longer. */
#include "storage/xet/made_file_work.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/objects/object_read.h"
#include "storage/versions/part.h"
#include "storage/xet/made_file.h"
#include "storage/xet/xet_options.h"

enum {
	WORK_BLOCK_BYTES = 1024 * 1024,
	WORK_SLICE_BYTES = 8 * 1024 * 1024,
	WORK_ARENA_BYTES = 256 * 1024,
	ROOM_FILES = 16 /* of one change */
};

static void submit_job(struct made_file_work *work, void (*run)(struct helper_job *job));
static void made_work_plan(struct helper_job *job);
static struct made_file_work *of_job(struct helper_job *job);
static int look_in_snapshot(struct made_file_work *work, struct error *err);
static int look(struct made_file_work *work, struct db *db, struct error *err);
static void end(struct made_file_work *work, int result);
static int check_size(const struct made_file_work *work, struct error *err);
static void submit_change(struct made_file_work *work,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	void (*done)(struct change *change));
static int made_work_apply_touch(struct change *change, struct db *db, struct error *err);
static int64_t expiry(const struct made_file_work *work);
static void made_work_touched(struct change *change);
static int made_work_apply_room(struct change *change, struct db *db, struct error *err);
static void made_work_room_made(struct change *change);
static void made_work_begin(struct helper_job *job);
static int open_both(struct made_file_work *work, struct error *err);
static void made_work_has_room(void *owner);
static void resume(struct made_file_work *work);
static void made_work_slice(struct helper_job *job);
static enum sink_result read_slice(struct made_file_work *work, struct error *err);
static enum sink_result write_some(struct made_file_work *work, struct error *err);
static void made_work_stored(void *owner);
static int check_hash(const struct made_file_work *work, struct error *err);
static int made_work_place(struct change *change, struct error *err);
static int made_work_apply_file(struct change *change, struct db *db, struct error *err);
static void made_work_committed(struct change *change);

void made_file_work_release(struct made_file_work *work)
{
	part_ends_release(&work->ends);
	arena_free(work->arena);
	free(work->block);
}

void made_file_work_run(struct made_file_work *work)
{
	ASSERT(work->may_continue != NULL && work->reserve != NULL && work->ended != NULL);
	work->begun_us = clock_monotonic_us();
	submit_job(work, made_work_plan);
}

static void submit_job(struct made_file_work *work, void (*run)(struct helper_job *job))
{
	work->job.run = run;
	helpers_submit(store_helpers(work->store), &work->lane, &work->job);
}

static void made_work_plan(struct helper_job *job)
{
	struct made_file_work *const work = of_job(job);
	ASSERT(work->arena == NULL && !work->is_known);
	work->arena = arena_new(WORK_ARENA_BYTES);
	const int is_wanted = look_in_snapshot(work, &work->error);
	if (is_wanted <= 0 && !work->is_known) {
		end(work, is_wanted);
		return;
	}
	if (is_wanted < 0 || (is_wanted == 1 && check_size(work, &work->error) != 0)) {
		end(work, -1);
		return;
	}
	if (is_wanted == 0) {
		submit_change(work, made_work_apply_touch, made_work_touched);
		return;
	}
	ASSERT(work->version.kind == VERSION_DERIVED && work->version.size > 0);
	work->reserved = work->reserve(work, work->version.size);
	submit_change(work, made_work_apply_room, made_work_room_made);
}

static struct made_file_work *of_job(struct helper_job *job)
{
	return (struct made_file_work *)((uint8_t *)job - offsetof(struct made_file_work, job));
}

static int look_in_snapshot(struct made_file_work *work, struct error *err)
{
	struct db *const db = store_snapshot_take(work->store, err);
	if (db == NULL)
		return -1;
	const int result = look(work, db, err);
	store_snapshot_give(work->store, db);
	return result;
}

/* 1: the file must be made. 0: it has a row already (is_known), or nothing is needed. */
static int look(struct made_file_work *work, struct db *db, struct error *err)
{
	struct version *const version = &work->version;
	struct xet_file file;
	const int found = version_find_sequence(db, work->sequence, work->arena, version, err);
	if (found <= 0)
		return found < 0
			? -1
			: error_set(err, ERROR_NO_KEY, "The version does not exist any more.");
	if (version->kind != VERSION_DERIVED || version->size == 0)
		return 0;
	if (!version->has_file_hash)
		return error_set(err, ERROR_INVALID, "The version has no Xet file hash yet.");
	const int known = xet_file_row_find(db, &version->file_hash, &file, err);
	work->is_known = known == 1;
	if (known != 0)
		return known < 0 ? -1 : 0;
	return part_ends_load(db, version, &work->ends, err) != 0 ? -1 : 1;
}

static void end(struct made_file_work *work, int result)
{
	work->failed = result != 0;
	if (work->source != NULL)
		work->source->close(work->source);
	work->source = NULL;
	ingest_free(work->body.ingest);
	work->body.ingest = NULL;
	work->ended(work); /* may free the work */
}

static int check_size(const struct made_file_work *work, struct error *err)
{
	const struct version *const version = &work->version;
	const uint64_t most = store_parts(work->store)->xet->made_max_bytes;
	if (version->size <= most)
		return 0;
	return error_set(err, ERROR_UNSUPPORTED,
		"The object '%.*s' of %llu bytes is stored as a delta of another one, and this server keeps up to %llu"
		" bytes of such objects readable for Xet clients (xet_made_max): get it without Xet.",
		(int)(version->key.len > 200 ? 200 : version->key.len),
		(const char *)version->key.data, (unsigned long long)version->size,
		(unsigned long long)most);
}

static void submit_change(struct made_file_work *work,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	void (*done)(struct change *change))
{
	work->change = (struct change){.apply = apply, .done = done};
	committer_submit(store_committer(work->store), &work->change);
}

static int made_work_apply_touch(struct change *change, struct db *db, struct error *err)
{
	const struct made_file_work *const work = (const struct made_file_work *)change;
	return xet_file_row_touch(db, &work->version.file_hash, true, expiry(work), err);
}

static int64_t expiry(const struct made_file_work *work)
{
	return store_now_ms(work->store) + MADE_FILE_MS;
}

/* Ends a work whose file has a row already. */
static void made_work_touched(struct change *change)
{
	struct made_file_work *const work = (struct made_file_work *)change;
	work->error = change->error;
	end(work, change->failed ? -1 : 0);
}

/* Removes up to ROOM_FILES of the files that were used longest ago. */
static int made_work_apply_room(struct change *change, struct db *db, struct error *err)
{
	struct made_file_work *const work = (struct made_file_work *)change;
	const uint64_t most = store_parts(work->store)->xet->made_max_bytes;
	uint64_t bytes = 0;
	struct xet_file oldest;
	work->damage = (struct xet_file_damage){0};
	if (xet_file_made_bytes(db, &bytes, err) != 0)
		return -1;
	for (int i = 0; i < ROOM_FILES && bytes + work->reserved > most; i++) {
		const int found = xet_file_made_oldest(db, &oldest, &work->damage, err);
		if (found < 0)
			return -1;
		if (found == 0)
			return error_set(err, ERROR_BUSY,
				"Other objects are being made readable for Xet clients: try again.");
		/* The sum is read again, because the size in a damaged row is not reliable. */
		if (xet_file_row_remove(db, &oldest, err) != 0 ||
			xet_file_made_bytes(db, &bytes, err) != 0)
			return -1;
	}
	work->fits = bytes + work->reserved <= most;
	return 0;
}

static void made_work_room_made(struct change *change)
{
	struct made_file_work *const work = (struct made_file_work *)change;
	work->error = change->error;
	if (!change->failed)
		xet_file_tell_damage(work->store, &work->damage);
	if (change->failed)
		end(work, -1);
	else if (!work->fits)
		submit_change(work, made_work_apply_room, made_work_room_made);
	else
		submit_job(work, made_work_begin);
}

static void made_work_begin(struct helper_job *job)
{
	struct made_file_work *const work = of_job(job);
	if (open_both(work, &work->error) != 0)
		end(work, -1);
	else
		made_work_slice(job);
}

static int open_both(struct made_file_work *work, struct error *err)
{
	const struct object object = {
		.sequence = work->sequence, .key = work->version.key, .size = work->version.size};
	const struct ingest_options options = {.packs = store_packs(work->store),
		.never_inline = true,
		.few_segments = true,
		.room = made_work_has_room,
		.done = made_work_stored,
		.owner = work};
	work->source = object_open(work->store, &object, 0, object.size, err);
	if (work->source == NULL)
		return -1;
	work->block = memory_new(WORK_BLOCK_BYTES);
	work->body.ingest = ingest_open(&options, err);
	return work->body.ingest == NULL ? -1 : 0;
}

static void made_work_has_room(void *owner)
{
	resume(owner);
}

/* Called twice for each pause: when the job that found the ingest full ends, and when the ingest
 * has room. The second call starts the next slice. */
static void resume(struct made_file_work *work)
{
	if (atomic_fetch_add(&work->resumes, 1) == 0)
		return;
	atomic_store(&work->resumes, 0);
	submit_job(work, made_work_slice);
}

static void made_work_slice(struct helper_job *job)
{
	struct made_file_work *const work = of_job(job);
	if (!work->may_continue(work)) {
		end(work, error_set(&work->error, ERROR_BUSY, "The server is stopping."));
		return;
	}
	const enum sink_result result = read_slice(work, &work->error);
	if (result == SINK_FAILED)
		end(work, -1);
	else if (result == SINK_WAIT)
		resume(work);
	else if (work->taken < work->version.size)
		submit_job(work, made_work_slice);
	else
		ingest_finish(work->body.ingest);
}

static enum sink_result read_slice(struct made_file_work *work, struct error *err)
{
	for (uint64_t read = 0;;) {
		while (work->untaken.len > 0) {
			const enum sink_result result = write_some(work, err);
			if (result != SINK_TAKEN)
				return result;
		}
		if (read >= WORK_SLICE_BYTES || work->taken == work->version.size)
			return SINK_TAKEN;
		const ptrdiff_t got =
			work->source->read(work->source, work->block, WORK_BLOCK_BYTES, err);
		if (got == 0)
			error_set(err, ERROR_CORRUPT, "Version %lld ended before its size.",
				(long long)work->sequence);
		if (got <= 0)
			return SINK_FAILED;
		work->untaken = span_of(work->block, (size_t)got);
		read += (uint64_t)got;
	}
}

/* Writes up to the end of the present part, and cuts there. */
static enum sink_result write_some(struct made_file_work *work, struct error *err)
{
	const uint64_t left = part_ends_left(&work->ends, work->taken);
	ASSERT(left > 0 && work->untaken.len > 0);
	const struct span piece = span_slice(
		work->untaken, 0, left < work->untaken.len ? (size_t)left : work->untaken.len);
	const enum sink_result result = ingest_write(work->body.ingest, piece, err);
	if (result != SINK_TAKEN)
		return result;
	work->taken += piece.len;
	work->untaken = span_slice(work->untaken, piece.len, SIZE_MAX);
	return piece.len == left && ingest_cut(work->body.ingest, err) != 0 ? SINK_FAILED
									    : SINK_TAKEN;
}

/* The ingest has ended. */
static void made_work_stored(void *owner)
{
	struct made_file_work *const work = owner;
	if (ingest_outcome(work->body.ingest, &work->error) != 0 ||
		check_hash(work, &work->error) != 0) {
		end(work, -1);
		return;
	}
	work->change = (struct change){.place = made_work_place,
		.apply = made_work_apply_file,
		.done = made_work_committed};
	committer_submit(store_committer(work->store), &work->change);
}

static int check_hash(const struct made_file_work *work, struct error *err)
{
	const struct stored_part *const part = ingest_part(work->body.ingest);
	if (part->size == work->version.size &&
		chunk_id_equal(&part->file_hash, &work->version.file_hash))
		return 0;
	return error_set(err, ERROR_CORRUPT,
		"Version %lld does not decode to the file of its Xet hash.",
		(long long)work->sequence);
}

static int made_work_place(struct change *change, struct error *err)
{
	return put_body_place(&((struct made_file_work *)change)->body, err);
}

static int made_work_apply_file(struct change *change, struct db *db, struct error *err)
{
	struct made_file_work *const work = (struct made_file_work *)change;
	const struct stored_part *const part = ingest_part(work->body.ingest);
	struct xet_file file;
	const int found = xet_file_row_find(db, &work->version.file_hash, &file, err);
	if (found < 0)
		return -1;
	work->is_known = found == 1;
	if (work->is_known) /* from another version with the same bytes, or from a shard */
		return error_set(err, ERROR_EXISTS, "The file exists already.");
	file = (struct xet_file){.hash = part->file_hash,
		.size = part->size,
		.is_made = true,
		.expires_ms = expiry(work)};
	if (put_body_record(&work->body, db, err) != 0 ||
		part_set_add_single(db, part->segments, part->segment_count, &file.part_set,
			&file.contents, err) != 0)
		return -1;
	return xet_file_row_add(db, &file, err);
}

static void made_work_committed(struct change *change)
{
	struct made_file_work *const work = (struct made_file_work *)change;
	put_body_settle(&work->body, change);
	if (work->is_known) {
		submit_change(work, made_work_apply_touch, made_work_touched);
		return;
	}
	work->error = change->error;
	if (!change->failed) {
		metrics_add(store_metrics(work->store), METRIC_XET_MADE, 1);
		metrics_work(store_metrics(work->store), METRIC_WORK_XET_MADE, work->begun_us);
		metrics_add(store_metrics(work->store), METRIC_XET_MADE_BYTES,
			(int64_t)work->version.size);
	}
	end(work, change->failed ? -1 : 0);
}
