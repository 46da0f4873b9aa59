#include "storage/far/far_backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/net/s3/s3_listing.h"
#include "storage/far/block_cache.h"
#include "storage/far/far_upload.h"

enum { FETCHERS = 8, SENDERS = 8, OTHERS = 4, KEY_BYTES = 256 };
enum { PREFIX_BYTES = 1024, FOLDER_CHARACTERS = 2 };
static const size_t PART_BYTES = (size_t)16 * 1024 * 1024;

struct far_backend {
	struct backend base;        /* first */
	struct block_source source; /* of the cache */
	struct s3_client *client;
	struct block_cache *cache;
	struct far_uploads *uploads;
};
struct far_file {
	struct backend_file base; /* first */
	struct block_file *file;
	struct far_upload *upload; /* NULL: opened for reading */
	bool is_direct;            /* reads go to the store itself */
};
struct far_listing {
	backend_take_fn *take;
	void *taker;
};

static struct s3_client *open_client(const struct far_options *options, struct error *err);
static struct far_backend *far_of(struct backend *backend);
static struct far_file *file_of(struct backend_file *file);
static void key_of(const char *name, char out[KEY_BYTES]);
static int far_source_size(
	struct block_source *source, const char *name, uint64_t *out_bytes, struct error *err);
static int far_source_read(struct block_source *source, const char *name, uint64_t offset,
	struct iovec into, uint64_t *out_total, struct error *err);
static int far_backend_create(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int far_backend_create_staged(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int create_file(struct far_backend *far, const char *name, bool is_early,
	struct backend_file **out_file, struct error *err);
static struct far_file *file_new(struct far_backend *far, struct block_file *file);
static int far_backend_open_file(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int far_backend_open_uncached(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int far_backend_append(
	struct backend_file *base, struct span bytes, uint64_t offset, struct error *err);
static int far_backend_read(struct backend_file *base, const struct iovec *parts, int count,
	uint64_t offset, struct error *err);
static int read_direct(const struct far_file *file, const struct iovec *parts, int count,
	uint64_t offset, struct error *err);
static bool far_backend_is_near(struct backend_file *base, uint64_t offset, uint64_t length);
static void far_backend_fetch(struct backend_file *base, uint64_t offset, uint64_t length,
	backend_wake_fn *wake, void *owner);
static void far_backend_forget(struct backend_file *base, uint64_t offset, uint64_t length);
static int far_backend_sync(struct backend_file *base, struct error *err);
static int far_backend_truncate(struct backend_file *base, uint64_t length, struct error *err);
static int far_backend_size(struct backend_file *base, uint64_t *out_size, struct error *err);
static void far_backend_close(struct backend_file *base);
static int far_backend_put(
	struct backend *backend, const char *name, struct span bytes, struct error *err);
static void keep(struct far_backend *far, const char *name, struct span bytes);
static int far_backend_get(
	struct backend *backend, const char *name, struct buffer *out, struct error *err);
static bool get_kept(struct far_backend *far, const char *name, struct buffer *out);
static int far_backend_remove(struct backend *backend, const char *name, struct error *err);
static int far_backend_list(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
static int far_backend_take_object(void *taker, const struct s3_object *object, struct error *err);
static int far_backend_set_aside(struct backend *backend, const char *name, struct error *err);
static int far_backend_bring_back(struct backend *backend, const char *name, struct error *err);
static int far_backend_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
static int far_backend_sync_names(struct backend *backend, struct error *err);
static void far_backend_free(struct backend *backend);

static const struct backend_ops far_ops = {
	.create = far_backend_create,
	.create_staged = far_backend_create_staged,
	.open = far_backend_open_file,
	.open_uncached = far_backend_open_uncached,
	.append = far_backend_append,
	.read = far_backend_read,
	.is_near = far_backend_is_near,
	.fetch = far_backend_fetch,
	.forget = far_backend_forget,
	.sync = far_backend_sync,
	.truncate = far_backend_truncate,
	.size = far_backend_size,
	.close = far_backend_close,
	.put = far_backend_put,
	.put_derived = far_backend_put,
	.get = far_backend_get,
	.remove = far_backend_remove,
	.list = far_backend_list,
	.set_aside = far_backend_set_aside,
	.bring_back = far_backend_bring_back,
	.list_aside = far_backend_list_aside,
	.sync_names = far_backend_sync_names,
	.free = far_backend_free,
};

struct backend *far_backend_open(const struct far_options *options, struct error *err)
{
	struct far_backend *const far = memory_new(sizeof(*far));
	const struct block_cache_options cache = {.folder = options->cache_folder,
		.source = &far->source,
		.max_bytes = options->cache_bytes,
		.block_bytes = options->block_bytes,
		.threads = FETCHERS};
	far->base.ops = &far_ops;
	far->source = (struct block_source){.size = far_source_size, .read = far_source_read};
	far->client = open_client(options, err);
	far->cache = far->client != NULL ? block_cache_open(&cache, err) : NULL;
	if (far->cache == NULL) {
		s3_client_free(far->client);
		free(far);
		return NULL;
	}
	const struct far_uploads_options uploads = {.client = far->client,
		.cache = far->cache,
		.threads = SENDERS,
		.part_bytes = options->part_bytes != 0 ? options->part_bytes : PART_BYTES};
	far->uploads = far_uploads_open(&uploads);
	return &far->base;
}

static struct s3_client *open_client(const struct far_options *options, struct error *err)
{
	const struct far_place *const place = options->place;
	char prefix[PREFIX_BYTES];
	snprintf(prefix, sizeof(prefix), "%s%spacks/", place->prefix,
		place->prefix[0] != '\0' ? "/" : "");
	const struct s3_client_options client = {.endpoint = place->endpoint,
		.ca_file = options->ca_file,
		.bucket = place->bucket,
		.prefix = prefix,
		.signing = {.key_id = place->key_id,
			.secret = place->secret,
			.region = options->region},
		.connections = FETCHERS + SENDERS + OTHERS,
		.tries = options->tries,
		.pause_ms = options->pause_ms};
	return s3_client_open(&client, err);
}

static struct far_backend *far_of(struct backend *backend)
{
	return (struct far_backend *)backend;
}

static struct far_file *file_of(struct backend_file *file)
{
	return (struct far_file *)file;
}

static void key_of(const char *name, char out[KEY_BYTES])
{
	ASSERT(strlen(name) > FOLDER_CHARACTERS && strchr(name, '/') == NULL);
	const int len = snprintf(out, KEY_BYTES, "%.*s/%s", FOLDER_CHARACTERS, name, name);
	ASSERT(len > 0 && len < KEY_BYTES);
}

static int far_source_size(
	struct block_source *source, const char *name, uint64_t *out_bytes, struct error *err)
{
	const struct far_backend *const far = (const struct far_backend *)((const char *)source -
		offsetof(struct far_backend, source));
	char key[KEY_BYTES];
	key_of(name, key);
	return s3_client_head(far->client, key, out_bytes, err);
}

static int far_source_read(struct block_source *source, const char *name, uint64_t offset,
	struct iovec into, uint64_t *out_total, struct error *err)
{
	const struct far_backend *const far = (const struct far_backend *)((const char *)source -
		offsetof(struct far_backend, source));
	struct s3_range range = {.offset = offset, .length = into.iov_len, .into = into.iov_base};
	char key[KEY_BYTES];
	key_of(name, key);
	const int result = s3_client_get_range(far->client, key, &range, err);
	*out_total = range.total;
	return result;
}

static int far_backend_create(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	return create_file(far_of(backend), name, true, out_file, err);
}

static int far_backend_create_staged(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	return create_file(far_of(backend), name, false, out_file, err);
}

static int create_file(struct far_backend *far, const char *name, bool is_early,
	struct backend_file **out_file, struct error *err)
{
	char key[KEY_BYTES];
	struct block_file *const local = block_cache_create(far->cache, name, err);
	if (local == NULL)
		return -1;
	struct far_file *const file = file_new(far, local);
	key_of(name, key);
	file->upload = far_upload_new(far->uploads, name, key, is_early);
	*out_file = &file->base;
	return 0;
}

static struct far_file *file_new(struct far_backend *far, struct block_file *file)
{
	struct far_file *const made = memory_new(sizeof(*made));
	made->base.backend = &far->base;
	made->file = file;
	return made;
}

static int far_backend_open_file(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	struct far_backend *const far = far_of(backend);
	(void)err;
	*out_file = &file_new(far, block_cache_file(far->cache, name))->base;
	return 0;
}

static int far_backend_open_uncached(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	if (far_backend_open_file(backend, name, out_file, err) != 0)
		return -1;
	file_of(*out_file)->is_direct = true;
	return 0;
}

static int far_backend_append(
	struct backend_file *base, struct span bytes, uint64_t offset, struct error *err)
{
	struct far_file *const file = file_of(base);
	uint64_t length;
	ASSERT(file->upload != NULL);
	if (block_file_size(file->file, &length, err) != 0)
		return -1;
	if (offset < length)
		far_upload_cut(file->upload, offset);
	if (block_file_write(file->file, bytes, offset, err) != 0)
		return -1;
	far_upload_grow(file->upload, offset + bytes.len);
	return 0;
}

static int far_backend_read(struct backend_file *base, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	const struct far_file *const file = file_of(base);
	return file->is_direct ? read_direct(file, parts, count, offset, err)
			       : block_file_read(file->file, parts, count, offset, err);
}

static int read_direct(const struct far_file *file, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	struct far_backend *const far = far_of(file->base.backend);
	const char *const name = block_file_name(file->file);
	uint64_t total;
	int result = 0;
	for (int i = 0; i < count && result == 0; i++) {
		if (parts[i].iov_len > 0)
			result = far_source_read(&far->source, name, offset, parts[i], &total, err);
		offset += parts[i].iov_len;
	}
	return result;
}

static bool far_backend_is_near(struct backend_file *base, uint64_t offset, uint64_t length)
{
	return !file_of(base)->is_direct && block_file_is_near(file_of(base)->file, offset, length);
}

static void far_backend_fetch(struct backend_file *base, uint64_t offset, uint64_t length,
	backend_wake_fn *wake, void *owner)
{
	ASSERT(!file_of(base)->is_direct);
	block_file_fetch(file_of(base)->file, offset, length, wake, owner);
}

static void far_backend_forget(struct backend_file *base, uint64_t offset, uint64_t length)
{
	block_file_forget(file_of(base)->file, offset, length);
}

static int far_backend_sync(struct backend_file *base, struct error *err)
{
	const struct far_file *const file = file_of(base);
	uint64_t length;
	ASSERT(file->upload != NULL);
	if (block_file_size(file->file, &length, err) != 0 ||
		far_upload_finish(file->upload, length, err) != 0)
		return -1;
	block_file_stored(file->file);
	return 0;
}

static int far_backend_truncate(struct backend_file *base, uint64_t length, struct error *err)
{
	const struct far_file *const file = file_of(base);
	ASSERT(file->upload != NULL);
	far_upload_cut(file->upload, length);
	return block_file_truncate(file->file, length, err);
}

static int far_backend_size(struct backend_file *base, uint64_t *out_size, struct error *err)
{
	return block_file_size(file_of(base)->file, out_size, err);
}

static void far_backend_close(struct backend_file *base)
{
	struct far_file *const file = file_of(base);
	far_upload_free(file->upload);
	block_file_close(file->file);
	free(file);
}

static int far_backend_put(
	struct backend *backend, const char *name, struct span bytes, struct error *err)
{
	struct far_backend *const far = far_of(backend);
	char key[KEY_BYTES];
	key_of(name, key);
	(void)block_cache_remove(far->cache, name);
	if (far_upload_put(far->client, key, bytes, err) != 0)
		return -1;
	keep(far, name, bytes);
	return 0;
}

/* What the disk does not take is asked for again. */
static void keep(struct far_backend *far, const char *name, struct span bytes)
{
	struct error ignored;
	struct block_file *const file = block_cache_create(far->cache, name, &ignored);
	if (file == NULL)
		return;
	const bool is_kept = block_file_write(file, bytes, 0, &ignored) == 0;
	if (is_kept)
		block_file_stored(file);
	block_file_close(file);
	if (!is_kept)
		(void)block_cache_remove(far->cache, name);
}

static int far_backend_get(
	struct backend *backend, const char *name, struct buffer *out, struct error *err)
{
	struct far_backend *const far = far_of(backend);
	const size_t before = out->len;
	char key[KEY_BYTES];
	key_of(name, key);
	if (get_kept(far, name, out))
		return 0;
	if (s3_client_get(far->client, key, out, err) != 0)
		return -1;
	keep(far, name, span_slice(buffer_span(out), before, out->len - before));
	return 0;
}

/* What is not here whole, or cannot be read, is asked for. */
static bool get_kept(struct far_backend *far, const char *name, struct buffer *out)
{
	uint64_t bytes = 0;
	struct error ignored;
	struct block_file *const file = block_cache_whole(far->cache, name, &bytes);
	const bool has_room = file != NULL && bytes <= out->cap - out->len;
	struct iovec part = {.iov_len = (size_t)bytes};
	part.iov_base = has_room ? buffer_reserve(out, part.iov_len) : NULL;
	const bool is_read =
		part.iov_base != NULL && block_file_read(file, &part, 1, 0, &ignored) == 0;
	if (is_read)
		buffer_commit(out, part.iov_len);
	if (file != NULL)
		block_file_close(file);
	return is_read;
}

static int far_backend_remove(struct backend *backend, const char *name, struct error *err)
{
	struct far_backend *const far = far_of(backend);
	char key[KEY_BYTES];
	key_of(name, key);
	return block_cache_remove(far->cache, name) ? s3_client_remove(far->client, key, err) : 0;
}

static int far_backend_list(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	struct far_listing listing = {.take = take, .taker = taker};
	return s3_listing_objects(
		far_of(backend)->client, "", far_backend_take_object, &listing, err);
}

/* What lies elsewhere does not belong to the store. */
static int far_backend_take_object(void *taker, const struct s3_object *object, struct error *err)
{
	const struct far_listing *const listing = taker;
	const char *const slash = strchr(object->name, '/');
	const bool is_ours = slash == object->name + FOLDER_CHARACTERS &&
		strlen(slash + 1) > FOLDER_CHARACTERS && strchr(slash + 1, '/') == NULL &&
		strncmp(object->name, slash + 1, FOLDER_CHARACTERS) == 0;
	return is_ours ? listing->take(listing->taker, slash + 1, object->bytes, err) : 0;
}

static int far_backend_set_aside(struct backend *backend, const char *name, struct error *err)
{
	(void)backend, (void)name, (void)err;
	return 0;
}

static int far_backend_bring_back(struct backend *backend, const char *name, struct error *err)
{
	(void)backend;
	return error_set(err, ERROR_NOT_FOUND, "No object %s is set aside.", name);
}

static int far_backend_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	(void)backend, (void)take, (void)taker, (void)err;
	return 0;
}

/* A store has said of each removal that it is done. */
static int far_backend_sync_names(struct backend *backend, struct error *err)
{
	(void)backend, (void)err;
	return 0;
}

static void far_backend_free(struct backend *backend)
{
	struct far_backend *const far = far_of(backend);
	s3_client_cancel(far->client);
	far_uploads_close(far->uploads);
	block_cache_close(far->cache);
	s3_client_free(far->client);
	free(far);
}
