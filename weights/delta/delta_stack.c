/* Each level owns its delta's reader, its list of files and its source, which reads from the source
 * of the level below. Levels are closed from the top down. A link between two deltas is checked by
 * digests if both have them, else by ids, else by steps. */
#include "weights/delta/delta_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta/delta_source.h"
#include "weights/delta/pulse_hash.h"

struct level {
	struct tensor_source *source;
	const struct model_files *files;
	struct model_files own_files;
	struct delta_reader *reader;
	const char *path;
};

struct delta_stack {
	struct level *levels; /* the first one borrows its parts */
	size_t count;
};

static int open_level(struct delta_stack *stack, size_t number, struct error *err);
static int read_files(struct level *level, const struct level *below, struct error *err);
static int check_link(const struct delta_stack *stack, size_t level, struct error *err);
static int wrong_link(
	const struct level *before, const char *wanted, const char *actual, struct error *err);
static bool is_explained_by_base(enum error_kind kind);
static struct digest128 digest_of(struct tensor_source *base, const struct digest128 *given,
	unsigned threads, bool *out_known);

int delta_stack_blame(const struct delta_reader *reader, const char *path, struct error *err)
{
	if (reader != NULL)
		return delta_reader_blame(reader, err);
	return strstr(err->text, path) != NULL ? -1 : error_wrap(err, "the delta '%s'", path);
}

struct delta_stack *delta_stack_open(struct tensor_source *base,
	const struct model_files *base_files, const char *const *paths, size_t count,
	struct error *err)
{
	ASSERT(base != NULL);
	ASSERT(paths != NULL || count == 0);
	struct delta_stack *const stack = memory_new(sizeof(*stack));
	stack->levels = memory_new_array(count + 1, sizeof(stack->levels[0]));
	stack->count = 1;
	stack->levels[0] = (struct level){.source = base, .files = base_files};
	for (size_t i = 0; i < count; i++) {
		stack->levels[stack->count].path = paths[i];
		stack->count++;
		if (open_level(stack, i + 1, err) != 0) {
			delta_stack_close(stack);
			return NULL;
		}
	}
	return stack;
}

void delta_stack_close(struct delta_stack *stack)
{
	if (stack == NULL)
		return;
	for (size_t i = stack->count; i-- > 1;) {
		struct level *const level = &stack->levels[i];
		tensor_source_free(level->source);
		model_files_release(&level->own_files);
		delta_reader_close(level->reader);
	}
	free(stack->levels);
	free(stack);
}

size_t delta_stack_levels(const struct delta_stack *stack)
{
	return stack->count;
}

struct tensor_source *delta_stack_source(const struct delta_stack *stack, size_t level)
{
	ASSERT(level < stack->count);
	return stack->levels[level].source;
}

const struct model_files *delta_stack_files(const struct delta_stack *stack, size_t level)
{
	ASSERT(level < stack->count);
	return stack->levels[level].files;
}

const struct delta_reader *delta_stack_reader(const struct delta_stack *stack, size_t level)
{
	ASSERT(level >= 1 && level < stack->count);
	return stack->levels[level].reader;
}

bool delta_stack_changes(const struct delta_stack *stack, struct span tensor)
{
	bool changes = false;
	for (size_t level = 1; level < stack->count && !changes; level++) {
		const struct delta_entry *const entry =
			delta_reader_find(stack->levels[level].reader, tensor);
		/* TRL has entries for parameters that did not change. */
		changes = entry != NULL && (entry->kind != DELTA_ENTRY_SPARSE || entry->count > 0);
	}
	return changes;
}

bool delta_stack_digest(const struct delta_stack *stack, size_t level, struct digest128 *out_digest)
{
	ASSERT(level < stack->count);
	const struct delta_metadata *const below =
		level > 0 ? delta_reader_metadata(stack->levels[level].reader) : NULL;
	const struct delta_metadata *const above = level + 1 < stack->count
		? delta_reader_metadata(stack->levels[level + 1].reader)
		: NULL;
	if (below != NULL && below->has_result_digest)
		*out_digest = below->result_digest;
	else if (above != NULL && above->has_base_digest)
		*out_digest = above->base_digest;
	else
		return false;
	return true;
}

void delta_stack_count(struct delta_stack *stack, uint64_t *changed)
{
	ASSERT(stack->count > 1);
	delta_source_count(stack->levels[stack->count - 1].source, changed);
}

int delta_stack_prove(const struct delta_stack *stack, struct error *err)
{
	const struct level *const top = &stack->levels[stack->count - 1];
	if (top->reader == NULL || !delta_reader_metadata(top->reader)->has_hash)
		return 0;
	if (pulse_hash_check(top->source, delta_reader_metadata(top->reader)->hash, err) == 0)
		return 0;
	return delta_stack_blame(top->reader, top->path, err);
}

int delta_stack_explain(const char *path, struct tensor_source *base,
	const struct digest128 *base_digests, unsigned threads, struct error *err)
{
	struct error ignored;
	struct delta_reader *const reader =
		is_explained_by_base(err->kind) ? delta_reader_open(path, &ignored) : NULL;
	const struct delta_metadata *const metadata =
		reader != NULL ? delta_reader_metadata(reader) : NULL;
	bool known = false;
	if (metadata != NULL && metadata->has_base_digest) {
		const struct digest128 actual = digest_of(base, base_digests, threads, &known);
		char wanted_text[DIGEST128_TEXT_BYTES];
		char actual_text[DIGEST128_TEXT_BYTES];
		digest128_format(&metadata->base_digest, wanted_text);
		digest128_format(&actual, actual_text);
		if (known && !digest128_equal(&actual, &metadata->base_digest)) {
			error_set(err, ERROR_WRONG_BASE,
				"the delta was made from the base %s; this base is %s", wanted_text,
				actual_text);
			delta_stack_blame(reader, path, err);
		}
	}
	delta_reader_close(reader);
	return -1;
}

static int open_level(struct delta_stack *stack, size_t number, struct error *err)
{
	struct level *const level = &stack->levels[number];
	const struct level *const below = &stack->levels[number - 1];
	level->reader = delta_reader_open(level->path, err);
	if (level->reader == NULL || check_link(stack, number, err) != 0)
		return delta_stack_blame(level->reader, level->path, err);
	if (read_files(level, below, err) != 0)
		return delta_stack_blame(level->reader, level->path, err);
	level->source = delta_source_new(level->reader, below->source, err);
	if (level->source == NULL ||
		(level->files != NULL &&
			model_files_check(level->files, below->source->schema, err) != 0))
		return delta_stack_blame(level->reader, level->path, err);
	return 0;
}

static int read_files(struct level *level, const struct level *below, struct error *err)
{
	if (below->files == NULL)
		return 0;
	level->files = &level->own_files;
	return model_files_after(&level->own_files, below->files, level->reader, level->path, err);
}

/* Checks that a delta follows the one before it, as far as their metadata says. */
static int check_link(const struct delta_stack *stack, size_t level, struct error *err)
{
	if (level < 2)
		return 0;
	const struct level *const before = &stack->levels[level - 1];
	const struct delta_metadata *const first = delta_reader_metadata(before->reader);
	const struct delta_metadata *const second =
		delta_reader_metadata(stack->levels[level].reader);
	char wanted[DIGEST128_TEXT_BYTES];
	char actual[DIGEST128_TEXT_BYTES];
	if (first->has_result_digest && second->has_base_digest) {
		digest128_format(&second->base_digest, wanted);
		digest128_format(&first->result_digest, actual);
		return digest128_equal(&first->result_digest, &second->base_digest)
			? 0
			: wrong_link(before, wanted, actual, err);
	}
	if (delta_metadata_ids_differ(first, second))
		return wrong_link(before, "another version", "its own", err);
	snprintf(wanted, sizeof(wanted), "step %" PRIu64, second->base_step);
	snprintf(actual, sizeof(actual), "step %" PRIu64, first->step);
	if (first->has_step && second->has_base_step)
		return first->step == second->base_step ? 0
							: wrong_link(before, wanted, actual, err);
	snprintf(wanted, sizeof(wanted), "a step before %" PRIu64, second->step);
	if (first->has_step && second->has_step && second->step > 0 && second->step <= first->step)
		return wrong_link(before, wanted, actual, err);
	return 0;
}

static int wrong_link(
	const struct level *before, const char *wanted, const char *actual, struct error *err)
{
	return error_set(err, ERROR_WRONG_BASE,
		"it was made from %s, and '%s' before it gives %s: a delta is missing,"
		" or the order is wrong",
		wanted, before->path, actual);
}

static bool is_explained_by_base(enum error_kind kind)
{
	return kind == ERROR_INVALID || kind == ERROR_DIGEST_MISMATCH ||
		kind == ERROR_SCHEMA_MISMATCH || kind == ERROR_WRONG_BASE;
}

static struct digest128 digest_of(struct tensor_source *base, const struct digest128 *given,
	unsigned threads, bool *out_known)
{
	struct error ignored;
	struct digest128 digest = {0};
	struct digest128 *const made = given == NULL
		? memory_new_array(schema_count(base->schema), sizeof(made[0]))
		: NULL;
	*out_known = given != NULL || tensor_source_digests(base, threads, made, &ignored) == 0;
	if (*out_known)
		digest = schema_checkpoint_digest(base->schema, given != NULL ? given : made);
	free(made);
	return digest;
}
