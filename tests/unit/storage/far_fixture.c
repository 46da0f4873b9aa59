#include "tests/unit/storage/far_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	char *name;
	bool is_staged; /* it lies in memory */
	bool is_opened; /* by a name that is stored, for reading */
};
struct far_block {
	char *name; /* of its file */
	uint64_t number;
	bool has_failed; /* the next read of it fails */
};
struct far_fetch {
	struct far_fetch *next;
	char *name;
	uint64_t offset;
	uint64_t length;
	backend_wake_fn *wake;
	void *owner;
};

static struct far_backend *far_of(struct backend *backend)
{
	return (struct far_backend *)backend;
}

static struct backend_file *inner_of(struct backend_file *file)
{
	return ((struct far_file *)file)->inner;
}

static bool is_reactor(const struct far_fixture *place)
{
	return atomic_load(&place->has_reactor) && pthread_equal(place->reactor, pthread_self());
}

/* Before the place is asked, which takes long. */
static int check(struct backend *backend, struct error *err)
{
	ck_assert_msg(!is_reactor(far_of(backend)->place), "A reactor waits for a network.");
	return atomic_load(&far_of(backend)->place->is_away)
		? error_set(err, ERROR_UPSTREAM, "The place does not answer.")
		: 0;
}

static struct far_file *file_of(
	struct backend *backend, struct backend_file *inner, const char *name)
{
	struct far_file *const file = memory_new(sizeof(*file));
	file->base.backend = backend;
	file->inner = inner;
	file->name = memory_copy_text(name);
	return file;
}

static int far_create(struct backend *backend, const char *name, struct backend_file **out_file,
	struct error *err)
{
	struct backend *const folder = far_of(backend)->folder;
	struct backend_file *inner;
	if (check(backend, err) != 0 || folder->ops->create(folder, name, &inner, err) != 0)
		return -1;
	*out_file = &file_of(backend, inner, name)->base;
	return 0;
}

static int far_create_staged(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	struct backend *const staged = far_of(backend)->staged;
	struct backend_file *inner;
	if (staged->ops->create(staged, name, &inner, err) != 0)
		return -1;
	struct far_file *const file = file_of(backend, inner, name);
	file->is_staged = true;
	*out_file = &file->base;
	return 0;
}

static int far_open(struct backend *backend, const char *name, struct backend_file **out_file,
	struct error *err)
{
	struct backend *const staged = far_of(backend)->staged;
	struct backend *const folder = far_of(backend)->folder;
	struct backend_file *inner;
	struct error ignored;
	const bool is_staged = staged->ops->open(staged, name, &inner, &ignored) == 0;
	if (!is_staged &&
		(check(backend, err) != 0 || folder->ops->open(folder, name, &inner, err) != 0))
		return -1;
	struct far_file *const file = file_of(backend, inner, name);
	file->is_opened = !is_staged;
	*out_file = &file->base;
	return 0;
}

/* A near or failed block; NULL: there is none. The mutex is held. */
static struct far_block *find_block(
	const struct far_fixture *place, const char *name, uint64_t number)
{
	for (size_t i = 0; i < place->block_count; i++)
		if (place->blocks[i].number == number && strcmp(place->blocks[i].name, name) == 0)
			return &place->blocks[i];
	return NULL;
}

static void drop_block(struct far_fixture *place, struct far_block *block)
{
	free(block->name);
	*block = place->blocks[--place->block_count];
}

static void add_block(struct far_fixture *place, const char *name, uint64_t number, bool has_failed)
{
	struct far_block *block = find_block(place, name, number);
	if (block == NULL) {
		place->blocks =
			memory_grow(place->blocks, place->block_count + 1, sizeof(*place->blocks));
		block = &place->blocks[place->block_count++];
		*block = (struct far_block){.name = memory_copy_text(name), .number = number};
	}
	block->has_failed = has_failed;
}

static bool far_is_near(struct backend_file *base, uint64_t offset, uint64_t length)
{
	const struct far_file *const file = (const struct far_file *)base;
	struct far_fixture *const place = far_of(base->backend)->place;
	bool is_near = true;
	if (!file->is_opened || !atomic_load(&place->is_cold))
		return true;
	pthread_mutex_lock(&place->mutex);
	for (uint64_t at = offset / FAR_BLOCK_BYTES; at * FAR_BLOCK_BYTES < offset + length; at++)
		is_near = is_near && find_block(place, file->name, at) != NULL;
	pthread_mutex_unlock(&place->mutex);
	return is_near;
}

/* Ends the fetch. If the place is away, the next read of its blocks fails. */
static void end_fetch(struct far_fixture *place, struct far_fetch *fetch)
{
	const bool has_failed = atomic_load(&place->is_away);
	pthread_mutex_lock(&place->mutex);
	for (uint64_t at = fetch->offset / FAR_BLOCK_BYTES;
		at * FAR_BLOCK_BYTES < fetch->offset + fetch->length; at++)
		add_block(place, fetch->name, at, has_failed);
	pthread_mutex_unlock(&place->mutex);
	fetch->wake(fetch->owner);
	free(fetch->name);
	free(fetch);
}

static void far_fetch(struct backend_file *base, uint64_t offset, uint64_t length,
	backend_wake_fn *wake, void *owner)
{
	struct far_fixture *const place = far_of(base->backend)->place;
	struct far_fetch *const fetch = memory_new(sizeof(*fetch));
	*fetch = (struct far_fetch){.name = memory_copy_text(((struct far_file *)base)->name),
		.offset = offset,
		.length = length,
		.wake = wake,
		.owner = owner};
	atomic_fetch_add(&place->fetches, 1);
	if (!atomic_load(&place->holds_back)) {
		end_fetch(place, fetch);
		return;
	}
	pthread_mutex_lock(&place->mutex);
	fetch->next = place->held;
	place->held = fetch;
	pthread_mutex_unlock(&place->mutex);
}

bool far_fixture_let_go(struct far_fixture *place)
{
	pthread_mutex_lock(&place->mutex);
	struct far_fetch *fetch = place->held;
	place->held = NULL;
	pthread_mutex_unlock(&place->mutex);
	const bool has_some = fetch != NULL;
	while (fetch != NULL) {
		struct far_fetch *const next = fetch->next;
		end_fetch(place, fetch);
		fetch = next;
	}
	return has_some;
}

static void far_forget(struct backend_file *base, uint64_t offset, uint64_t length)
{
	const char *const name = ((struct far_file *)base)->name;
	struct far_fixture *const place = far_of(base->backend)->place;
	pthread_mutex_lock(&place->mutex);
	for (uint64_t at = offset / FAR_BLOCK_BYTES; at * FAR_BLOCK_BYTES < offset + length; at++) {
		struct far_block *const block = find_block(place, name, at);
		if (block != NULL)
			drop_block(place, block);
	}
	pthread_mutex_unlock(&place->mutex);
	if (atomic_load(&place->garbled) > 0)
		atomic_fetch_sub(&place->garbled, 1);
}

void far_fixture_cool(struct far_fixture *place)
{
	pthread_mutex_lock(&place->mutex);
	while (place->block_count > 0)
		drop_block(place, &place->blocks[0]);
	pthread_mutex_unlock(&place->mutex);
	atomic_store(&place->is_cold, true);
}

void far_fixture_play_reactor(struct far_fixture *place, bool plays)
{
	place->reactor = pthread_self();
	atomic_store(&place->has_reactor, plays);
}

/* Whether a fetch of these bytes has failed; only the read after it fails. */
static bool take_failure(
	struct far_fixture *place, const char *name, uint64_t offset, uint64_t length)
{
	bool has_failed = false;
	pthread_mutex_lock(&place->mutex);
	for (uint64_t at = offset / FAR_BLOCK_BYTES; at * FAR_BLOCK_BYTES < offset + length; at++) {
		struct far_block *const block = find_block(place, name, at);
		if (block != NULL && block->has_failed) {
			has_failed = true;
			drop_block(place, block);
		}
	}
	pthread_mutex_unlock(&place->mutex);
	return has_failed;
}

static uint64_t length_of(const struct iovec *parts, int count)
{
	uint64_t length = 0;
	for (int i = 0; i < count; i++)
		length += parts[i].iov_len;
	return length;
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
	struct far_fixture *const place = far_of(file->backend)->place;
	const struct far_file *const opened = (const struct far_file *)file;
	const uint64_t length = length_of(parts, count);
	if (!far_is_near(file, offset, length) && check(file->backend, err) != 0)
		return -1;
	if (opened->is_opened && take_failure(place, opened->name, offset, length))
		return error_set(err, ERROR_UPSTREAM, "The place does not answer.");
	const int result = inner->backend->ops->read(inner, parts, count, offset, err);
	if (opened->is_opened && atomic_load(&place->garbled) > 0)
		((uint8_t *)parts[count - 1].iov_base)[parts[count - 1].iov_len - 1] ^= 1;
	return result;
}

static int far_sync(struct backend_file *file, struct error *err)
{
	const struct far_file *const staged = (const struct far_file *)file;
	struct far_backend *const far = far_of(file->backend);
	struct buffer bytes;
	if (check(file->backend, err) != 0)
		return -1;
	if (!staged->is_staged)
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
	far_fixture_cool(far->place);
	atomic_store(&far->place->is_cold, false);
	free(far->place->blocks);
	far->place->blocks = NULL;
	pthread_mutex_destroy(&far->place->mutex);
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
		.is_near = far_is_near,
		.fetch = far_fetch,
		.forget = far_forget,
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
	pthread_mutex_init(&place->mutex, NULL);
	far->base.ops = &ops;
	far->place = place;
	far->folder = folder;
	far->staged = backend_memory_new();
	return &far->base;
}
