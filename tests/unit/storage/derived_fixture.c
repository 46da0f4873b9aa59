#include "tests/unit/storage/derived_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/files/xet_file.h"
#include "storage/objects/object_put.h"
#include "storage/objects/scratch.h"
#include "storage/packs/assemble.h"
#include "storage/versions/part.h"
#include "storage/xet/made_file.h"
#include "weights/codec/block_code.h"
#include "weights/model/safetensors.h"

struct swap {
	struct change change; /* first */
	int64_t version;
	const struct derived_recipe *recipe;
	const struct digest128 *digest;
};

static int apply_swap(struct change *change, struct db *db, struct error *err)
{
	const struct swap *const swap = (const struct swap *)change;
	return derived_swap(db, swap->version, swap->recipe, swap->digest, err);
}

int derived_fixture_swap(struct store *store, int64_t version, const struct derived_recipe *recipe,
	const struct digest128 *digest, struct error *err)
{
	struct swap swap = {.change = {.apply = apply_swap},
		.version = version,
		.recipe = recipe,
		.digest = digest};
	return committer_run(store_committer(store), &swap.change, err);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The bits of a number of about 0.01, like weights. */
static uint16_t weight_bits(uint64_t *state)
{
	const uint64_t random = next_random(state);
	const unsigned exponent = 120 - (unsigned)__builtin_ctzll(random | 1024);
	return (uint16_t)((random >> 48 & 0x8000) | exponent << 7 | (random >> 32 & 0x7f));
}

static void fill(const struct derived_tensor *tensor, uint8_t *bytes)
{
	uint64_t state = tensor->begin + 88172645463325252U;
	for (uint64_t at = tensor->begin; at + 2 <= tensor->end; at += 2) {
		const uint16_t bits = weight_bits(&state);
		memcpy(bytes + at, &bits, sizeof(bits));
	}
}

static void train(const struct derived_tensor *tensor, uint8_t *bytes, unsigned step)
{
	uint64_t state = (tensor->begin + step) * 2862933555777941757U + 3037000493U;
	for (uint64_t at = tensor->begin; at + 2 <= tensor->end; at += 2) {
		const uint64_t random = next_random(&state);
		if (random >> 32 & 0x7f)
			continue;
		uint16_t bits;
		memcpy(&bits, bytes + at, sizeof(bits));
		bits = (uint16_t)(random & 1 ? bits + 1 : bits - 1);
		memcpy(bytes + at, &bits, sizeof(bits));
	}
}

void derived_checkpoint_make(struct derived_checkpoint *out, size_t large, unsigned step)
{
	struct error err = {0};
	const uint64_t shapes[DERIVED_TENSORS] = {large, 70000, 501, 1000, 3};
	const enum dtype dtypes[DERIVED_TENSORS] = {
		DTYPE_BF16, DTYPE_F32, DTYPE_U8, DTYPE_BF16, DTYPE_F64};
	static const char *const names[DERIVED_TENSORS] = {
		"large", "float", "bytes", "small", "tiny"};
	struct safetensors_tensor tensors[DERIVED_TENSORS];
	for (size_t i = 0; i < DERIVED_TENSORS; i++)
		tensors[i] = (struct safetensors_tensor){.name = span_text(names[i]),
			.dtype = dtypes[i],
			.rank = 1,
			.shape = &shapes[i],
			.elements = shapes[i]};
	const size_t bytes = 2 * large + 400000;
	buffer_init(&out->bytes, bytes + 100000);
	ck_assert_int_eq(
		safetensors_write_header(tensors, DERIVED_TENSORS, NULL, 0, &out->bytes, &err), 0);
	out->header = out->bytes.len;
	const uint64_t data = tensors[DERIVED_TENSORS - 1].end;
	memset(buffer_reserve(&out->bytes, data), 0, data);
	buffer_commit(&out->bytes, data);
	for (size_t i = 0; i < DERIVED_TENSORS; i++) {
		out->tensors[i] = (struct derived_tensor){tensors[i].dtype,
			out->header + tensors[i].begin, out->header + tensors[i].end};
		fill(&out->tensors[i], out->bytes.data);
		for (unsigned s = 1; s <= step && !span_equal_text(tensors[i].name, "small"); s++)
			train(&out->tensors[i], out->bytes.data, s);
	}
}

void derived_checkpoint_release(struct derived_checkpoint *checkpoint)
{
	buffer_release(&checkpoint->bytes);
}

static void encode_tensor(const struct derived_tensor *tensor, const uint8_t *base,
	const uint8_t *next, struct buffer *out)
{
	struct block_code_context *const context = block_code_context_new();
	const uint64_t whole = block_code_bytes(tensor->dtype);
	for (uint64_t at = tensor->begin; at < tensor->end; at += whole) {
		const size_t len = (size_t)(tensor->end - at < whole ? tensor->end - at : whole);
		block_code_encode(context, tensor->dtype, span_of(base + at, len),
			span_of(next + at, len), out, NULL);
	}
	block_code_context_free(context);
}

static int64_t store_blocks(struct store_fixture *fixture, struct span blocks)
{
	struct error err = {0};
	int64_t version = 0;
	struct scratch *const scratch = scratch_open(fixture->store, &err);
	ck_assert(scratch != NULL);
	const char *const path = arena_format(fixture->arena, "%s/blocks", scratch_path(scratch));
	ck_assert_int_eq(file_place(file_system(), path, blocks, 0600, &err), 0);
	const int64_t bucket = fixture_count(
		fixture->store, "SELECT id FROM buckets WHERE name = CAST('b' AS BLOB)");
	ck_assert_int_eq(scratch_store_hidden(
				 fixture->store, path, bucket, span_text("blocks"), &version, &err),
		0);
	scratch_close(scratch);
	return version;
}

struct derived_recipe *derived_fixture_recipe(struct store_fixture *fixture,
	const struct derived_checkpoint *base_bytes, const struct object *base,
	const struct derived_checkpoint *next, bool in_pieces)
{
	struct error err = {0};
	struct buffer blocks;
	uint64_t ends[DERIVED_TENSORS];
	buffer_init(&blocks, next->bytes.len + 100000);
	for (size_t i = 0; i < DERIVED_TENSORS; i++) {
		encode_tensor(&next->tensors[i], base_bytes->bytes.data, next->bytes.data, &blocks);
		ends[i] = blocks.len;
	}
	struct derived_recipe *const recipe = derived_recipe_new();
	const size_t base_source = derived_recipe_source(recipe, base->sequence, base->size);
	const size_t delta = derived_recipe_source(
		recipe, store_blocks(fixture, buffer_span(&blocks)), blocks.len);
	derived_recipe_add_literal(recipe, span_of(next->bytes.data, 100));
	derived_recipe_add_copy(recipe, base_source, 100, next->header - 100);
	for (size_t i = 0; i < DERIVED_TENSORS; i++) {
		const struct derived_tensor *const tensor = &next->tensors[i];
		const uint64_t start = i == 0 ? 0 : ends[i - 1];
		const struct derived_range old = {.source = base_source,
			.offset = tensor->begin,
			.length = tensor->end - tensor->begin};
		const struct derived_range changes = {
			.source = delta, .offset = start, .length = ends[i] - start};
		const struct derived_blocks in_memory = {.source = delta,
			.offset = start,
			.bytes = span_of(blocks.data + start, ends[i] - start)};
		if (in_pieces)
			ck_assert_int_eq(derived_recipe_add_blocks(
						 recipe, tensor->dtype, &old, &in_memory, &err),
				0);
		else
			derived_recipe_add_delta(recipe, tensor->dtype, &old, &changes);
	}
	buffer_release(&blocks);
	return recipe;
}

struct object derived_fixture_put(struct store_fixture *fixture, const char *bucket,
	const char *key, const struct derived_checkpoint *checkpoint)
{
	struct error err = {0};
	struct object object;
	struct object_put_params params = {.bucket = fixture_bucket(bucket), .key = span_text(key)};
	ck_assert_msg(fixture_put_object(fixture->store, &params, buffer_span(&checkpoint->bytes),
			      &object, &err) == 0,
		"%s", err.text);
	ck_assert_msg(fixture_find(fixture, bucket, key, &object, &err) == 0, "%s", err.text);
	return object;
}

struct object derived_fixture_put_swapped(struct store_fixture *fixture, const char *bucket,
	const char *key, const struct derived_checkpoint *base_bytes, const struct object *base,
	const struct derived_checkpoint *next)
{
	struct error err = {0};
	const struct object object = derived_fixture_put(fixture, bucket, key, next);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(fixture, base_bytes, base, next, true);
	ck_assert_msg(derived_fixture_swap(
			      fixture->store, object.sequence, recipe, &object.digest, &err) == 0,
		"%s", err.text);
	derived_recipe_free(recipe);
	return object;
}

int derived_fixture_make(struct store *store, int64_t version, struct error *err)
{
	struct settled *const settled = settled_new();
	struct made_file_request *const wait =
		made_file_request_start(store, version, settled_done, settled);
	settled_wait(settled);
	const int result = made_file_request_outcome(wait, err);
	made_file_request_free(wait);
	return result;
}

/* Reads from the segments only. */
static void expect_segments(
	struct store *store, const struct part_range *range, struct span expected)
{
	struct error err = {0};
	struct body_source *const source = assemble_open(
		store_packs(store), range->segments, range->segment_count, 0, expected.len, &err);
	uint8_t *const bytes = memory_new(expected.len);
	size_t have = 0;
	ptrdiff_t got;
	while (have < expected.len &&
		(got = source->read(source, bytes + have, expected.len - have, &err)) > 0)
		have += (size_t)got;
	ck_assert_uint_eq(have, expected.len);
	ck_assert(memcmp(bytes, expected.data, expected.len) == 0);
	source->close(source);
	free(bytes);
}

bool derived_fixture_made_holds(
	struct store_fixture *fixture, const struct chunk_id *file, struct span bytes)
{
	struct error err = {0};
	struct xet_file row;
	struct db *const db = store_reader_take(fixture->store, &err);
	const int found = xet_file_row_find(db, file, &row, &err);
	ck_assert_msg(found >= 0, "%s", err.text);
	if (found == 1) {
		struct part_range range = {.length = row.size};
		ck_assert(row.is_made && row.size == bytes.len);
		ck_assert_msg(
			part_set_load(db, row.part_set, row.size, row.contents, &range, &err) == 0,
			"%s", err.text);
		expect_segments(fixture->store, &range, bytes);
		free(range.segments);
	}
	store_reader_give(fixture->store, db);
	return found == 1;
}
