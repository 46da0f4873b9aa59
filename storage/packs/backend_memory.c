/* Packs in memory, for tests and for trying things out: nothing outlives the process. One lock
 * guards everything. Blobs are counted, so that a removed one stays readable while it is open. */
#include "storage/packs/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"

struct memory_blob {
	struct memory_blob *next;
	unsigned references; /* one for the name and one for each open file */
	bool is_aside;
	uint8_t *data;
	size_t len;
	size_t capacity;
	char name[];
};
struct backend_memory {
	struct backend base;
	struct lock lock; /* of the pack store's class */
	struct memory_blob *blobs;
};
struct memory_file {
	struct backend_file base;
	struct memory_blob *blob;
};

struct memory_name {
	char *name;
	uint64_t size;
};

static int backend_memory_create(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static struct memory_blob **blob_find(struct backend_memory *memory, const char *name);
static struct backend_file *file_new(struct backend_memory *memory, struct memory_blob *blob);
static struct memory_blob *blob_add(struct backend_memory *memory, const char *name);
static int backend_memory_open(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int backend_memory_append(
	struct backend_file *base, struct span bytes, uint64_t offset, struct error *err);
static struct lock *lock_of(const struct backend_file *file);
static void blob_write(struct memory_blob *blob, struct span bytes, size_t offset);
static int backend_memory_read(struct backend_file *base, const struct iovec *parts, int count,
	uint64_t offset, struct error *err);
static int backend_memory_sync(struct backend_file *base, struct error *err);
static int backend_memory_truncate(struct backend_file *base, uint64_t length, struct error *err);
static int backend_memory_size(struct backend_file *base, uint64_t *out_size, struct error *err);
static void backend_memory_close(struct backend_file *base);
static void blob_unreference(struct memory_blob *blob);
static int backend_memory_put(
	struct backend *backend, const char *name, struct span bytes, struct error *err);
static int backend_memory_get(
	struct backend *backend, const char *name, struct buffer *out, struct error *err);
static int backend_memory_remove(struct backend *backend, const char *name, struct error *err);
static int backend_memory_list(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
static int list_blobs(struct backend_memory *memory, bool is_aside, backend_take_fn *take,
	void *taker, struct error *err);
static int backend_memory_set_aside(struct backend *backend, const char *name, struct error *err);
static int backend_memory_bring_back(struct backend *backend, const char *name, struct error *err);
static int backend_memory_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
static int backend_memory_sync_names(struct backend *backend, struct error *err);
static void backend_memory_free(struct backend *backend);

static const struct backend_ops memory_ops = {
	.create = backend_memory_create,
	.open = backend_memory_open,
	.open_uncached = backend_memory_open,
	.append = backend_memory_append,
	.read = backend_memory_read,
	.sync = backend_memory_sync,
	.truncate = backend_memory_truncate,
	.size = backend_memory_size,
	.close = backend_memory_close,
	.put = backend_memory_put,
	.put_derived = backend_memory_put,
	.get = backend_memory_get,
	.remove = backend_memory_remove,
	.list = backend_memory_list,
	.set_aside = backend_memory_set_aside,
	.bring_back = backend_memory_bring_back,
	.list_aside = backend_memory_list_aside,
	.sync_names = backend_memory_sync_names,
	.free = backend_memory_free,
};

struct backend *backend_memory_new(void)
{
	struct backend_memory *const memory = memory_new(sizeof(*memory));
	memory->base.ops = &memory_ops;
	lock_init(&memory->lock, LOCK_PACK_STORE);
	return &memory->base;
}

static int backend_memory_create(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	struct backend_memory *const memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	const bool taken = *blob_find(memory, name) != NULL;
	if (!taken)
		*out_file = file_new(memory, blob_add(memory, name));
	lock_leave(&memory->lock);
	return taken ? error_set(err, ERROR_EXISTS, "The memory file %s exists already.", name) : 0;
}

static struct memory_blob **blob_find(struct backend_memory *memory, const char *name)
{
	struct memory_blob **link = &memory->blobs;
	while (*link != NULL && ((*link)->is_aside || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	return link;
}

static struct backend_file *file_new(struct backend_memory *memory, struct memory_blob *blob)
{
	struct memory_file *const file = memory_new(sizeof(*file));
	file->base.backend = &memory->base;
	file->blob = blob;
	blob->references++;
	return &file->base;
}

static struct memory_blob *blob_add(struct backend_memory *memory, const char *name)
{
	struct memory_blob *const blob = memory_new(sizeof(*blob) + strlen(name) + 1);
	memcpy(blob->name, name, strlen(name) + 1);
	blob->references = 1;
	blob->next = memory->blobs;
	memory->blobs = blob;
	return blob;
}

static int backend_memory_open(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	struct backend_memory *const memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	struct memory_blob *const blob = *blob_find(memory, name);
	if (blob != NULL)
		*out_file = file_new(memory, blob);
	lock_leave(&memory->lock);
	return blob == NULL ? error_set(err, ERROR_NOT_FOUND, "There is no memory file %s.", name)
			    : 0;
}

static int backend_memory_append(
	struct backend_file *base, struct span bytes, uint64_t offset, struct error *err)
{
	(void)err;
	lock_enter(lock_of(base));
	blob_write(((struct memory_file *)base)->blob, bytes, (size_t)offset);
	lock_leave(lock_of(base));
	return 0;
}

static struct lock *lock_of(const struct backend_file *file)
{
	return &((struct backend_memory *)file->backend)->lock;
}

static void blob_write(struct memory_blob *blob, struct span bytes, size_t offset)
{
	ASSERT(offset <= blob->len);
	if (offset + bytes.len > blob->capacity) {
		blob->capacity = 2 * (offset + bytes.len);
		blob->data = memory_grow(blob->data, blob->capacity, 1);
	}
	if (bytes.len > 0)
		memcpy(blob->data + offset, bytes.data, bytes.len);
	if (offset + bytes.len > blob->len)
		blob->len = offset + bytes.len;
}

static int backend_memory_read(struct backend_file *base, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	const struct memory_blob *const blob = ((struct memory_file *)base)->blob;
	uint64_t at = offset;
	bool whole = true;
	lock_enter(lock_of(base));
	for (int i = 0; i < count && whole; i++) {
		whole = at <= blob->len && parts[i].iov_len <= blob->len - at;
		if (whole)
			memcpy(parts[i].iov_base, blob->data + at, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	lock_leave(lock_of(base));
	return whole ? 0
		     : error_set(err, ERROR_CORRUPT, "The memory file %s ends inside a record.",
			       blob->name);
}

static int backend_memory_sync(struct backend_file *base, struct error *err)
{
	(void)base;
	(void)err;
	return 0;
}

static int backend_memory_truncate(struct backend_file *base, uint64_t length, struct error *err)
{
	(void)err;
	struct memory_blob *const blob = ((struct memory_file *)base)->blob;
	lock_enter(lock_of(base));
	if (length < blob->len)
		blob->len = (size_t)length;
	lock_leave(lock_of(base));
	return 0;
}

static int backend_memory_size(struct backend_file *base, uint64_t *out_size, struct error *err)
{
	(void)err;
	lock_enter(lock_of(base));
	*out_size = ((struct memory_file *)base)->blob->len;
	lock_leave(lock_of(base));
	return 0;
}

static void backend_memory_close(struct backend_file *base)
{
	struct lock *const lock = lock_of(base);
	lock_enter(lock);
	blob_unreference(((struct memory_file *)base)->blob);
	lock_leave(lock);
	free(base);
}

static void blob_unreference(struct memory_blob *blob)
{
	ASSERT(blob->references > 0);
	if (--blob->references > 0)
		return;
	free(blob->data);
	free(blob);
}

static int backend_memory_put(
	struct backend *backend, const char *name, struct span bytes, struct error *err)
{
	(void)err;
	struct backend_memory *const memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	struct memory_blob *const old = *blob_find(memory, name);
	struct memory_blob *const blob = old != NULL ? old : blob_add(memory, name);
	blob->len = 0;
	blob_write(blob, bytes, 0);
	lock_leave(&memory->lock);
	return 0;
}

static int backend_memory_get(
	struct backend *backend, const char *name, struct buffer *out, struct error *err)
{
	struct backend_memory *const memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	const struct memory_blob *const blob = *blob_find(memory, name);
	if (blob != NULL)
		buffer_add(out, blob->data, blob->len);
	lock_leave(&memory->lock);
	return blob == NULL ? error_set(err, ERROR_NOT_FOUND, "There is no memory file %s.", name)
			    : buffer_check(out, name, err);
}

static int backend_memory_remove(struct backend *backend, const char *name, struct error *err)
{
	(void)err;
	struct backend_memory *const memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	struct memory_blob **const link = blob_find(memory, name);
	struct memory_blob *const blob = *link;
	if (blob != NULL) {
		*link = blob->next;
		blob_unreference(blob);
	}
	lock_leave(&memory->lock);
	return 0;
}

static int backend_memory_list(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	return list_blobs((struct backend_memory *)backend, false, take, taker, err);
}

/* Copies the names first, because `take` may remove files. */
static int list_blobs(struct backend_memory *memory, bool is_aside, backend_take_fn *take,
	void *taker, struct error *err)
{
	struct memory_name *names = NULL;
	size_t count = 0;
	size_t capacity = 0;
	lock_enter(&memory->lock);
	for (const struct memory_blob *blob = memory->blobs; blob != NULL; blob = blob->next) {
		if (blob->is_aside != is_aside)
			continue;
		names = memory_make_room(names, count, &capacity, sizeof(*names));
		names[count++] = (struct memory_name){
			.name = memory_copy_text(blob->name), .size = blob->len};
	}
	lock_leave(&memory->lock);
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = take(taker, names[i].name, names[i].size, err);
	for (size_t i = 0; i < count; i++)
		free(names[i].name);
	free(names);
	return result;
}

static int backend_memory_set_aside(struct backend *backend, const char *name, struct error *err)
{
	struct backend_memory *memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	struct memory_blob *blob = *blob_find(memory, name);
	if (blob != NULL)
		blob->is_aside = true;
	lock_leave(&memory->lock);
	return blob != NULL ? 0
			    : error_set(err, ERROR_NOT_FOUND, "There is no memory file %s.", name);
}

static int backend_memory_bring_back(struct backend *backend, const char *name, struct error *err)
{
	struct backend_memory *memory = (struct backend_memory *)backend;
	lock_enter(&memory->lock);
	/* the first that was set aside is the last in the list */
	struct memory_blob *blob = NULL;
	for (struct memory_blob *other = memory->blobs; other != NULL; other = other->next)
		if (other->is_aside && strcmp(other->name, name) == 0)
			blob = other;
	if (blob != NULL)
		blob->is_aside = false;
	lock_leave(&memory->lock);
	return blob != NULL
		? 0
		: error_set(err, ERROR_NOT_FOUND, "No memory file %s is set aside.", name);
}

static int backend_memory_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	return list_blobs((struct backend_memory *)backend, true, take, taker, err);
}

static int backend_memory_sync_names(struct backend *backend, struct error *err)
{
	(void)backend, (void)err;
	return 0;
}

static void backend_memory_free(struct backend *backend)
{
	struct backend_memory *const memory = (struct backend_memory *)backend;
	while (memory->blobs != NULL) {
		struct memory_blob *const blob = memory->blobs;
		memory->blobs = blob->next;
		blob_unreference(blob);
	}
	lock_release(&memory->lock);
	free(memory);
}
