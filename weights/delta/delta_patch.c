/* A patch is a walk over the tensors and the topmost level of a stack above them. Each block is
 * hashed with its base before it is written over the base, and no decoder needs a block of the base
 * twice or early: the block of one number is made of the base's block of this number alone,
 * whatever the format, and each block is walked by one thread. So the blocks do not disturb one
 * another, as long as no two tensors share memory. */
#include "weights/delta/delta_patch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta/delta_stack.h"
#include "weights/model/memory_source.h"

enum { SHOWN_NAME_BYTES = 120 };

struct patch {
	const struct delta_patch_params *params;
	const struct schema *schema;
	struct tensor_source *base;
	struct delta_stack *stack;
	bool *same;                     /* true for tensors that no delta changes */
	struct digest128 *base_digests; /* NULL: the caller gave them */
	struct digest128 *digests;
	struct digest128 wanted_base;
	bool has_wanted_base;
	_Atomic bool has_written;
	struct delta_stats stats;
};
/* The place of a tensor in memory. */
struct extent {
	uintptr_t begin;
	uintptr_t end;
	size_t tensor;
};

static int run(struct patch *patch, struct error *err);
static int check_overlap(const struct patch *patch, struct error *err);
static int delta_patch_order_extents(const void *left, const void *right);
static int refuse_overlap(
	const struct patch *patch, size_t first, size_t second, struct error *err);
static int open_stack(struct patch *patch, struct error *err);
static int find_wanted_base(struct patch *patch, struct error *err);
static int check_base(struct patch *patch, const struct digest128 *digests, struct error *err);
static int wrong_base(const struct patch *patch, const struct digest128 *actual, const char *source,
	struct error *err);
static void find_same(struct patch *patch);
static int prove(struct patch *patch, bool writes, struct error *err);
static int write_all(struct patch *patch, struct error *err);
static int delta_patch_put_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);
static int check_result(struct patch *patch, struct error *err);
static int check_digest(const struct digest128 *actual, const struct digest128 *wanted,
	const char *source, struct error *err);
static int explain(const struct patch *patch, struct error *err);
static void sum_up(struct patch *patch);

int delta_patch(const struct delta_patch_params *params, struct delta_stats *out_stats,
	bool *out_spoiled, struct error *err)
{
	ASSERT(params->deltas != NULL && params->delta_count > 0);
	const size_t tensors = schema_count(params->schema);
	struct patch patch = {
		.params = params,
		.schema = params->schema,
		.base = memory_source_new(params->schema, (const uint8_t *const *)params->tensors),
		.base_digests = params->base_tensor_digests == NULL
			? memory_new_array(tensors, sizeof(struct digest128))
			: NULL,
		.digests = memory_new_array(tensors, sizeof(struct digest128)),
		.same = memory_new_array(tensors, sizeof(bool)),
	};
	const int result = run(&patch, err);
	*out_spoiled = result != 0 && patch.has_written;
	if (result == 0)
		*out_stats = patch.stats;
	if (result == 0 && params->result_tensor_digests != NULL && tensors > 0)
		memcpy(params->result_tensor_digests, patch.digests,
			tensors * sizeof(patch.digests[0]));
	delta_stack_close(patch.stack);
	tensor_source_free(patch.base);
	free(patch.same);
	free(patch.base_digests);
	free(patch.digests);
	return result;
}

static int run(struct patch *patch, struct error *err)
{
	const bool two_passes = patch->params->proves_first;
	if (check_overlap(patch, err) != 0)
		return -1;
	if (open_stack(patch, err) != 0 || prove(patch, !two_passes, err) != 0)
		return explain(patch, err);
	if (two_passes && write_all(patch, err) != 0)
		return -1;
	sum_up(patch);
	return 0;
}

static int check_overlap(const struct patch *patch, struct error *err)
{
	const size_t count = schema_count(patch->schema);
	struct extent *const extents = memory_new_array(count, sizeof(extents[0]));
	size_t used = 0;
	int result = 0;
	for (size_t i = 0; i < count; i++) {
		const uint64_t bytes = schema_tensor(patch->schema, i)->bytes;
		const uintptr_t begin = (uintptr_t)patch->params->tensors[i];
		if (bytes > 0)
			extents[used++] = (struct extent){begin, begin + bytes, i};
	}
	if (used > 0)
		qsort(extents, used, sizeof(extents[0]), delta_patch_order_extents);
	for (size_t i = 1; i < used && result == 0; i++)
		if (extents[i].begin < extents[i - 1].end)
			result = refuse_overlap(
				patch, extents[i - 1].tensor, extents[i].tensor, err);
	free(extents);
	return result;
}

static int delta_patch_order_extents(const void *left, const void *right)
{
	const struct extent *const a = left;
	const struct extent *const b = right;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->tensor < b->tensor ? -1 : 1;
}

static int refuse_overlap(const struct patch *patch, size_t first, size_t second, struct error *err)
{
	const struct span a = schema_tensor(patch->schema, first)->name;
	const struct span b = schema_tensor(patch->schema, second)->name;
	return error_set(err, ERROR_UNSUPPORTED,
		"the tensors '%.*s' and '%.*s' share memory; each needs its own to be patched in"
		" place",
		(int)(a.len < SHOWN_NAME_BYTES ? a.len : SHOWN_NAME_BYTES), a.data,
		(int)(b.len < SHOWN_NAME_BYTES ? b.len : SHOWN_NAME_BYTES), b.data);
}

static int open_stack(struct patch *patch, struct error *err)
{
	const struct delta_patch_params *const params = patch->params;
	patch->stack =
		delta_stack_open(patch->base, NULL, params->deltas, params->delta_count, err);
	if (patch->stack == NULL || find_wanted_base(patch, err) != 0)
		return -1;
	if (params->base_tensor_digests != NULL &&
		check_base(patch, params->base_tensor_digests, err) != 0)
		return -1;
	find_same(patch);
	/* A caller that knows the result's digest does not need the delta's own proof. */
	return params->expected_result != NULL ? 0 : delta_stack_prove(patch->stack, err);
}

static int find_wanted_base(struct patch *patch, struct error *err)
{
	const struct digest128 *const expected = patch->params->expected_base;
	const struct delta_metadata *const first =
		delta_reader_metadata(delta_stack_reader(patch->stack, 1));
	patch->has_wanted_base = expected != NULL || first->has_base_digest;
	if (patch->has_wanted_base)
		patch->wanted_base = expected != NULL ? *expected : first->base_digest;
	if (expected == NULL || !first->has_base_digest ||
		digest128_equal(expected, &first->base_digest))
		return 0;
	return wrong_base(patch, expected, "the caller expects", err);
}

static int check_base(struct patch *patch, const struct digest128 *digests, struct error *err)
{
	patch->stats.base_digest = schema_checkpoint_digest(patch->schema, digests);
	if (!patch->has_wanted_base ||
		digest128_equal(&patch->stats.base_digest, &patch->wanted_base))
		return 0;
	return wrong_base(patch, &patch->stats.base_digest, "these tensors are", err);
}

static int wrong_base(const struct patch *patch, const struct digest128 *actual, const char *source,
	struct error *err)
{
	const struct delta_reader *const first = delta_stack_reader(patch->stack, 1);
	const bool says = delta_reader_metadata(first)->has_base_digest;
	char wanted_text[DIGEST128_TEXT_BYTES];
	char actual_text[DIGEST128_TEXT_BYTES];
	digest128_format(says ? &delta_reader_metadata(first)->base_digest : &patch->wanted_base,
		wanted_text);
	digest128_format(actual, actual_text);
	error_set(err, ERROR_WRONG_BASE, "the base must be %s; %s %s", wanted_text, source,
		actual_text);
	return delta_stack_blame(first, patch->params->deltas[0], err);
}

static void find_same(struct patch *patch)
{
	for (size_t i = 0; i < schema_count(patch->schema); i++)
		patch->same[i] =
			!delta_stack_changes(patch->stack, schema_tensor(patch->schema, i)->name);
}

/* Walks over everything, compares the digests of base and result with those that they must have,
 * and writes on the way if `writes`. */
static int prove(struct patch *patch, bool writes, struct error *err)
{
	const struct delta_patch_params *const params = patch->params;
	const struct digest128 *const known = params->base_tensor_digests;
	/* The base is hashed only if there is a digest to compare with. */
	const bool hashes_base = known == NULL && patch->has_wanted_base;
	const struct tensor_pass pass = {
		.base = hashes_base || writes ? patch->base : NULL,
		.next = delta_stack_source(patch->stack, params->delta_count),
		.threads = params->threads,
		.watch = params->watch,
		.block = writes ? delta_patch_put_block : NULL,
		.hashes_first = true,
		.state = patch,
		.same = hashes_base || known != NULL ? patch->same : NULL,
		.known_base = known,
		.base_digests = hashes_base ? patch->base_digests : NULL,
		.next_digests = patch->digests,
	};
	if (tensor_pass_run(&pass, err) != 0)
		return -1;
	if (hashes_base && check_base(patch, patch->base_digests, err) != 0)
		return -1;
	return check_result(patch, err);
}

static int write_all(struct patch *patch, struct error *err)
{
	const struct tensor_pass pass = {
		.base = patch->base,
		.next = delta_stack_source(patch->stack, patch->params->delta_count),
		.threads = patch->params->threads,
		.block = delta_patch_put_block,
		.state = patch,
	};
	return tensor_pass_run(&pass, err);
}

static int delta_patch_put_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	struct patch *const patch = state;
	(void)worker;
	(void)err;
	/* A block that no delta changes is given out as the base's own bytes. */
	if (block->next.data == block->base.data)
		return 0;
	if (patch->params->changes != NULL)
		delta_changes_add(patch->params->changes, block);
	patch->has_written = true;
	memcpy(patch->params->tensors[block->tensor] + block->at, block->next.data,
		block->next.len);
	return 0;
}

static int check_result(struct patch *patch, struct error *err)
{
	const struct delta_patch_params *const params = patch->params;
	struct digest128 wanted;
	patch->stats.result_digest = schema_checkpoint_digest(patch->schema, patch->digests);
	if (delta_stack_digest(patch->stack, params->delta_count, &wanted) &&
		check_digest(&patch->stats.result_digest, &wanted, "the delta", err) != 0)
		return delta_stack_blame(delta_stack_reader(patch->stack, params->delta_count),
			params->deltas[params->delta_count - 1], err);
	return params->expected_result == NULL
		? 0
		: check_digest(
			  &patch->stats.result_digest, params->expected_result, "the caller", err);
}

static int check_digest(const struct digest128 *actual, const struct digest128 *wanted,
	const char *source, struct error *err)
{
	if (digest128_equal(actual, wanted))
		return 0;
	char wanted_text[DIGEST128_TEXT_BYTES];
	char actual_text[DIGEST128_TEXT_BYTES];
	digest128_format(wanted, wanted_text);
	digest128_format(actual, actual_text);
	return error_set(err, ERROR_DIGEST_MISMATCH, "the result is %s, and %s says %s",
		actual_text, source, wanted_text);
}

/* busy means that the watch ended the work; the base does not explain that. A wrong base that was
 * found here is told already. Once something is written the base cannot be looked at any more. */
static int explain(const struct patch *patch, struct error *err)
{
	const struct delta_patch_params *const params = patch->params;
	const bool is_told = err->kind == ERROR_WRONG_BASE && patch->stack != NULL;
	if (err->kind == ERROR_BUSY || is_told || patch->has_written)
		return -1;
	return delta_stack_explain(
		params->deltas[0], patch->base, params->base_tensor_digests, params->threads, err);
}

static void sum_up(struct patch *patch)
{
	struct delta_stats *const stats = &patch->stats;
	stats->tensors = schema_count(patch->schema);
	stats->full_bytes = schema_bytes(patch->schema);
	for (size_t i = 0; i < stats->tensors; i++) {
		const struct schema_tensor *const tensor = schema_tensor(patch->schema, i);
		stats->elements += tensor->bytes * 8 / dtype_bits(tensor->dtype);
		stats->changed_tensors += !patch->same[i];
	}
	for (size_t level = 1; level <= patch->params->delta_count; level++) {
		const struct delta_reader *const reader = delta_stack_reader(patch->stack, level);
		uint64_t changed = 0;
		stats->delta_bytes += delta_reader_bytes(reader);
		stats->changed_elements += delta_reader_changed(reader, &changed) ? changed : 0;
	}
}
