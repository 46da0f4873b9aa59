/* What changed is known in memory from the patch, which saw each old element before it wrote the
 * new one. In a folder the generation that the deltas were applied to is still there. */
#include "client/follow/held_step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/codec/dtype.h"
#include "weights/model/checkpoint_source.h"

struct held_step {
	struct held_step_facts facts;
	struct checkpoint *checkpoint; /* in a folder, */
	char *base;                    /* made from this one; NULL: it came whole */
	struct checkpoint *before;     /* that one, since the first question for changes, */
	struct delta_changes *changes; /* which are found here, one tensor at a time */
	struct live_checkpoint *live;  /* or in memory, */
	uint64_t version;              /* as long as the weights have this version */
};

static void take_facts(
	struct held_step *step, const struct stepper *stepper, const struct stepper_round *round);
static int live_changes(const struct held_step *step, size_t index, struct held_step_changes *out,
	struct error *err);
static int folder_changes(
	struct held_step *step, size_t index, struct held_step_changes *out, struct error *err);
static int open_before(struct held_step *step, struct error *err);
static void take_changes(const struct delta_changes *changes, size_t index, const uint8_t *data,
	struct held_step_changes *out);

struct held_step *held_step_new(
	struct stepper *stepper, const struct stepper_round *round, struct error *err)
{
	ASSERT(stepper->folder.has_current);
	struct held_step *const step = memory_new(sizeof(*step));
	if (stepper->memory != NULL) {
		step->live = live_checkpoint_hold(memory_model_live(stepper->memory));
		step->version = live_checkpoint_version(step->live);
		step->facts.path = memory_copy_text("");
	} else {
		step->facts.path = follow_folder_current(&stepper->folder);
		step->checkpoint = checkpoint_open(step->facts.path, err);
	}
	take_facts(step, stepper, round);
	if (step->live != NULL || step->checkpoint != NULL)
		return step;
	held_step_free(step);
	return NULL;
}

void held_step_free(struct held_step *step)
{
	if (step == NULL)
		return;
	for (size_t i = 0; i < step->facts.delta_count; i++)
		free(step->facts.deltas[i]);
	free(step->facts.deltas);
	free(step->facts.label);
	free(step->facts.path);
	free(step->base);
	delta_changes_free(step->changes);
	checkpoint_close(step->before);
	checkpoint_close(step->checkpoint);
	live_checkpoint_free(step->live);
	free(step);
}

const struct held_step_facts *held_step_facts(const struct held_step *step)
{
	return &step->facts;
}

const struct schema *held_step_schema(const struct held_step *step)
{
	return step->live != NULL ? live_checkpoint_schema(step->live)
				  : checkpoint_schema(step->checkpoint);
}

const void *held_step_tensor(const struct held_step *step, size_t index)
{
	if (step->live == NULL)
		return checkpoint_tensor(step->checkpoint, index).data;
	return live_checkpoint_version(step->live) == step->version
		? live_checkpoint_tensor(step->live, index)
		: NULL;
}

int held_step_changes(
	struct held_step *step, size_t index, struct held_step_changes *out, struct error *err)
{
	*out = (struct held_step_changes){0};
	ASSERT(index < schema_count(held_step_schema(step)));
	if (step->facts.delta_count == 0)
		return error_set(err, ERROR_UNSUPPORTED,
			"step %" PRIu64 " came whole, so it has no changes from the step before",
			step->facts.number);
	return step->live != NULL ? live_changes(step, index, out, err)
				  : folder_changes(step, index, out, err);
}

static void take_facts(
	struct held_step *step, const struct stepper *stepper, const struct stepper_round *round)
{
	const struct follow_generation *const current = &stepper->folder.current;
	struct held_step_facts *const facts = &step->facts;
	facts->number = current->step;
	facts->digest = current->digest;
	facts->label = memory_copy_text(current->label);
	facts->created_ms = round->created_ms;
	facts->newest = stepper->has_newest && stepper->newest > current->step ? stepper->newest
									       : current->step;
	facts->fetched_bytes = round->moved ? round->fetched.bytes : 0;
	facts->deltas = memory_new_array(stepper->delta_count + 1, sizeof(facts->deltas[0]));
	facts->delta_count = stepper->delta_count;
	for (size_t i = 0; i < stepper->delta_count; i++)
		facts->deltas[i] = memory_copy_text(stepper->deltas[i]);
	step->base = memory_copy_text(stepper->base);
}

static int live_changes(const struct held_step *step, size_t index, struct held_step_changes *out,
	struct error *err)
{
	const struct delta_changes *const changes = live_checkpoint_changes(step->live);
	if (live_checkpoint_version(step->live) != step->version)
		return error_set(err, ERROR_NOT_FOUND,
			"a later step has taken the place of step %" PRIu64 " in memory",
			step->facts.number);
	if (changes == NULL)
		return error_set(err, ERROR_UNSUPPORTED,
			"what changed with step %" PRIu64
			" in memory was not kept; that takes a follower with keeps_changes",
			step->facts.number);
	take_changes(changes, index, held_step_tensor(step, index), out);
	return 0;
}

static int folder_changes(
	struct held_step *step, size_t index, struct held_step_changes *out, struct error *err)
{
	if (open_before(step, err) != 0)
		return error_wrap(err, "reading the step before step %" PRIu64, step->facts.number);
	struct tensor_source *const before = checkpoint_source_new(step->before);
	struct tensor_source *const now = checkpoint_source_new(step->checkpoint);
	const int result = delta_changes_compare(step->changes, before, now, index, err);
	if (result == 0)
		take_changes(step->changes, index, held_step_tensor(step, index), out);
	delta_changes_reset_tensor(step->changes, index);
	tensor_source_free(now);
	tensor_source_free(before);
	return result;
}

/* Once for all tensors: it reads the headers of all of them. */
static int open_before(struct held_step *step, struct error *err)
{
	ASSERT(step->base != NULL);
	if (step->before != NULL)
		return 0;
	struct checkpoint *const opened = checkpoint_open(step->base, err);
	if (opened == NULL)
		return -1;
	if (schema_check(checkpoint_schema(step->checkpoint), checkpoint_schema(opened), err) !=
		0) {
		checkpoint_close(opened);
		return -1;
	}
	step->before = opened;
	step->changes = delta_changes_new(checkpoint_schema(step->checkpoint));
	return 0;
}

/* Copies positions and the elements there. */
static void take_changes(const struct delta_changes *changes, size_t index, const uint8_t *data,
	struct held_step_changes *out)
{
	const struct schema *const schema = delta_changes_schema(changes);
	const size_t bits = dtype_bits(schema_tensor(schema, index)->dtype);
	const size_t unit = bits < 8 ? 1 : bits / 8;
	out->count = (size_t)delta_changes_count(changes, index);
	out->positions = memory_new_array(out->count + 1, sizeof(out->positions[0]));
	out->values = memory_new_array(out->count + 1, unit);
	delta_changes_positions(changes, index, out->positions);
	for (size_t i = 0; i < out->count; i++)
		memcpy(out->values + i * unit, data + out->positions[i] * unit, unit);
}
