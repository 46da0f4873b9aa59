#include "tests/unit/storage/far_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"

struct far_backend {
	struct backend base; /* first */
	struct far_fixture *place;
	struct backend *folder;
	struct backend *staged;
};
struct far_file {
	struct backend_file base; /* first */
	struct backend_file *inner;
	char *name; /* of a staged file; else NULL */
};

static struct far_backend *far_of(struct backend *backend)
{
	return (struct far_backend *)backend;
}

static struct backend_file *inner_of(struct backend_file *file)
{
	return ((struct far_file *)file)->inner;
}

static int check(struct backend *backend, struct error *err)
{
	return atomic_load(&far_of(backend)->place->is_away)
		? error_set(err, ERROR_UPSTREAM, "The place does not answer.")
		: 0;
}

static struct backend_file *file_of(
	struct backend *backend, struct backend_file *inner, const char *name)
{
	struct far_file *const file = memory_new(sizeof(*file));
	file->base.backend = backend;
	file->inner = inner;
	file->name = name != NULL ? memory_copy_text(name) : NULL;
	return &file->base;
}

static int far_create(struct backend *backend, const char *name, struct backend_file **out_file,
	struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	struct backend_file *inner;
	if (check(backend, err) != 0 || folder->ops->create(folder, name, &inner, err) != 0)
		return -1;
	*out_file = file_of(backend, inner, NULL);
	return 0;
}

static int far_create_staged(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	struct backend *const staged = far_of(backend)->staged;
	struct backend_file *inner;
	if (staged->ops->create(staged, name, &inner, err) != 0)
		return -1;
	*out_file = file_of(backend, inner, name);
	return 0;
}

static int far_open(struct backend *backend, const char *name, struct backend_file **out_file,
	struct error *err)
{
	struct backend *const staged = far_of(backend)->staged;
	struct backend *const folder = far_of(backend)->folder;
	struct backend_file *inner;
	struct error ignored;
	if (staged->ops->open(staged, name, &inner, &ignored) != 0 &&
		(check(backend, err) != 0 || folder->ops->open(folder, name, &inner, err) != 0))
		return -1;
	*out_file = file_of(backend, inner, NULL);
	return 0;
}

static int far_append(
	struct backend_file *file, struct span bytes, uint64_t offset, struct error *err)
{
	struct backend_file *const inner = inner_of(file);
	return inner->backend->ops->append(inner, bytes, offset, err);
}

static int far_read(struct backend_file *file, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	struct backend_file *const inner = inner_of(file);
	return inner->backend->ops->read(inner, parts, count, offset, err);
}

static int far_sync(struct backend_file *file, struct error *err)
{
	const struct far_file *const staged = (const struct far_file *)file;
	struct far_backend *const far = far_of(file->backend);
	struct buffer bytes;
	if (check(file->backend, err) != 0)
		return -1;
	if (staged->name == NULL)
		return staged->inner->backend->ops->sync(staged->inner, err);
	buffer_init(&bytes, SIZE_MAX);
	int result = far->staged->ops->get(far->staged, staged->name, &bytes, err);
	if (result == 0)
		result = far->folder->ops->put(far->folder, staged->name, buffer_span(&bytes), err);
	buffer_release(&bytes);
	atomic_fetch_add(&far->place->stored, result == 0 ? 1 : 0);
	return result;
}

static int far_truncate(struct backend_file *file, uint64_t length, struct error *err)
{
	struct backend_file *const inner = inner_of(file);
	return inner->backend->ops->truncate(inner, length, err);
}

static int far_size(struct backend_file *file, uint64_t *out_size, struct error *err)
{
	struct backend_file *const inner = inner_of(file);
	return inner->backend->ops->size(inner, out_size, err);
}

static void far_close(struct backend_file *file)
{
	struct far_file *const closed = (struct far_file *)file;
	closed->inner->backend->ops->close(closed->inner);
	free(closed->name);
	free(closed);
}

static int far_put(struct backend *backend, const char *name, struct span bytes, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return check(backend, err) != 0 ? -1 : folder->ops->put(folder, name, bytes, err);
}

static int far_get(struct backend *backend, const char *name, struct buffer *out, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return check(backend, err) != 0 ? -1 : folder->ops->get(folder, name, out, err);
}

static int far_remove(struct backend *backend, const char *name, struct error *err)
{
	struct backend *const staged = far_of(backend)->staged;
	struct backend *const folder = far_of(backend)->folder;
	if (staged->ops->remove(staged, name, err) != 0)
		return -1;
	return check(backend, err) != 0 ? -1 : folder->ops->remove(folder, name, err);
}

static int far_list(struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return check(backend, err) != 0 ? -1 : folder->ops->list(folder, take, taker, err);
}

static int far_set_aside(struct backend *backend, const char *name, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return folder->ops->set_aside(folder, name, err);
}

static int far_bring_back(struct backend *backend, const char *name, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return folder->ops->bring_back(folder, name, err);
}

static int far_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return folder->ops->list_aside(folder, take, taker, err);
}

static int far_sync_names(struct backend *backend, struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	return folder->ops->sync_names(folder, err);
}

static void far_free(struct backend *backend)
{
	struct far_backend *const far = far_of(backend);
	far->folder->ops->free(far->folder);
	far->staged->ops->free(far->staged);
	free(far);
}

struct backend *far_fixture_open(void *fixture, struct error *err)
{
	static const struct backend_ops ops = {.create = far_create,
		.create_staged = far_create_staged,
		.open = far_open,
		.open_uncached = far_open,
		.append = far_append,
		.read = far_read,
		.sync = far_sync,
		.truncate = far_truncate,
		.size = far_size,
		.close = far_close,
		.put = far_put,
		.put_derived = far_put,
		.get = far_get,
		.remove = far_remove,
		.list = far_list,
		.set_aside = far_set_aside,
		.bring_back = far_bring_back,
		.list_aside = far_list_aside,
		.sync_names = far_sync_names,
		.free = far_free};
	struct far_fixture *const place = fixture;
	char aside[4096];
	snprintf(aside, sizeof(aside), "%s/set-aside", place->folder);
	struct backend *const folder = backend_folder_open(place->folder, aside, NULL, err);
	if (folder == NULL)
		return NULL;
	struct far_backend *const far = memory_new(sizeof(*far));
	far->base.ops = &ops;
	far->place = place;
	far->folder = folder;
	far->staged = backend_memory_new();
	return &far->base;
}
