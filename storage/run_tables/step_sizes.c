/* A row's number chooses its slot, and the newest size in a slot stays. Numbers of rows are never
 * used again. */
#include "storage/run_tables/step_sizes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"

enum { SLOTS = 4096, MANIFEST_ARENA_BYTES = 64 * 1024 * 1024 };

struct step_sizes {
	struct lock lock;
	struct {
		int64_t step;
		uint64_t bytes;
	} slots[SLOTS]; /* guarded by lock */
};

static bool look(struct step_sizes *sizes, int64_t step, uint64_t *out_bytes);
static int read_size(struct db *db, const struct step_row *row, uint64_t *out, struct error *err);
static uint64_t add_up(const struct step_file *files, size_t count);
static void keep(struct step_sizes *sizes, int64_t step, uint64_t bytes);

struct step_sizes *step_sizes_new(void)
{
	struct step_sizes *const sizes = memory_new(sizeof(*sizes));
	lock_init(&sizes->lock, LOCK_STEP_SIZES);
	return sizes;
}

void step_sizes_free(struct step_sizes *sizes)
{
	if (sizes == NULL)
		return;
	lock_release(&sizes->lock);
	free(sizes);
}

int step_sizes_find(struct step_sizes *sizes, struct db *db, const struct step_row *row,
	uint64_t *out_bytes, struct error *err)
{
	ASSERT(row->id > 0 && row->state == STEP_KEPT);
	if (look(sizes, row->id, out_bytes))
		return 0;
	if (read_size(db, row, out_bytes, err) != 0)
		return -1;
	keep(sizes, row->id, *out_bytes);
	return 0;
}

static bool look(struct step_sizes *sizes, int64_t step, uint64_t *out_bytes)
{
	lock_enter(&sizes->lock);
	const bool found = sizes->slots[step % SLOTS].step == step;
	if (found)
		*out_bytes = sizes->slots[step % SLOTS].bytes;
	lock_leave(&sizes->lock);
	return found;
}

static int read_size(struct db *db, const struct step_row *row, uint64_t *out, struct error *err)
{
	struct arena *const arena = arena_new(MANIFEST_ARENA_BYTES);
	struct step_message step;
	struct span manifest;
	int result = step_row_load_manifest(db, row->id, arena, &manifest, NULL, err);
	if (result == 0)
		result = step_message_parse(manifest, arena, &step, err);
	if (result == 0)
		*out = add_up(step.files, step.file_count);
	arena_free(arena);
	return result;
}

static uint64_t add_up(const struct step_file *files, size_t count)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes = files[i].size > UINT64_MAX - bytes ? UINT64_MAX : bytes + files[i].size;
	return bytes;
}

static void keep(struct step_sizes *sizes, int64_t step, uint64_t bytes)
{
	lock_enter(&sizes->lock);
	sizes->slots[step % SLOTS].step = step;
	sizes->slots[step % SLOTS].bytes = bytes;
	lock_leave(&sizes->lock);
}
