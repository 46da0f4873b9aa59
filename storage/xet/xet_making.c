#include "storage/xet/xet_making.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/objects/object_read.h"
#include "storage/versions/part.h"
#include "storage/xet/xet_make.h"
#include "storage/xet/xet_options.h"

enum {
	MAKING_BLOCK_BYTES = 1024 * 1024,
	MAKING_SLICE_BYTES = 8 * 1024 * 1024,
	MAKING_ARENA_BYTES = 256 * 1024,
	ROOM_FILES = 16 /* of one change */
};

static void submit_job(struct xet_making *making, void (*run)(struct helper_job *job));
static void making_plan(struct helper_job *job);
static struct xet_making *of_job(struct helper_job *job);
static int look_in_snapshot(struct xet_making *making, struct error *err);
static int look(struct xet_making *making, struct db *db, struct error *err);
static void end(struct xet_making *making, int result);
static int check_size(const struct xet_making *making, struct error *err);
static void submit_change(struct xet_making *making,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	void (*done)(struct change *change));
static int making_apply_touch(struct change *change, struct db *db, struct error *err);
static int64_t expiry(const struct xet_making *making);
static void making_touched(struct change *change);
static int making_apply_room(struct change *change, struct db *db, struct error *err);
static void making_room_made(struct change *change);
static void making_begin(struct helper_job *job);
static int open_both(struct xet_making *making, struct error *err);
static void making_has_room(void *owner);
static void resume(struct xet_making *making);
static void making_slice(struct helper_job *job);
static enum sink_result read_slice(struct xet_making *making, struct error *err);
static enum sink_result write_some(struct xet_making *making, struct error *err);
static void making_stored(void *owner);
static int check_hash(const struct xet_making *making, struct error *err);
static int making_place(struct change *change, struct error *err);
static int making_apply_file(struct change *change, struct db *db, struct error *err);
static void making_committed(struct change *change);

void xet_making_release(struct xet_making *making)
{
	part_ends_release(&making->ends);
	arena_free(making->arena);
	free(making->block);
}

void xet_making_run(struct xet_making *making)
{
	submit_job(making, making_plan);
}

static void submit_job(struct xet_making *making, void (*run)(struct helper_job *job))
{
	making->job.run = run;
	helpers_submit(store_helpers(making->store), &making->lane, &making->job);
}

static void making_plan(struct helper_job *job)
{
	struct xet_making *const making = of_job(job);
	making->arena = arena_new(MAKING_ARENA_BYTES);
	const int is_wanted = look_in_snapshot(making, &making->error);
	if (is_wanted <= 0 && !making->is_known) {
		end(making, is_wanted);
		return;
	}
	if (is_wanted < 0 || (is_wanted == 1 && check_size(making, &making->error) != 0)) {
		end(making, -1);
		return;
	}
	if (is_wanted == 0) {
		submit_change(making, making_apply_touch, making_touched);
		return;
	}
	making->reserved = making->reserve(making, making->version.size);
	submit_change(making, making_apply_room, making_room_made);
}

static struct xet_making *of_job(struct helper_job *job)
{
	return (struct xet_making *)((uint8_t *)job - offsetof(struct xet_making, job));
}

static int look_in_snapshot(struct xet_making *making, struct error *err)
{
	struct db *const db = store_snapshot_take(making->store, err);
	if (db == NULL)
		return -1;
	const int result = look(making, db, err);
	store_snapshot_give(making->store, db);
	return result;
}

/* 1: to be made; 0: there is nothing to do, or only to touch it. */
static int look(struct xet_making *making, struct db *db, struct error *err)
{
	struct version *const version = &making->version;
	struct xet_file file;
	const int found = version_find_sequence(db, making->sequence, making->arena, version, err);
	if (found <= 0)
		return found < 0
			? -1
			: error_set(err, ERROR_NO_KEY, "The version does not exist any more.");
	if (version->kind != VERSION_DERIVED || version->size == 0)
		return 0;
	if (!version->has_file_hash)
		return error_set(err, ERROR_INVALID, "The version has no Xet file hash yet.");
	const int known = xet_file_row_find(db, &version->file_hash, &file, err);
	making->is_known = known == 1;
	if (known != 0)
		return known < 0 ? -1 : 0;
	return part_ends_load(db, version, &making->ends, err) != 0 ? -1 : 1;
}

static void end(struct xet_making *making, int result)
{
	making->failed = result != 0;
	if (making->source != NULL)
		making->source->close(making->source);
	making->source = NULL;
	ingest_free(making->body.ingest);
	making->body.ingest = NULL;
	making->ended(making); /* it may be gone */
}

static int check_size(const struct xet_making *making, struct error *err)
{
	const struct version *const version = &making->version;
	const uint64_t most = store_parts(making->store)->xet->made_max_bytes;
	if (version->size <= most)
		return 0;
	return error_set(err, ERROR_UNSUPPORTED,
		"The object '%.*s' of %llu bytes is stored as a delta of another one, and this server keeps up to %llu"
		" bytes of such objects readable for Xet clients (xet_made_max): get it without Xet.",
		(int)(version->key.len > 200 ? 200 : version->key.len),
		(const char *)version->key.data, (unsigned long long)version->size,
		(unsigned long long)most);
}

static void submit_change(struct xet_making *making,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	void (*done)(struct change *change))
{
	making->change = (struct change){.apply = apply, .done = done};
	committer_submit(store_committer(making->store), &making->change);
}

static int making_apply_touch(struct change *change, struct db *db, struct error *err)
{
	const struct xet_making *const making = (const struct xet_making *)change;
	return xet_file_row_touch(db, &making->version.file_hash, true, expiry(making), err);
}

static int64_t expiry(const struct xet_making *making)
{
	return store_now_ms(making->store) + XET_MADE_MS;
}

/* The last change of one that was there already. */
static void making_touched(struct change *change)
{
	struct xet_making *const making = (struct xet_making *)change;
	making->error = change->error;
	end(making, change->failed ? -1 : 0);
}

/* Those that were used longest ago go, a few at a time. */
static int making_apply_room(struct change *change, struct db *db, struct error *err)
{
	struct xet_making *const making = (struct xet_making *)change;
	const uint64_t most = store_parts(making->store)->xet->made_max_bytes;
	uint64_t bytes = 0;
	struct xet_file oldest;
	making->damage = (struct xet_file_damage){0};
	if (xet_file_made_bytes(db, &bytes, err) != 0)
		return -1;
	for (int i = 0; i < ROOM_FILES && bytes + making->reserved > most; i++) {
		const int found = xet_file_made_oldest(db, &oldest, &making->damage, err);
		if (found < 0)
			return -1;
		if (found == 0)
			return error_set(err, ERROR_BUSY,
				"Other objects are being made readable for Xet clients: try again.");
		if (xet_file_row_remove(db, &oldest, err) != 0 ||
			xet_file_made_bytes(db, &bytes, err) !=
				0) /* what a damaged row said is not to be trusted */
			return -1;
	}
	making->fits = bytes + making->reserved <= most;
	return 0;
}

static void making_room_made(struct change *change)
{
	struct xet_making *const making = (struct xet_making *)change;
	making->error = change->error;
	if (!change->failed)
		xet_file_tell_damage(making->store, &making->damage);
	if (change->failed)
		end(making, -1);
	else if (!making->fits)
		submit_change(making, making_apply_room, making_room_made);
	else
		submit_job(making, making_begin);
}

static void making_begin(struct helper_job *job)
{
	struct xet_making *const making = of_job(job);
	if (open_both(making, &making->error) != 0)
		end(making, -1);
	else
		making_slice(job);
}

static int open_both(struct xet_making *making, struct error *err)
{
	const struct object object = {.sequence = making->sequence,
		.key = making->version.key,
		.size = making->version.size};
	const struct ingest_options options = {.packs = store_packs(making->store),
		.never_inline = true,
		.few_segments = true,
		.room = making_has_room,
		.done = making_stored,
		.owner = making};
	making->source = object_open(making->store, &object, 0, object.size, err);
	if (making->source == NULL)
		return -1;
	making->block = memory_new(MAKING_BLOCK_BYTES);
	making->body.ingest = ingest_open(&options, err);
	return making->body.ingest == NULL ? -1 : 0;
}

static void making_has_room(void *owner)
{
	resume(owner);
}

/* The ingest takes more again, and the job that found it full has ended: whichever comes last. */
static void resume(struct xet_making *making)
{
	if (atomic_fetch_add(&making->resumes, 1) == 0)
		return;
	atomic_store(&making->resumes, 0);
	submit_job(making, making_slice);
}

static void making_slice(struct helper_job *job)
{
	struct xet_making *const making = of_job(job);
	if (!making->goes_on(making)) {
		end(making, error_set(&making->error, ERROR_BUSY, "The server is stopping."));
		return;
	}
	const enum sink_result result = read_slice(making, &making->error);
	if (result == SINK_FAILED)
		end(making, -1);
	else if (result == SINK_WAIT)
		resume(making);
	else if (making->taken < making->version.size)
		submit_job(making, making_slice);
	else
		ingest_finish(making->body.ingest);
}

static enum sink_result read_slice(struct xet_making *making, struct error *err)
{
	for (uint64_t read = 0;;) {
		while (making->untaken.len > 0) {
			const enum sink_result result = write_some(making, err);
			if (result != SINK_TAKEN)
				return result;
		}
		if (read >= MAKING_SLICE_BYTES || making->taken == making->version.size)
			return SINK_TAKEN;
		const ptrdiff_t got = making->source->read(
			making->source, making->block, MAKING_BLOCK_BYTES, err);
		if (got == 0)
			error_set(err, ERROR_CORRUPT, "Version %lld ended before its size.",
				(long long)making->sequence);
		if (got <= 0)
			return SINK_FAILED;
		making->untaken = span_of(making->block, (size_t)got);
		read += (uint64_t)got;
	}
}

/* Up to the end of a part, whose last chunk ends with it. */
static enum sink_result write_some(struct xet_making *making, struct error *err)
{
	const uint64_t left = part_ends_left(&making->ends, making->taken);
	const struct span piece = span_slice(making->untaken, 0,
		left < making->untaken.len ? (size_t)left : making->untaken.len);
	const enum sink_result result = ingest_write(making->body.ingest, piece, err);
	if (result != SINK_TAKEN)
		return result;
	making->taken += piece.len;
	making->untaken = span_slice(making->untaken, piece.len, SIZE_MAX);
	return piece.len == left && ingest_cut(making->body.ingest, err) != 0 ? SINK_FAILED
									      : SINK_TAKEN;
}

/* The ingest is done. */
static void making_stored(void *owner)
{
	struct xet_making *const making = owner;
	if (ingest_outcome(making->body.ingest, &making->error) != 0 ||
		check_hash(making, &making->error) != 0) {
		end(making, -1);
		return;
	}
	making->change = (struct change){
		.place = making_place, .apply = making_apply_file, .done = making_committed};
	committer_submit(store_committer(making->store), &making->change);
}

static int check_hash(const struct xet_making *making, struct error *err)
{
	const struct stored_part *const part = ingest_part(making->body.ingest);
	if (part->size == making->version.size &&
		chunk_id_equal(&part->file_hash, &making->version.file_hash))
		return 0;
	return error_set(err, ERROR_CORRUPT,
		"Version %lld does not decode to the file of its Xet hash.",
		(long long)making->sequence);
}

static int making_place(struct change *change, struct error *err)
{
	return put_body_place(&((struct xet_making *)change)->body, err);
}

static int making_apply_file(struct change *change, struct db *db, struct error *err)
{
	struct xet_making *const making = (struct xet_making *)change;
	const struct stored_part *const part = ingest_part(making->body.ingest);
	struct xet_file file;
	const int found = xet_file_row_find(db, &making->version.file_hash, &file, err);
	if (found < 0)
		return -1;
	making->is_known = found == 1;
	if (making->is_known) /* of another version with the same bytes, or registered meanwhile */
		return error_set(err, ERROR_EXISTS, "The file is there already.");
	file = (struct xet_file){.hash = part->file_hash,
		.size = part->size,
		.is_made = true,
		.expires_ms = expiry(making)};
	if (put_body_record(&making->body, db, err) != 0 ||
		part_set_add_single(db, part->segments, part->segment_count, &file.part_set,
			&file.contents, err) != 0)
		return -1;
	return xet_file_row_add(db, &file, err);
}

static void making_committed(struct change *change)
{
	struct xet_making *const making = (struct xet_making *)change;
	put_body_settle(&making->body, change);
	if (making->is_known) {
		submit_change(making, making_apply_touch, making_touched);
		return;
	}
	making->error = change->error;
	if (!change->failed) {
		metrics_add(store_metrics(making->store), METRIC_XET_MADE, 1);
		metrics_add(store_metrics(making->store), METRIC_XET_MADE_BYTES,
			(int64_t)making->version.size);
	}
	end(making, change->failed ? -1 : 0);
}
