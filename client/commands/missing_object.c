#include "client/commands/missing_object.h"

#include "client/remote/missing_bucket.h"
#include "client/remote/remote_object.h"

enum { PREFIX_MAX_BYTES = 2048, PAGE_ARENA_BYTES = 16 * 1024 * 1024 };

static bool is_folder(struct remote *remote, const struct object_name *name);

int missing_object_explain(struct remote *remote, const struct object_name *name, struct error *err)
{
	const int bucket_len = (int)name->bucket.len;
	const char *const bucket = (const char *)name->bucket.data;
	const int key_len = (int)name->key.len;
	const char *const key = (const char *)name->key.data;
	missing_bucket_explain(remote, name->bucket, err);
	if (err->kind == ERROR_NO_KEY && is_folder(remote, name))
		error_advise(err,
			"it is a folder: `deltabucket sync %.*s/%.*s ./FOLDER` downloads what it "
			"contains",
			bucket_len, bucket, key_len, key);
	return -1;
}

/* Whether there are objects below the name. */
static bool is_folder(struct remote *remote, const struct object_name *name)
{
	struct buffer prefix;
	struct listing listing = {0};
	struct error ignored = {0};
	buffer_init(&prefix, PREFIX_MAX_BYTES);
	buffer_add_span(&prefix, name->key);
	if (name->key.len > 0 && name->key.data[name->key.len - 1] != '/')
		buffer_add_byte(&prefix, '/');
	struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
	const struct remote_object_page page = {.bucket = name->bucket,
		.prefix = buffer_span(&prefix),
		.delimiter = span_text("/")};
	const bool found = remote_object_list(remote, &page, arena, &listing, &ignored) == 0 &&
		listing.count > 0;
	arena_free(arena);
	buffer_release(&prefix);
	return found;
}
