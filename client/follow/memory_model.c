#include "client/follow/memory_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/local/memory_places.h"
#include "client/local/private_folder.h"

enum { SPARE_BYTES = 16 * 1024 * 1024 }; /* for sidecars and parts of downloads */

struct memory_model {
	const struct file_ops *files;
	const char *const *parents;
	size_t parent; /* the index of the parent in use */
	struct private_folder private;
	char *folder; /* below the private one, which has a lock of its own */
	struct live_checkpoint *live;
};

static int make_in(struct memory_model *model, size_t first, struct error *err);
static int find_parent(
	const struct memory_model *model, uint64_t bytes, size_t *out_parent, struct error *err);
static bool has_room(const struct memory_model *model, const char *parent, uint64_t bytes);

const char **memory_model_parents(void)
{
	const char **const parents = memory_new_array(3, sizeof(parents[0]));
	const struct memory_places places = memory_places_find();
	parents[0] = places.memory;
	parents[1] = places.disk;
	return parents;
}

struct memory_model *memory_model_new(
	const struct file_ops *files, const char *const *parents, struct error *err)
{
	ASSERT(parents[0] != NULL);
	struct memory_model *const model = memory_new(sizeof(*model));
	model->files = files;
	model->parents = parents;
	model->private.lock_fd = -1;
	if (make_in(model, 0, err) == 0)
		return model;
	memory_model_free(model);
	return NULL;
}

void memory_model_free(struct memory_model *model)
{
	if (model == NULL)
		return;
	live_checkpoint_free(model->live); /* whoever holds it keeps the data */
	private_folder_remove(&model->private);
	free(model->folder);
	free(model);
}

const char *memory_model_folder(const struct memory_model *model)
{
	return model->folder;
}

int memory_model_make_room(
	struct memory_model *model, uint64_t bytes, const struct output *output, struct error *err)
{
	size_t parent = model->parent;
	ASSERT(model->live == NULL);
	if (find_parent(model, bytes, &parent, err) != 0)
		return -1;
	if (parent == model->parent)
		return 0;
	output_note(output, "%s has no room for the weights; they go to %s, which may be slower",
		model->parents[model->parent], model->parents[parent]);
	private_folder_remove(&model->private);
	return make_in(model, parent, err) == 0 ? 1 : -1;
}

int memory_model_map(struct memory_model *model, const char *folder, struct error *err)
{
	ASSERT(model->live == NULL);
	model->live = live_checkpoint_open(model->files, folder, err);
	return model->live != NULL ? 0 : -1;
}

void memory_model_unmap(struct memory_model *model)
{
	if (model->live == NULL)
		return;
	live_checkpoint_drop(model->live);
	live_checkpoint_free(model->live);
	model->live = NULL;
}

struct live_checkpoint *memory_model_live(const struct memory_model *model)
{
	return model->live;
}

/* Makes the folder in the first parent from `first` on that can take one. */
static int make_in(struct memory_model *model, size_t first, struct error *err)
{
	int result = -1;
	for (size_t i = first; model->parents[i] != NULL && result != 0; i++) {
		model->parent = i;
		private_folder_remove(&model->private);
		result = private_folder_make(&model->private, model->files, model->parents[i], err);
	}
	free(model->folder);
	model->folder = result == 0 ? folder_files_join(model->private.path, "weights") : NULL;
	return result;
}

/* The parent in use has the first choice. */
static int find_parent(
	const struct memory_model *model, uint64_t bytes, size_t *out_parent, struct error *err)
{
	for (size_t i = model->parent; model->parents[i] != NULL; i++)
		if (has_room(model, model->parents[i], bytes)) {
			*out_parent = i;
			return 0;
		}
	for (size_t i = 0; i < model->parent; i++)
		if (has_room(model, model->parents[i], bytes)) {
			*out_parent = i;
			return 0;
		}
	return error_set(err, ERROR_NO_SPACE,
		"the weights need %" PRIu64 " bytes, and neither %s nor a folder for temporary "
		"files has them; follow into a folder with more room",
		bytes, model->parents[0]);
}

static bool has_room(const struct memory_model *model, const char *parent, uint64_t bytes)
{
	struct file_space space;
	return model->files->space(model->files, parent, &space) == 0 &&
		space.free >= SPARE_BYTES && space.free - SPARE_BYTES >= bytes;
}
