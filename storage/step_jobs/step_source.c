/* Level 0 is an anchor, read by ranges from the store (step_source_form.h). Deltas are fetched into
 * a scratch folder, since their readers want local files, and opened upon it as one stack. The
 * source gives the top level. */
#include "storage/step_jobs/step_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/objects/scratch.h"
#include "storage/step_jobs/step_source_form.h"
#include "weights/delta/delta_stack.h"
#include "weights/model/relative_path.h"

struct step_source {
	struct store *store;
	struct step_chain chain;
	struct step_form_source *start;
	struct scratch *scratch; /* NULL without deltas, as are the next two */
	char **paths;            /* one for each delta */
	struct delta_stack *stack;
};

static int open_stack(struct step_source *source, struct error *err);
static int fetch_delta(const struct step_source *source, size_t index, struct error *err);
static int fetch_object(const struct step_source *source, const char *folder,
	const struct step_source_object *object, struct error *err);
static char *object_path(
	const char *folder, const struct step_source_object *object, struct error *err);
static char *delta_path(const char *folder, const struct step_source_form *form);
static const struct step_source_object *find_in_delta(
	const struct step_source *source, size_t index, struct span path);

struct step_source *step_source_open(struct store *store, struct step_work *work, int64_t run,
	uint64_t step, enum step_source_via via, struct error *err)
{
	struct step_source *const source = memory_new(sizeof(*source));
	ASSERT(store != NULL);
	source->store = store;
	int result = step_chain_find(store, run, step, via, &source->chain, err);
	if (result == 0) {
		source->start = step_form_source_open(
			store, work, &source->chain.start, source->chain.schema, err);
		result = source->start == NULL ? -1 : open_stack(source, err);
	}
	if (result == 0)
		return source;
	step_source_close(source);
	return NULL;
}

void step_source_close(struct step_source *source)
{
	if (source == NULL)
		return;
	delta_stack_close(source->stack);
	for (size_t i = 0; i < source->chain.delta_count && source->paths != NULL; i++)
		free(source->paths[i]);
	free(source->paths);
	scratch_close(source->scratch);
	step_form_source_close(source->start);
	step_chain_release(&source->chain);
	free(source);
}

struct tensor_source *step_source_tensors(struct step_source *source)
{
	if (source->stack == NULL)
		return step_form_source_tensors(source->start);
	return delta_stack_source(source->stack, delta_stack_levels(source->stack) - 1);
}

const struct model_files *step_source_files(const struct step_source *source)
{
	if (source->stack == NULL)
		return step_form_source_files(source->start);
	return delta_stack_files(source->stack, delta_stack_levels(source->stack) - 1);
}

const struct step_chain *step_source_chain(const struct step_source *source)
{
	return &source->chain;
}

int64_t step_source_version(const struct step_source *source, struct span path)
{
	const struct model_file *const file = model_files_find(step_source_files(source), path);
	const struct step_source_object *object = NULL;
	if (file == NULL)
		return 0;
	if (file->is_shard && source->stack != NULL)
		return 0;
	for (size_t i = source->chain.delta_count; i-- > 0 && object == NULL;)
		object = find_in_delta(source, i, path);
	if (object == NULL)
		object = step_source_form_find(&source->chain.start, path);
	if (object == NULL && file->is_shard &&
		source->chain.start.count == 1) /* the list has it under the conventional name */
		object = &source->chain.start.objects[0];
	return object == NULL ? 0 : object->version;
}

bool step_source_count(struct step_source *source, uint64_t *changed)
{
	const struct step_chain *const chain = &source->chain;
	const size_t deltas = chain->delta_count;
	if (chain->start.step == chain->row.step)
		return false;
	if (deltas == 0 || chain->deltas[deltas - 1].step != chain->row.step)
		return true; /* its delta has no objects, so nothing changes */
	if (delta_reader_checkpoint(delta_stack_reader(source->stack, deltas)) != NULL)
		return false;
	delta_stack_count(source->stack, changed);
	return true;
}

static int open_stack(struct step_source *source, struct error *err)
{
	const size_t count = source->chain.delta_count;
	if (count == 0)
		return 0;
	source->paths = memory_new_array(count, sizeof(*source->paths));
	source->scratch = scratch_open(source->store, err);
	if (source->scratch == NULL)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (fetch_delta(source, i, err) != 0)
			return -1;
	source->stack = delta_stack_open(step_form_source_tensors(source->start),
		step_form_source_files(source->start), (const char *const *)source->paths, count,
		err);
	return source->stack == NULL ? -1 : 0;
}

static int fetch_delta(const struct step_source *source, size_t index, struct error *err)
{
	ASSERT(index < source->chain.delta_count && source->scratch != NULL);
	const struct step_source_form *const form = &source->chain.deltas[index];
	char number[24];
	snprintf(number, sizeof(number), "%zu", index);
	char *const folder = relative_path_join(scratch_path(source->scratch), span_text(number));
	int result = 0;
	for (size_t i = 0; i < form->count && result == 0; i++)
		result = fetch_object(source, folder, &form->objects[i], err);
	source->paths[index] = delta_path(folder, form);
	free(folder);
	return result;
}

static int fetch_object(const struct step_source *source, const char *folder,
	const struct step_source_object *object, struct error *err)
{
	char *const path = object_path(folder, object, err);
	const int result =
		path == NULL ? -1 : scratch_fetch(source->store, object->version, path, err);
	free(path);
	return result;
}

static char *object_path(
	const char *folder, const struct step_source_object *object, struct error *err)
{
	if (relative_path_is_valid(object->name))
		return relative_path_join(folder, object->name);
	error_set(err, ERROR_INVALID,
		"The delta has an object '%.*s', whose name is not a file name.",
		(int)object->name.len, (const char *)object->name.data);
	return NULL;
}

/* A delta of one safetensors file is opened as that file, whatever its name is. An index alone is a
 * folder in which nothing changed. */
static char *delta_path(const char *folder, const struct step_source_form *form)
{
	const bool is_file =
		form->count == 1 && span_ends_text(form->objects[0].name, ".safetensors");
	return is_file ? relative_path_join(folder, form->objects[0].name)
		       : memory_copy_text(folder);
}

/* The object that a delta brings for a whole file: below files/ in our layout, under the file's own
 * name in a full checkpoint. */
static const struct step_source_object *find_in_delta(
	const struct step_source *source, size_t index, struct span path)
{
	char name[STEP_NAME_MAX_BYTES + sizeof("files/")];
	ASSERT(index < source->chain.delta_count && source->stack != NULL);
	const struct step_source_form *const form = &source->chain.deltas[index];
	if (delta_reader_checkpoint(delta_stack_reader(source->stack, index + 1)) != NULL)
		return step_source_form_find(form, path);
	const int len =
		snprintf(name, sizeof(name), "files/%.*s", (int)path.len, (const char *)path.data);
	return len < 0 || (size_t)len >= sizeof(name)
		? NULL
		: step_source_form_find(form, span_of(name, (size_t)len));
}
