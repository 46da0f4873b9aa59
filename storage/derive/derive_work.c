/* find the version --> read the header --> encode against the head --> [against the root]
 *      --> store the blocks --> prove --> one change: derived_swap, series, end of the waiting
 *
 * The encoded blocks become a hidden version before anything names them. If the swap does not
 * follow, they are released here, or at the next start. A version that is not a checkpoint, is
 * damaged or has gone is settled too: it stays as it is and waits no more. */
#include "storage/derive/derive_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/derive/derive_proof.h"
#include "storage/derive/derive_series.h"
#include "storage/objects/object_read.h"
#include "storage/objects/scratch.h"
#include "storage/versions/derive_waiting.h"
#include "storage/versions/version.h"
#include "storage/xet/xorb_row.h"
#include "weights/model/schema.h"

enum {
	WORK_ARENA_BYTES = 1024 * 1024,
	DELTA_DIVISOR = 3 /* a delta takes at most a third: plain objects are compressed too */
};

struct work {
	struct store *store;
	const struct work_pace *pace;
	struct arena *arena;
	struct version version;
	struct object object;
	struct shard_header header;
	struct schema *schema;
	struct digest128 key; /* of the series */
	struct derive_series series;
	struct scratch *scratch;
	unsigned delta_files;          /* made in `scratch` so far */
	struct derive_encoded encoded; /* recipe NULL: nothing was chosen */
	int64_t delta_version;         /* the hidden version that has the blocks; 0: none */
};

struct settling {
	struct change change; /* first */
	struct work *work;
	bool has_series;
	bool swaps;
	bool is_put_off; /* because of a promise */
};

static int settle_version(
	struct work *work, int64_t version, struct derive_outcome *out, struct error *err);
static int find_version(struct work *work, int64_t sequence, struct error *err);
static int put_off_promised(struct work *work, struct error *err);
static int derive_apply_put_off(struct change *change, struct db *db, struct error *err);
static int put_off(struct db *db, struct settling *settling, struct error *err);
static int read_checkpoint(struct work *work, struct error *err);
static bool is_delta(const struct safetensors *tensors);
static int settle(struct work *work, bool has_series, struct error *err);
static int derive_apply(struct change *change, struct db *db, struct error *err);
static int find_series(struct work *work, struct error *err);
static int derive(struct work *work, struct derive_outcome *out, struct error *err);
static int choose_base(struct work *work, struct error *err);
static int encode_against(struct work *work, int64_t base, struct error *err);
static int load_base(struct work *work, int64_t base, struct object *out,
	struct shard_header *header, struct error *err);
static void drop_encoded(struct work *work);
static int store_and_prove(struct work *work, struct error *err);
static int swap(struct work *work, bool *out_is_put_off, struct error *err);

int derive_work(struct store *store, int64_t version, const struct work_pace *pace,
	struct derive_outcome *out, struct error *err)
{
	struct work work = {.store = store, .pace = pace, .arena = arena_new(WORK_ARENA_BYTES)};
	struct error ignored;
	ASSERT(pace != NULL && pace->spend != NULL);
	*out = (struct derive_outcome){.is_swapped = false};
	const int result = settle_version(&work, version, out, err);
	if (work.delta_version != 0)
		(void)scratch_release(
			store, work.delta_version, &ignored); /* else the next start does */
	drop_encoded(&work);
	scratch_close(work.scratch);
	schema_free(work.schema);
	shard_header_release(&work.header);
	arena_free(work.arena);
	return result;
}

static int settle_version(
	struct work *work, int64_t version, struct derive_outcome *out, struct error *err)
{
	int result = find_version(work, version, err);
	const int promised = result == 1 ? put_off_promised(work, err) : 0;
	if (promised != 0)
		return promised < 0 ? -1 : 0;
	if (result == 1)
		result = read_checkpoint(work, err);
	if (result == 0)
		return settle(work, false, err);
	if (result < 0)
		return err->kind == ERROR_CORRUPT || err->kind == ERROR_NO_KEY
			? settle(work, false, err)
			: -1;
	const int known = find_series(work, err);
	result = known == 1 ? derive(work, out, err) : known;
	if (result != 0)
		return result < 0 ? -1 : 0;
	work->series = derive_series_begin(version, work->version.size);
	return settle(work, true, err);
}

/* 1: a plain version that readers can reach; 0: nothing to do here; -1. */
static int find_version(struct work *work, int64_t sequence, struct error *err)
{
	struct db *const db = store_reader_take(work->store, err);
	bool is_named = true;
	if (db == NULL)
		return -1;
	int found = version_find_sequence(db, sequence, work->arena, &work->version, err);
	if (found == 1 && work->version.state == VERSION_HIDDEN &&
		version_is_named(db, sequence, &is_named, err) != 0)
		found = -1;
	store_reader_give(work->store, db);
	work->version.sequence = sequence;
	if (found != 1)
		return found;
	const enum version_kind kind = work->version.kind;
	return is_named && !work->version.is_marker &&
		(kind == VERSION_SEGMENTS || kind == VERSION_SINGLE);
}

/* 1: the version was put off until nothing that it leads to is promised; 0: nothing is; -1. */
static int put_off_promised(struct work *work, struct error *err)
{
	struct settling settling = {.change = {.apply = derive_apply_put_off}, .work = work};
	int64_t promised_ms = 0;
	struct db *const db = store_reader_take(work->store, err);
	if (db == NULL)
		return -1;
	const int looked = xorb_row_promise_of_set(db, work->version.part_set, &promised_ms, err);
	store_reader_give(work->store, db);
	if (looked != 0 || promised_ms <= store_now_ms(work->store))
		return looked;
	return committer_run(store_committer(work->store), &settling.change, err) != 0
		? -1
		: settling.is_put_off;
}

static int derive_apply_put_off(struct change *change, struct db *db, struct error *err)
{
	return put_off(db, (struct settling *)change, err);
}

/* Looks at promises once more: an answer about one of its chunks may have promised a xorb while the
 * version was worked on. */
static int put_off(struct db *db, struct settling *settling, struct error *err)
{
	const struct work *const work = settling->work;
	int64_t promised_ms = 0;
	if (xorb_row_promise_of_set(db, work->version.part_set, &promised_ms, err) != 0)
		return -1;
	settling->is_put_off = promised_ms > store_now_ms(work->store);
	return settling->is_put_off
		? derive_waiting_put_off(db, work->version.sequence, promised_ms, err)
		: 0;
}

/* 1: a full checkpoint, with its header and schema in `work`; 0: something else; -1. */
static int read_checkpoint(struct work *work, struct error *err)
{
	const char *const name = arena_text(work->arena, work->version.key);
	if (object_find_sequence(
		    work->store, work->version.sequence, work->arena, &work->object, err) != 0)
		return -1;
	if (shard_header_read(
		    work->store, &work->object, name == NULL ? "" : name, &work->header, err) != 0)
		return err->kind == ERROR_INVALID ? 0 : -1;
	if (safetensors_count(work->header.tensors) == 0 || is_delta(work->header.tensors))
		return 0;
	work->schema = schema_new();
	if (schema_add(work->schema, work->header.tensors, err) != 0)
		return err->kind == ERROR_INVALID ? 0 : -1;
	schema_finish(work->schema);
	return 1;
}

/* Deltas of checkpoints are safetensors files too, but no two of them have the same tensors. */
static bool is_delta(const struct safetensors *tensors)
{
	return safetensors_metadata_find(tensors, "delta_encoding").data != NULL ||
		span_equal_text(
			safetensors_metadata_find(tensors, "format"), "sparse_weight_patch");
}

static int settle(struct work *work, bool has_series, struct error *err)
{
	struct settling settling = {
		.change = {.apply = derive_apply}, .work = work, .has_series = has_series};
	return committer_run(store_committer(work->store), &settling.change, err);
}

static int derive_apply(struct change *change, struct db *db, struct error *err)
{
	struct settling *const settling = (struct settling *)change;
	const struct work *const work = settling->work;
	const int64_t version = work->version.sequence;
	ASSERT(!settling->swaps || (settling->has_series && work->encoded.recipe != NULL));
	if (settling->swaps && put_off(db, settling, err) != 0)
		return -1;
	if (settling->is_put_off)
		return 0;
	if (settling->swaps &&
		derived_swap(db, version, work->encoded.recipe, &work->encoded.digest, err) != 0)
		return -1;
	if (settling->has_series && derive_series_put(db, &work->key, &work->series, err) != 0)
		return -1;
	return derive_waiting_remove(db, version, err);
}

static int find_series(struct work *work, struct error *err)
{
	const struct digest128 schema = schema_digest(work->schema);
	work->key = derive_series_key(work->version.bucket, work->version.key, &schema);
	struct db *const db = store_reader_take(work->store, err);
	if (db == NULL)
		return -1;
	const int found = derive_series_find(db, &work->key, &work->series, err);
	store_reader_give(work->store, db);
	return found;
}

static int derive(struct work *work, struct derive_outcome *out, struct error *err)
{
	work->scratch = scratch_open(work->store, err);
	if (work->scratch == NULL)
		return -1;
	int result = choose_base(work, err);
	if (result == 1)
		result = store_and_prove(work, err);
	bool is_put_off = false;
	if (result == 1 && swap(work, &is_put_off, err) == 0) {
		if (is_put_off)
			return 1;
		*out = (struct derive_outcome){
			true, work->version.size - work->encoded.delta_bytes};
		work->delta_version = 0;
		return 1;
	}
	if (result == 1) /* it has gone, or has become a source, meanwhile */
		result = err->kind == ERROR_PRECONDITION || err->kind == ERROR_INVALID ? 0 : -1;
	return result;
}

/* 1: `encoded` and `series` say how the version is stored; 0: it stays plain; -1. */
static int choose_base(struct work *work, struct error *err)
{
	int result = encode_against(work, work->series.head, err);
	if (result == 1 && derive_series_keeps_head(&work->series, work->encoded.delta_bytes)) {
		derive_series_add(&work->series, work->encoded.delta_bytes);
		return 1;
	}
	drop_encoded(work);
	if (result >= 0)
		result = encode_against(work, work->series.root, err);
	if (result != 1 || !derive_series_keeps_root(&work->series, work->encoded.delta_bytes)) {
		drop_encoded(work);
		return result < 0 ? -1 : 0;
	}
	derive_series_add_head(&work->series, work->version.sequence, work->encoded.delta_bytes);
	return 1;
}

/* 1: `encoded` makes the version out of this base; 0: it cannot, or is not worth it; -1. */
static int encode_against(struct work *work, int64_t base, struct error *err)
{
	struct object object;
	struct shard_header header = {.tensors = NULL};
	ASSERT(work->encoded.recipe == NULL && work->scratch != NULL);
	int result = base == 0 ? 0 : load_base(work, base, &object, &header, err);
	if (result == 1) {
		const struct derive_encode_params params = {
			.store = work->store,
			.base = {{base, object.size}, &header},
			.next = {{work->version.sequence, work->version.size}, &work->header},
			.path = arena_format(work->arena, "%s/delta-%u",
				scratch_path(work->scratch), work->delta_files++),
			.delta_max = work->version.size / DELTA_DIVISOR,
			.pace = work->pace,
		};
		result = derive_encode(&params, &work->encoded, err);
	}
	/* the version stays as it is: its readers are told what is wrong with it */
	if (result < 0 && (err->kind == ERROR_INVALID || err->kind == ERROR_CORRUPT))
		result = 0;
	shard_header_release(&header);
	return result;
}

/* 1: the base is there, with its header in `header`; 0: it cannot be a base; -1. */
static int load_base(struct work *work, int64_t base, struct object *out,
	struct shard_header *header, struct error *err)
{
	struct error why = {0};
	if (object_find_sequence(work->store, base, work->arena, out, &why) == 0 &&
		shard_header_read(work->store, out, "base", header, &why) == 0)
		return 1;
	if (why.kind == ERROR_NO_KEY || why.kind == ERROR_INVALID || why.kind == ERROR_CORRUPT)
		return 0;
	*err = why;
	return -1;
}

static void drop_encoded(struct work *work)
{
	derived_recipe_free(work->encoded.recipe);
	work->encoded.recipe = NULL;
}

/* Stores the blocks as a hidden version, and proves that the recipe makes the very bytes. 1 proven,
 * 0 not, -1. */
static int store_and_prove(struct work *work, struct error *err)
{
	const char *const path = arena_format(
		work->arena, "%s/delta-%u", scratch_path(work->scratch), work->delta_files - 1);
	struct derive_encoded *const encoded = &work->encoded;
	ASSERT(encoded->recipe != NULL && work->delta_files > 0);
	if (encoded->delta_source != SIZE_MAX) {
		if (scratch_store_hidden(work->store, path, work->version.bucket, work->version.key,
			    &work->delta_version, err) != 0)
			return -1;
		derived_recipe_settle(encoded->recipe, encoded->delta_source, work->delta_version,
			encoded->delta_bytes);
	}
	if (!work->pace->spend(work->pace->owner, (size_t)work->version.size))
		return error_set(err, ERROR_BUSY, "The server is stopping.");
	return derive_proof(work->store, &work->version, encoded->recipe, &encoded->digest, err);
}

static int swap(struct work *work, bool *out_is_put_off, struct error *err)
{
	struct settling settling = {
		.change = {.apply = derive_apply}, .work = work, .has_series = true, .swaps = true};
	const int result = committer_run(store_committer(work->store), &settling.change, err);
	*out_is_put_off = settling.is_put_off;
	return result;
}
