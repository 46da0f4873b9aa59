/* Stored headers are collected in two walks: the first counts x-amz-meta-* headers, so that one
 * array in the arena is enough; the second takes each name once, with the value in which the
 * exchange has joined its repeats. For PostObject the headers are the fields of a form, whose names
 * and values can be anything, so they are checked before they are stored. */
#include "api/s3/object/object_headers.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/s3/bucket/bucket_acl.h"
#include "api/s3/request/acl.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/tagging.h"
#include "storage/objects/object_facts.h"

static const char *const system_headers[] = {"cache-control", "content-disposition",
	"content-language", "content-type", "expires", "x-amz-website-redirect-location"};
static const char meta_prefix[] = "x-amz-meta-";

enum {
	SYSTEM_HEADERS = sizeof(system_headers) / sizeof(system_headers[0]),
	REDIRECT_MAX_BYTES = 2048
};

static const struct s3_request_refusal refusals[] = {
	{"x-amz-grant-", NULL, "Grants in headers are not implemented."},
	{"x-amz-server-side-encryption", NULL, "Server-side encryption is not implemented."},
	{"x-amz-server-side-encryption-", NULL,
		"Server-side encryption with keys of the client or of a key service is not implemented."},
	{"x-amz-object-lock-", NULL, "Object lock is not implemented."},
	{"x-amz-meta-snowball-auto-extract", "false",
		"Archives are not extracted. Put the objects one by one."},
};

struct collection {
	struct exchange *exchange;
	struct object_header *headers; /* NULL during the count */
	size_t count;
	size_t capacity;
};

static bool read_storage_class(
	struct exchange *exchange, struct object_facts *out, enum next *out_next);
static bool read_acl(struct exchange *exchange, struct object_facts *out, enum next *out_next);
static bool check_redirect(struct exchange *exchange, enum next *out_next);
static int collect(struct exchange *exchange, struct object_facts *out, struct error *err);
static void object_headers_count_meta(void *taker, struct span name, struct span value);
static bool is_meta(struct span name);
static void object_headers_take_meta(void *taker, struct span name, struct span value);
static struct span lower_copy(struct arena *arena, struct span name);
static bool has(const struct collection *collection, struct span name);
static void add(struct collection *collection, struct span name, struct span value);
static void take_encoding(struct collection *collection);
static bool is_header(const struct object_header *header);

bool object_headers_read(struct exchange *exchange, struct object_facts *out, enum next *out_next)
{
	struct error err = {0};
	*out = (struct object_facts){.storage_class = STORAGE_STANDARD};
	if (s3_request_refuses(
		    exchange, refusals, sizeof(refusals) / sizeof(refusals[0]), out_next))
		return false;
	if (!read_storage_class(exchange, out, out_next) || !read_acl(exchange, out, out_next) ||
		!check_redirect(exchange, out_next))
		return false;
	if (tagging_read_header(exchange_header(exchange, "x-amz-tagging"), TAG_SET_OBJECT_MAX,
		    exchange->arena, &out->tags, &err) == 0 &&
		collect(exchange, out, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

static bool read_storage_class(
	struct exchange *exchange, struct object_facts *out, enum next *out_next)
{
	const struct span class = span_trim(exchange_header(exchange, "x-amz-storage-class"));
	if (class.len == 0 || storage_class_parse(class, &out->storage_class))
		return true;
	const struct s3_error_field fields[] = {{"StorageClassRequested", class}};
	*out_next = s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID,
			.code = "InvalidStorageClass",
			.message = "The storage class you specified is not valid.",
			.fields = fields,
			.field_count = 1});
	return false;
}

/* An ACL that opens the object to others needs the permission to set its ACL. */
static bool read_acl(struct exchange *exchange, struct object_facts *out, enum next *out_next)
{
	struct bucket_ref bucket = exchange_bucket(exchange);
	struct error err = {0};
	bool given;
	if (acl_headers(exchange, &given, &out->acl, &err) == 0 &&
		(out->acl == ACL_PRIVATE ||
			(authorise_key(exchange, &bucket, s3_request_key(exchange),
				 PERMISSION_ADMIN, &err) == 0 &&
				bucket_acl_check_public(exchange, &err) == 0)))
		return true;
	*out_next = acl_fail(exchange, &err);
	return false;
}

static bool check_redirect(struct exchange *exchange, enum next *out_next)
{
	const struct span location = exchange_header(exchange, "x-amz-website-redirect-location");
	const char *fault = NULL;
	if (location.len > REDIRECT_MAX_BYTES)
		fault = "The length of website redirect location cannot exceed 2048 bytes.";
	else if (location.len > 0 && location.data[0] != '/' &&
		!span_equal_nocase(span_slice(location, 0, 7), "http://") &&
		!span_equal_nocase(span_slice(location, 0, 8), "https://"))
		fault = "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.";
	if (fault == NULL)
		return true;
	*out_next = s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID,
			.code = "InvalidRedirectLocation",
			.message = fault});
	return false;
}

static int collect(struct exchange *exchange, struct object_facts *out, struct error *err)
{
	struct collection collection = {.exchange = exchange};
	exchange_each_header(exchange, object_headers_count_meta, &collection);
	collection.capacity = collection.count + SYSTEM_HEADERS + 1; /* 1: content-encoding */
	collection.headers =
		arena_take_array(exchange->arena, collection.capacity, sizeof(*collection.headers));
	collection.count = 0;
	if (collection.headers != NULL) {
		exchange_each_header(exchange, object_headers_take_meta, &collection);
		take_encoding(&collection);
		for (size_t i = 0; i < SYSTEM_HEADERS; i++) {
			const struct span value = exchange_header(exchange, system_headers[i]);
			if (value.len > 0)
				add(&collection, span_text(system_headers[i]), value);
		}
	}
	if (arena_overflowed(exchange->arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The headers do not fit the memory of a request.");
	for (size_t i = 0; i < collection.count; i++)
		if (!is_header(&collection.headers[i]))
			return error_set(err, ERROR_INVALID,
				"The name and the value of a form field must not have characters that a header must not have.");
	out->headers = collection.headers;
	out->header_count = collection.count;
	return 0;
}

static void object_headers_count_meta(void *taker, struct span name, struct span value)
{
	struct collection *const collection = taker;
	(void)value;
	if (is_meta(name))
		collection->count++;
}

static bool is_meta(struct span name)
{
	const size_t prefix = sizeof(meta_prefix) - 1;
	return name.len > prefix && span_equal_nocase(span_slice(name, 0, prefix), meta_prefix);
}

static void object_headers_take_meta(void *taker, struct span name, struct span value)
{
	struct collection *const collection = taker;
	(void)value;
	if (!is_meta(name))
		return;
	const struct span lower = lower_copy(collection->exchange->arena, name);
	if (lower.data != NULL && !has(collection, lower))
		add(collection, lower,
			exchange_header(collection->exchange, (const char *)lower.data));
}

static struct span lower_copy(struct arena *arena, struct span name)
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

static bool has(const struct collection *collection, struct span name)
{
	for (size_t i = 0; i < collection->count; i++) {
		if (span_equal(collection->headers[i].name, name))
			return true;
	}
	return false;
}

static void add(struct collection *collection, struct span name, struct span value)
{
	ASSERT(collection->count < collection->capacity);
	const struct span copy = arena_copy(collection->exchange->arena, value);
	collection->headers[collection->count++] =
		(struct object_header){.name = name, .value = copy};
}

/* "aws-chunked" is the framing of the request's body, not an encoding of the object. */
static void take_encoding(struct collection *collection)
{
	struct span rest = exchange_header(collection->exchange, "content-encoding");
	struct span piece;
	struct buffer kept;
	buffer_init(&kept, rest.len + 1);
	while (span_split(&rest, ',', &piece)) {
		const struct span token = span_trim(piece);
		if (token.len == 0 || span_equal_nocase(token, "aws-chunked"))
			continue;
		if (kept.len > 0)
			buffer_add_byte(&kept, ',');
		buffer_add_span(&kept, piece);
	}
	if (kept.len > 0)
		add(collection, span_text("content-encoding"), span_trim(buffer_span(&kept)));
	buffer_release(&kept);
}

/* Whether a reply can have it as a header. The fields of a form need not be. */
static bool is_header(const struct object_header *header)
{
	for (size_t i = 0; i < header->name.len; i++)
		if (header->name.data[i] <= ' ' || header->name.data[i] >= 0x7f ||
			header->name.data[i] == ':')
			return false;
	return span_find(header->value, '\r') < 0 && span_find(header->value, '\n') < 0 &&
		span_find(header->value, 0) < 0;
}
