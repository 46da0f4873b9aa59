/* A base has two levels. Level 0 is a checkpoint on disk: the trainer's own, or the copy of the
 * state's base. With the trainer's own, level 0 is the committed step. With the copy, a delta_stack
 * lies over it, with one delta for each step from the base to the committed step; so the copy is
 * never rewritten. */
#include "client/publish/publish_base.h"

#include <stdlib.h>

#include "base/memory.h"
#include "client/publish/publish_source.h"
#include "weights/model/checkpoint_source.h"

static int open_level_0(
	struct publish_base *base, struct checkpoint *checkpoint, struct error *err);
static int open_deltas(
	struct publish_base *base, const struct publish_state *state, struct error *err);

bool publish_base_find(struct publish_base *base, const struct publish_state *state)
{
	struct error ignored = {0};
	ASSERT(state->has_committed);
	*base = (struct publish_base){0};
	if (open_level_0(base, publish_source_find(state), &ignored) == 0)
		return true;
	publish_base_close(base);
	return false;
}

int publish_base_open(
	struct publish_base *base, const struct publish_state *state, struct error *err)
{
	struct error failure = {0};
	ASSERT(state->has_committed);
	*base = (struct publish_base){0};
	if (!state->has_base)
		return error_set(err, ERROR_WRONG_BASE,
			"there is no copy of the committed step in %s", state->folder);
	char *const path = publish_state_path(state, state->base.step, "checkpoint");
	int result = open_level_0(base, checkpoint_open(path, &failure), &failure);
	free(path);
	if (result == 0)
		result = open_deltas(base, state, &failure);
	if (result == 0)
		return 0;
	publish_base_close(base);
	return error_set(err, ERROR_WRONG_BASE,
		"the baseline in %s is damaged: it cannot be opened (%s)", state->folder,
		failure.text);
}

void publish_base_close(struct publish_base *base)
{
	delta_stack_close(base->stack);
	model_files_release(&base->files_0);
	tensor_source_free(base->level_0);
	checkpoint_close(base->checkpoint);
	*base = (struct publish_base){0};
}

/* Takes over the checkpoint, NULL included. A published step is always a folder, even when the
 * trainer's checkpoint is one file. */
static int open_level_0(struct publish_base *base, struct checkpoint *checkpoint, struct error *err)
{
	ASSERT(base->checkpoint == NULL && base->level_0 == NULL);
	base->checkpoint = checkpoint;
	if (checkpoint == NULL)
		return -1;
	base->level_0 = checkpoint_source_new(checkpoint);
	if (model_files_of(&base->files_0, checkpoint, err) != 0)
		return -1;
	base->files_0.is_folder = true;
	base->tensors = base->level_0;
	base->files = &base->files_0;
	return 0;
}

static int open_deltas(
	struct publish_base *base, const struct publish_state *state, struct error *err)
{
	ASSERT(state->has_base && state->committed.step >= state->base.step);
	const size_t count = (size_t)(state->committed.step - state->base.step);
	if (count == 0)
		return 0;
	char **const paths = memory_new_array(count, sizeof(*paths));
	for (size_t i = 0; i < count; i++)
		paths[i] = publish_state_path(state, state->base.step + 1 + i, "delta");
	base->stack = delta_stack_open(
		base->level_0, &base->files_0, (const char *const *)paths, count, err);
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
	if (base->stack == NULL)
		return -1;
	base->tensors = delta_stack_source(base->stack, count);
	base->files = delta_stack_files(base->stack, count);
	return 0;
}
