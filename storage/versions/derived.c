/* Adding and swapping happen inside a change, and there the sources are judged: versions may have
 * gone since the recipe was built, and the depth must stay within DERIVED_DEPTH_MAX, so that one
 * read opens a bounded number of sources. The order matters: the derivation names its sources
 * first, and only then are they released from scratch, so that something names them at any time. */
#include "storage/versions/derived.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/versions/derived_body.h"
#include "storage/versions/derived_parts.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"
#include "storage/versions/scratch_row.h"
#include "storage/versions/version.h"

enum {
	DIGEST_PIECE_BYTES = 1024 * 1024,
	SWAP_ARENA_BYTES = 256 * 1024,
	PARTS_MAX_BYTES = 2 * 1024 * 1024
};

static int follow_copy(struct db *db, int64_t *version, struct error *err);
static bool is_whole_copy(const struct derived_recipe *recipe);
static int add_encoded(struct db *db, const struct derived_add *add, struct span bytes,
	int64_t *out_version, struct error *err);
static int judge_sources(
	struct db *db, const struct derived_recipe *recipe, unsigned *out_depth, struct error *err);
static int add_version(
	struct db *db, const struct derived_add *add, struct version *version, struct error *err);
static int release_sources(struct db *db, const struct derived_recipe *recipe, struct error *err);
static int find_to_swap(struct db *db, int64_t version, struct arena *arena, struct version *out,
	struct error *err);
static int cannot_swap(int64_t version, const char *why, struct error *err);
static int judge_swap(struct db *db, const struct version *version,
	const struct derived_recipe *recipe, const struct digest128 *digest, struct error *err);
static int replace_segments(struct db *db, struct version *version,
	const struct derived_recipe *recipe, const struct digest128 *digest, struct span bytes,
	struct error *err);

struct body_source *derived_open_recipe(struct store *store, const struct derived_recipe *recipe,
	uint64_t offset, uint64_t length, struct error *err)
{
	if (recipe->is_unsound || offset > derived_recipe_size(recipe) ||
		length > derived_recipe_size(recipe) - offset) {
		error_set(err, ERROR_INVALID,
			"A piece of a recipe lies outside of its source, or the range outside of the result.");
		return NULL;
	}
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return NULL;
	const struct derived_body_params params = {.store = store,
		.db = db,
		.recipe = recipe,
		.is_borrowed = true,
		.from = offset,
		.to = offset + length,
		.levels = DERIVED_DEPTH_MAX};
	struct derived_body *const body = derived_body_open(&params, err);
	store_snapshot_give(store, db);
	return body == NULL ? NULL : derived_body_source(body, offset, offset + length);
}

int derived_recipe_digest(struct store *store, const struct derived_recipe *recipe,
	struct digest128 *out_digest, struct error *err)
{
	struct body_source *const source =
		derived_open_recipe(store, recipe, 0, derived_recipe_size(recipe), err);
	if (source == NULL)
		return -1;
	uint8_t *const piece = memory_new(DIGEST_PIECE_BYTES);
	struct xxh3_stream *const digest = xxh3_stream_new();
	ptrdiff_t got;
	while ((got = source->read(source, piece, DIGEST_PIECE_BYTES, err)) > 0)
		xxh3_stream_add(digest, span_of(piece, (size_t)got));
	*out_digest = xxh3_stream_result(digest);
	xxh3_stream_free(digest);
	free(piece);
	source->close(source);
	return got < 0 ? -1 : 0;
}

int derived_origin(struct db *db, int64_t version, int64_t *out_origin, struct error *err)
{
	int result = 1;
	*out_origin = version;
	for (unsigned i = 0; result == 1 && i <= DERIVED_DEPTH_MAX; i++)
		result = follow_copy(db, out_origin, err);
	return result < 0 ? -1 : 0;
}

int derived_add(
	struct db *db, const struct derived_add *add, int64_t *out_version, struct error *err)
{
	struct buffer bytes;
	ASSERT(add->recipe != NULL);
	buffer_init(&bytes, DERIVED_RECIPE_MAX_BYTES);
	const int result = derived_recipe_encode(add->recipe, &bytes, err) != 0
		? -1
		: add_encoded(db, add, buffer_span(&bytes), out_version, err);
	buffer_release(&bytes);
	return result;
}

int derived_swap(struct db *db, int64_t version, const struct derived_recipe *recipe,
	const struct digest128 *digest, struct error *err)
{
	struct arena *const arena = arena_new(SWAP_ARENA_BYTES);
	struct buffer bytes;
	struct version row;
	ASSERT(recipe != NULL && digest != NULL);
	buffer_init(&bytes, DERIVED_RECIPE_MAX_BYTES);
	int result = derived_recipe_encode(recipe, &bytes, err);
	if (result == 0)
		result = find_to_swap(db, version, arena, &row, err);
	if (result == 0)
		result = judge_swap(db, &row, recipe, digest, err);
	if (result == 0)
		result = replace_segments(db, &row, recipe, digest, buffer_span(&bytes), err);
	buffer_release(&bytes);
	arena_free(arena);
	return result;
}

/* 1: *version was a whole copy and is now its source; 0: it is not such a copy; -1. */
static int follow_copy(struct db *db, int64_t *version, struct error *err)
{
	struct version row;
	const int found = version_find_sequence(db, *version, NULL, &row, err);
	if (found == 0)
		return error_set(err, ERROR_NO_KEY,
			"Version %lld, the source of a derived object, is gone.",
			(long long)*version);
	if (found < 0 || row.is_marker || row.kind != VERSION_DERIVED)
		return found < 0 ? -1 : 0;
	struct derived_recipe *const recipe = derived_row_load(db, *version, row.contents, err);
	if (recipe == NULL)
		return -1;
	const bool is_copy = is_whole_copy(recipe);
	if (is_copy)
		*version = recipe->sources[0].version;
	derived_recipe_free(recipe);
	return is_copy;
}

static bool is_whole_copy(const struct derived_recipe *recipe)
{
	return recipe->source_count == 1 && recipe->piece_count == 1 &&
		recipe->pieces[0].kind == DERIVED_COPY &&
		derived_recipe_size(recipe) == recipe->sources[0].size;
}

static int add_encoded(struct db *db, const struct derived_add *add, struct span bytes,
	int64_t *out_version, struct error *err)
{
	struct derived_row row = {.recipe = add->recipe, .bytes = bytes};
	struct version version = {
		.bucket = add->bucket,
		.key = add->key,
		.kind = VERSION_DERIVED,
		.size = derived_recipe_size(add->recipe),
		.has_digest = true,
		.digest = add->digest,
		.headers = add->headers,
		.modified_ms = add->modified_ms,
		.contents = derived_row_contents(bytes, span_of(NULL, 0)),
	};
	random_bytes(version.id, VERSION_ID_BYTES);
	encode_hex(span_of(add->digest.bytes, sizeof(add->digest.bytes)), version.etag);
	memcpy(version.etag + 2 * sizeof(add->digest.bytes), "-d", sizeof("-d"));
	if (judge_sources(db, add->recipe, &row.depth, err) != 0 ||
		add_version(db, add, &version, err) != 0)
		return -1;
	*out_version = version.sequence;
	if (derived_row_add(db, version.sequence, &row, err) != 0)
		return -1;
	return release_sources(db, add->recipe, err);
}

/* Judges the sources. *out_depth is the depth of a version made of them. */
static int judge_sources(
	struct db *db, const struct derived_recipe *recipe, unsigned *out_depth, struct error *err)
{
	*out_depth = 1;
	for (size_t i = 0; i < recipe->source_count; i++) {
		const struct derived_source *const source = &recipe->sources[i];
		struct version version;
		unsigned depth = 0;
		const int found = version_find_sequence(db, source->version, NULL, &version, err);
		if (found < 0 || derived_row_depth(db, source->version, &depth, err) != 0)
			return -1;
		if (found == 0 || version.is_marker || version.size != source->size)
			return error_set(err, ERROR_INVALID,
				"Version %lld, the source of a derived object, is gone.",
				(long long)source->version);
		if (depth + 1 > *out_depth)
			*out_depth = depth + 1;
	}
	if (*out_depth > DERIVED_DEPTH_MAX)
		return error_set(err, ERROR_INVALID,
			"A derived object would nest derived versions %u deep; at most %d are allowed.",
			*out_depth, DERIVED_DEPTH_MAX);
	return 0;
}

static int add_version(
	struct db *db, const struct derived_add *add, struct version *version, struct error *err)
{
	enum bucket_versioning versioning;
	struct version current;
	if (add->is_hidden)
		return version_add_hidden(db, version, err);
	if (bucket_row_versioning(db, add->bucket, &versioning, err) != 0)
		return -1;
	const int found = version_find_current(db, add->bucket, add->key, NULL, &current, err);
	return found < 0 ? -1
			 : version_push(db, versioning, found == 1 ? &current : NULL, version, err);
}

/* The derivation names the sources by now, so scratch need not keep them. */
static int release_sources(struct db *db, const struct derived_recipe *recipe, struct error *err)
{
	for (size_t i = 0; i < recipe->source_count; i++)
		if (scratch_row_release(db, recipe->sources[i].version, err) != 0)
			return -1;
	return 0;
}

static int find_to_swap(
	struct db *db, int64_t version, struct arena *arena, struct version *out, struct error *err)
{
	const int found = version_find_sequence(db, version, arena, out, err);
	if (found == 0)
		return cannot_swap(version, "it is gone", err);
	return found < 0 ? -1 : 0;
}

static int cannot_swap(int64_t version, const char *why, struct error *err)
{
	return error_set(err, ERROR_PRECONDITION, "Version %lld keeps its bytes: %s.",
		(long long)version, why);
}

static int judge_swap(struct db *db, const struct version *version,
	const struct derived_recipe *recipe, const struct digest128 *digest, struct error *err)
{
	bool is_source = false;
	if (version->is_marker ||
		(version->kind != VERSION_SEGMENTS && version->kind != VERSION_SINGLE))
		return cannot_swap(version->sequence, "it has no segments", err);
	if (version->size != derived_recipe_size(recipe) ||
		(version->has_digest && !digest128_equal(&version->digest, digest)))
		return cannot_swap(version->sequence, "the recipe makes other bytes", err);
	if (derived_row_is_source(db, version->sequence, &is_source, err) != 0)
		return -1;
	return is_source ? cannot_swap(version->sequence, "others are derived from it", err) : 0;
}

static int replace_segments(struct db *db, struct version *version,
	const struct derived_recipe *recipe, const struct digest128 *digest, struct span bytes,
	struct error *err)
{
	struct derived_row row = {.recipe = recipe, .bytes = bytes};
	struct buffer parts;
	const int64_t old_set = version->part_set;
	buffer_init(&parts, PARTS_MAX_BYTES);
	int result = judge_sources(db, recipe, &row.depth, err);
	if (result == 0)
		result = derived_parts_collect(db, version, &parts, err);
	row.parts = buffer_span(&parts);
	version->kind = VERSION_DERIVED;
	version->part_set = 0;
	version->contents = derived_row_contents(bytes, row.parts);
	version->has_digest = true;
	version->digest = *digest;
	if (result == 0)
		result = derived_row_add(db, version->sequence, &row, err);
	if (result == 0)
		result = version_replace_contents(db, version, err);
	if (result == 0)
		result = part_set_drop(db, old_set, err);
	buffer_release(&parts);
	return result != 0 ? -1 : release_sources(db, recipe, err);
}
