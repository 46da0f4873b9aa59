#include "library/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "library/call.h"
#include "library/sized.h"
#include "weights/codec/dtype.h"

struct deltabucket_step {
	struct held_step *held;
	char **names; /* schema order; the schema's do not end in a zero byte */
};

static int read_changes(const struct deltabucket_step *step, size_t index,
	deltabucket_changes_fn *found, void *owner, struct error *err);

struct deltabucket_step *library_step_new(struct held_step *held)
{
	struct deltabucket_step *const step = memory_new(sizeof(*step));
	const struct schema *const schema = held_step_schema(held);
	step->held = held;
	step->names = memory_new_array(schema_count(schema) + 1, sizeof(step->names[0]));
	for (size_t i = 0; i < schema_count(schema); i++) {
		const struct span name = schema_tensor(schema, i)->name;
		step->names[i] = memory_new(name.len + 1);
		memcpy(step->names[i], name.data, name.len);
	}
	return step;
}

void deltabucket_step_free(struct deltabucket_step *step)
{
	if (step == NULL)
		return;
	for (size_t i = 0; i < schema_count(held_step_schema(step->held)); i++)
		free(step->names[i]);
	free(step->names);
	held_step_free(step->held);
	free(step);
}

void deltabucket_step_facts(const struct deltabucket_step *step, struct deltabucket_step_facts *out)
{
	const struct held_step_facts *const facts = held_step_facts(step->held);
	struct error ignored = {0};
	struct deltabucket_step_facts made = {
		.number = facts->number,
		.label = facts->label,
		.created_ms = facts->created_ms,
		.newest = facts->newest,
		.path = facts->path,
		.tensor_count = schema_count(held_step_schema(step->held)),
		.delta_count = facts->delta_count,
		.fetched_bytes = facts->fetched_bytes,
	};
	_Static_assert((int)DELTABUCKET_DIGEST_BYTES == (int)DIGEST128_TEXT_BYTES,
		"a digest's text fits exactly");
	digest128_format(&facts->digest, made.digest);
	sized_give(out, &made, sizeof(made), "deltabucket_step_facts", &ignored);
}

void deltabucket_step_tensor(
	const struct deltabucket_step *step, size_t index, struct deltabucket_tensor *out)
{
	const struct schema *const schema = held_step_schema(step->held);
	*out = (struct deltabucket_tensor){0};
	if (index >= schema_count(schema))
		return;
	const struct schema_tensor *const tensor = schema_tensor(schema, index);
	out->name = step->names[index];
	out->dtype = dtype_name(tensor->dtype);
	out->shape = tensor->shape;
	out->rank = tensor->rank;
	out->data = (void *)(uintptr_t)held_step_tensor(step->held, index);
	out->bytes = tensor->bytes;
}

const char *deltabucket_step_delta(const struct deltabucket_step *step, size_t index)
{
	const struct held_step_facts *const facts = held_step_facts(step->held);
	return index < facts->delta_count ? facts->deltas[index] : NULL;
}

int deltabucket_step_changes(const struct deltabucket_step *step, size_t index,
	deltabucket_changes_fn *found, void *owner, struct deltabucket_error *err)
{
	struct error failure = {0};
	int result = library_check(step, "step", &failure);
	if (result == 0)
		result = read_changes(step, index, found, owner, &failure);
	return result == 0 ? 0 : library_error_give(&failure, err);
}

static int read_changes(const struct deltabucket_step *step, size_t index,
	deltabucket_changes_fn *found, void *owner, struct error *err)
{
	const size_t count = schema_count(held_step_schema(step->held));
	struct held_step_changes changes;
	if (index >= count)
		return error_set(err, ERROR_INVALID,
			"the step has %zu tensors, so there is not one with the index %zu", count,
			index);
	if (found == NULL)
		return error_set(err, ERROR_INVALID, "found is NULL");
	if (held_step_changes(step->held, index, &changes, err) != 0)
		return -1;
	found(owner, changes.positions, changes.values, changes.count);
	free(changes.positions);
	free(changes.values);
	return 0;
}
