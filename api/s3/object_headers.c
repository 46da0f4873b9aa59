#include "api/s3/object_headers.h"

#include <string.h>

static const char *const system_headers[] = {"cache-control", "content-disposition", "content-encoding", "content-language", "content-type",
	"expires", "x-amz-website-redirect-location"};
static const char meta_prefix[] = "x-amz-meta-";
static const char storage_class[] = "x-amz-storage-class";

enum { SYSTEM_HEADERS = sizeof(system_headers) / sizeof(system_headers[0]), HEADERS_MAX = OBJECT_HEADERS_META_MAX + SYSTEM_HEADERS + 1 };

struct collection {
	struct exchange *exchange;
	struct object_header *headers;
	size_t count;
	size_t meta_count; /* may pass OBJECT_HEADERS_META_MAX, headers beyond it are not kept */
};

static struct span lower_copy(struct arena *const arena, const struct span name)
{
	char *const copy = arena_text(arena, name);
	if (copy == NULL)
		return (struct span){0};
	for (size_t i = 0; i < name.len; i++) {
		if (copy[i] >= 'A' && copy[i] <= 'Z')
			copy[i] = (char)(copy[i] + ('a' - 'A'));
	}
	return span_of(copy, name.len);
}

static void add(struct collection *const collection, const struct span name, const struct span value)
{
	ASSERT(collection->count < HEADERS_MAX);
	const struct span copy = arena_copy(collection->exchange->arena, value);
	collection->headers[collection->count++] = (struct object_header){.name = name, .value = copy};
}

static bool has(const struct collection *const collection, const struct span name)
{
	for (size_t i = 0; i < collection->count; i++) {
		if (span_equal(collection->headers[i].name, name))
			return true;
	}
	return false;
}

static void take_meta(void *const taker, const struct span name, const struct span value)
{
	struct collection *const collection = taker;
	(void)value;
	const size_t prefix = sizeof(meta_prefix) - 1;
	if (name.len <= prefix || !span_equal_nocase(span_slice(name, 0, prefix), meta_prefix))
		return;
	const struct span lower = lower_copy(collection->exchange->arena, name);
	if (lower.data == NULL || has(collection, lower))
		return;
	if (collection->meta_count++ >= OBJECT_HEADERS_META_MAX)
		return;
	add(collection, lower, exchange_header(collection->exchange, (const char *)lower.data));
}

static void take_system(struct collection *const collection)
{
	for (size_t i = 0; i < SYSTEM_HEADERS; i++) {
		const struct span value = exchange_header(collection->exchange, system_headers[i]);
		if (value.len > 0)
			add(collection, span_text(system_headers[i]), value);
	}
	/* STANDARD is what S3 leaves unsaid. */
	const struct span class = exchange_header(collection->exchange, storage_class);
	if (class.len > 0 && !span_equal_text(class, "STANDARD"))
		add(collection, span_text(storage_class), class);
}

int object_headers_collect(struct exchange *const exchange, struct object_header **const out_headers, size_t *const out_count,
	struct error *const err)
{
	struct collection collection = {.exchange = exchange};
	collection.headers = arena_take_array(exchange->arena, HEADERS_MAX, sizeof(*collection.headers));
	if (collection.headers == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
	exchange->ops->each_header(exchange, take_meta, &collection);
	take_system(&collection);
	if (collection.meta_count > OBJECT_HEADERS_META_MAX)
		return error_set(err, ERROR_METADATA_TOO_LARGE, "The object has over %d x-amz-meta- headers.", OBJECT_HEADERS_META_MAX);
	if (arena_overflowed(exchange->arena))
		return error_set(err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
	*out_headers = collection.headers;
	*out_count = collection.count;
	return 0;
}
