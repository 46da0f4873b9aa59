/* Objects of a bucket. Each function checks what the caller passed, makes a session and a
 * connection, and leaves the work to client/transfer and client/remote. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/remote/missing_bucket.h"
#include "client/transfer/object_download.h"
#include "client/transfer/object_upload.h"
#include "library/call.h"

enum {
	PAGE_ARENA_BYTES = 64 * 1024 * 1024,
	GET_TRIES = 3, /* of an object that is replaced between two requests */
};

struct object_call {
	struct library_call call;
	struct remote *remote;
	struct object_name name;
	char *target;
};

struct memory_sink {
	struct body_sink sink;
	uint8_t *into;
	size_t len;
};

struct list {
	struct object_call *at;
	struct span prefix, delimiter;
	deltabucket_found_fn *found;
	void *owner;
	bool is_over;
	struct buffer token; /* of the next page */
	struct buffer key, etag;
};

static int begin_object(struct object_call *at, const struct deltabucket_client *client,
	const char *bucket, const char *key, struct deltabucket_watch *watch);
static int begin_bucket(struct object_call *at, const struct deltabucket_client *client,
	const char *bucket, struct deltabucket_watch *watch);
static int connect_to(struct object_call *at);
static int end(struct object_call *at, int result, struct deltabucket_error *err);
static int put_file(struct object_call *at, const char *path);
static int put_bytes(struct object_call *at, const void *bytes, size_t len);
static int look(struct object_call *at, struct remote_object_facts *out);
static int get_file(struct object_call *at, const char *path);
static int get_bytes(
	struct object_call *at, uint64_t from, struct memory_sink *sink, uint64_t *out_bytes);
static int get_range(struct object_call *at, const struct remote_object_facts *facts, uint64_t from,
	struct memory_sink *sink);
static enum sink_result objects_take(struct body_sink *sink, struct span bytes, struct error *err);
static int list_pages(struct list *list);
static int list_page(struct list *list, bool *out_more);
static int objects_order(const void *left, const void *right);
static int give_entry(struct list *list, const struct listing_entry *entry);
static int make_bucket(struct object_call *at);
static int ask(
	struct object_call *at, const char *target, deltabucket_answer_fn *found, void *owner);

int deltabucket_put_file(struct deltabucket_client *client, const char *bucket, const char *key,
	const char *path, struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct object_call at;
	const int begun = begin_object(&at, client, bucket, key, watch);
	return end(&at, begun == 0 ? put_file(&at, path) : -1, err);
}

int deltabucket_put(struct deltabucket_client *client, const char *bucket, const char *key,
	const void *bytes, size_t len, struct deltabucket_watch *watch,
	struct deltabucket_error *err)
{
	struct object_call at;
	const int begun = begin_object(&at, client, bucket, key, watch);
	return end(&at, begun == 0 ? put_bytes(&at, bytes, len) : -1, err);
}

int deltabucket_get_file(struct deltabucket_client *client, const char *bucket, const char *key,
	const char *path, struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct object_call at;
	const int begun = begin_object(&at, client, bucket, key, watch);
	return end(&at, begun == 0 ? get_file(&at, path) : -1, err);
}

int deltabucket_get(struct deltabucket_client *client, const char *bucket, const char *key,
	uint64_t from, void *into, size_t len, size_t *out_len, uint64_t *out_bytes,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct object_call at;
	struct memory_sink sink = {.sink = {.write = objects_take}, .into = into, .len = len};
	uint64_t bytes = 0;
	int result = begin_object(&at, client, bucket, key, watch);
	if (result == 0 && len > 0)
		result = library_check(into, "into", &at.call.failure);
	if (result == 0)
		result = library_check(out_len, "out_len", &at.call.failure);
	if (result == 0)
		result = get_bytes(&at, from, &sink, &bytes);
	if (result == 0)
		*out_len = (size_t)(sink.into - (uint8_t *)into);
	if (result == 0 && out_bytes != NULL)
		*out_bytes = bytes;
	return end(&at, result, err);
}

int deltabucket_head(struct deltabucket_client *client, const char *bucket, const char *key,
	deltabucket_found_fn *found, void *owner, struct deltabucket_watch *watch,
	struct deltabucket_error *err)
{
	struct object_call at;
	struct remote_object_facts facts;
	int result = begin_object(&at, client, bucket, key, watch);
	if (result == 0 && found == NULL)
		result = library_check(NULL, "found", &at.call.failure);
	if (result == 0)
		result = look(&at, &facts);
	if (result == 0) {
		const struct deltabucket_object object = {
			.size = sizeof(object),
			.key = key,
			.bytes = facts.size,
			.modified_ms = facts.modified_ms < 0 ? 0 : facts.modified_ms,
			.etag = facts.etag,
		};
		found(owner, &object);
	}
	return end(&at, result, err);
}

int deltabucket_list(struct deltabucket_client *client, const char *bucket, const char *prefix,
	const char *delimiter, deltabucket_found_fn *found, void *owner,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct object_call at;
	struct list list = {
		.at = &at,
		.prefix = span_text(prefix),
		.delimiter = span_text(delimiter),
		.found = found,
		.owner = owner,
	};
	int result = begin_bucket(&at, client, bucket, watch);
	if (result == 0 && found == NULL)
		result = library_check(NULL, "found", &at.call.failure);
	if (result == 0 &&
		(list.prefix.len > LIBRARY_KEY_MAX_BYTES ||
			list.delimiter.len > LIBRARY_KEY_MAX_BYTES))
		result = error_set(&at.call.failure, ERROR_KEY_TOO_LONG,
			"the prefix or the delimiter is over %d bytes", LIBRARY_KEY_MAX_BYTES);
	if (result == 0)
		result = list_pages(&list);
	return end(&at, result, err);
}

int deltabucket_remove(struct deltabucket_client *client, const char *bucket, const char *key,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct object_call at;
	int result = begin_object(&at, client, bucket, key, watch);
	if (result == 0)
		result = remote_object_delete(at.remote, at.target, &at.call.failure);
	return end(&at, result, err);
}

int deltabucket_make_bucket(struct deltabucket_client *client, const char *bucket,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct object_call at;
	int result = begin_bucket(&at, client, bucket, watch);
	if (result == 0)
		result = make_bucket(&at);
	return end(&at, result, err);
}

int deltabucket_ask(struct deltabucket_client *client, const char *target,
	deltabucket_answer_fn *found, void *owner, struct deltabucket_watch *watch,
	struct deltabucket_error *err)
{
	struct object_call at = {0};
	int result = library_check(client, "client", &at.call.failure);
	if (result == 0)
		result = library_check(target, "target", &at.call.failure);
	if (result == 0 && found == NULL)
		result = library_check(NULL, "found", &at.call.failure);
	if (result == 0 && target[0] != '/')
		result = error_set(&at.call.failure, ERROR_INVALID,
			"the target \"%.80s\" does not begin with a slash", target);
	if (result == 0) {
		library_call_begin(&at.call, client, watch);
		at.remote = session_connect(&at.call.session, &at.call.failure);
		result = at.remote == NULL ? -1 : ask(&at, target, found, owner);
	}
	return end(&at, result, err);
}

static int begin_object(struct object_call *at, const struct deltabucket_client *client,
	const char *bucket, const char *key, struct deltabucket_watch *watch)
{
	struct error *const err = &at->call.failure;
	*at = (struct object_call){0};
	if (library_check(client, "client", err) != 0)
		return -1;
	library_call_begin(&at->call, client, watch);
	if (library_check_name(bucket, "bucket", LIBRARY_BUCKET_MAX_BYTES, &at->name.bucket, err) !=
			0 ||
		library_check_name(key, "key", LIBRARY_KEY_MAX_BYTES, &at->name.key, err) != 0)
		return -1;
	return connect_to(at);
}

static int begin_bucket(struct object_call *at, const struct deltabucket_client *client,
	const char *bucket, struct deltabucket_watch *watch)
{
	struct error *const err = &at->call.failure;
	*at = (struct object_call){0};
	if (library_check(client, "client", err) != 0)
		return -1;
	library_call_begin(&at->call, client, watch);
	if (library_check_name(bucket, "bucket", LIBRARY_BUCKET_MAX_BYTES, &at->name.bucket, err) !=
		0)
		return -1;
	return connect_to(at);
}

static int connect_to(struct object_call *at)
{
	at->target = remote_object_target(at->name.bucket, at->name.key);
	at->remote = session_connect(&at->call.session, &at->call.failure);
	return at->remote == NULL ? -1 : 0;
}

static int end(struct object_call *at, int result, struct deltabucket_error *err)
{
	remote_free(at->remote);
	free(at->target);
	return library_call_end(&at->call, result, err);
}

static int put_file(struct object_call *at, const char *path)
{
	struct object_upload upload = {
		.session = &at->call.session,
		.remote = at->remote,
		.path = path,
		.name = at->name,
	};
	return library_check(path, "path", &at->call.failure) != 0
		? -1
		: object_upload_run(&upload, &at->call.failure);
}

static int put_bytes(struct object_call *at, const void *bytes, size_t len)
{
	if (len > 0 && library_check(bytes, "bytes", &at->call.failure) != 0)
		return -1;
	return remote_object_put_bytes(
		at->remote, at->target, span_of(bytes, len), &at->call.failure);
}

/* Looks at the object. no_bucket when not even its bucket exists. */
static int look(struct object_call *at, struct remote_object_facts *out)
{
	struct error *const err = &at->call.failure;
	if (remote_object_head(at->remote, at->target, out, err) == 0)
		return 0;
	return missing_bucket_explain(at->remote, at->name.bucket, err);
}

static int get_file(struct object_call *at, const char *path)
{
	struct object_download download = {
		.session = &at->call.session,
		.remote = at->remote,
		.name = at->name,
		.target = at->target,
		.path = path,
	};
	if (library_check(path, "path", &at->call.failure) != 0 ||
		object_download_check(path, &at->call.failure) != 0 ||
		look(at, &download.facts) != 0)
		return -1;
	return object_download_run(&download, &at->call.failure);
}

/* The range is one of the version that was looked at. When the object is replaced between the two
 * requests, both are made again. */
static int get_bytes(
	struct object_call *at, uint64_t from, struct memory_sink *sink, uint64_t *out_bytes)
{
	const struct memory_sink whole = *sink;
	struct remote_object_facts facts = {0};
	int result = -1;
	for (int tries = 0; result != 0 && tries < GET_TRIES; tries++) {
		*sink = whole;
		if (look(at, &facts) != 0)
			return -1;
		result = get_range(at, &facts, from, sink);
		if (result != 0 && at->call.failure.kind != ERROR_PRECONDITION)
			return -1;
	}
	*out_bytes = facts.size;
	return result;
}

static int get_range(struct object_call *at, const struct remote_object_facts *facts, uint64_t from,
	struct memory_sink *sink)
{
	const uint64_t left = from < facts->size ? facts->size - from : 0;
	const struct remote_object_range range = {
		.target = at->target,
		.etag = facts->etag[0] != '\0' ? facts->etag : NULL,
		.offset = from,
		.size = left < sink->len ? left : sink->len,
		.whole = from == 0 && facts->size <= sink->len,
	};
	return remote_object_get(at->remote, &range, &sink->sink, &at->call.failure);
}

static enum sink_result objects_take(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct memory_sink *const memory = (struct memory_sink *)sink;
	(void)err;
	ASSERT(bytes.len <= memory->len); /* remote_object_get lets no more through */
	memcpy(memory->into, bytes.data, bytes.len);
	memory->into += bytes.len;
	memory->len -= bytes.len;
	return SINK_TAKEN;
}

static int list_pages(struct list *list)
{
	int result = 0;
	bool more = true;
	buffer_init(&list->token, REMOTE_LIST_TOKEN_MAX_BYTES);
	buffer_init(&list->key, REMOTE_LIST_TOKEN_MAX_BYTES);
	buffer_init(&list->etag, REMOTE_LIST_TOKEN_MAX_BYTES);
	while (result == 0 && more)
		result = list_page(list, &more);
	buffer_release(&list->etag);
	buffer_release(&list->key);
	buffer_release(&list->token);
	return result;
}

static int list_page(struct list *list, bool *out_more)
{
	const struct remote_object_page page = {
		.bucket = list->at->name.bucket,
		.prefix = list->prefix,
		.delimiter = list->delimiter,
		.token = buffer_span(&list->token),
	};
	struct error *const err = &list->at->call.failure;
	struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
	struct listing listing = {0};
	int result = remote_object_list(list->at->remote, &page, arena, &listing, err);
	/* An answer has its prefixes behind its keys. */
	if (listing.count > 0)
		qsort(listing.entries, listing.count, sizeof(listing.entries[0]), objects_order);
	for (size_t i = 0; i < listing.count && result == 0 && !list->is_over; i++)
		result = give_entry(list, &listing.entries[i]);
	*out_more = !list->is_over && listing.truncated && listing.next.len > 0 &&
		!span_equal(listing.next, page.token);
	buffer_reset(&list->token);
	buffer_add_span(&list->token, listing.next);
	arena_free(arena);
	return result;
}

static int objects_order(const void *left, const void *right)
{
	const struct listing_entry *const a = left;
	const struct listing_entry *const b = right;
	return span_compare(a->name, b->name);
}

static int give_entry(struct list *list, const struct listing_entry *entry)
{
	int64_t modified_ms = 0;
	buffer_reset(&list->key);
	buffer_reset(&list->etag);
	buffer_add_span(&list->key, entry->name);
	buffer_add_span(&list->etag, entry->etag);
	if (!entry->is_prefix && !clock_parse_http(entry->modified, &modified_ms))
		modified_ms = 0;
	if (buffer_check(&list->key, "a key of the listing", &list->at->call.failure) != 0)
		return -1;
	const struct deltabucket_object object = {
		.size = sizeof(object),
		.key = buffer_text(&list->key),
		.bytes = entry->size,
		.modified_ms = modified_ms,
		.etag = buffer_text(&list->etag),
	};
	list->is_over = list->found(list->owner, &object) != 0;
	return 0;
}

/* The server says to its owner that a bucket was made, also when it was there. */
static int make_bucket(struct object_call *at)
{
	const struct span name = at->name.bucket;
	struct error *const err = &at->call.failure;
	const int exists = remote_object_has_bucket(at->remote, name, err);
	if (exists > 0)
		return error_set(err, ERROR_BUCKET_OWNED, "there is already a bucket %.*s",
			(int)name.len, (const char *)name.data);
	return exists < 0 ? -1 : remote_object_make_bucket(at->remote, name, err);
}

static int ask(
	struct object_call *at, const char *target, deltabucket_answer_fn *found, void *owner)
{
	const struct http_request request = {.method = "GET", .target = target};
	struct http_response response;
	const int result = remote_send(at->remote, &request, &response, &at->call.failure);
	if (result == 0)
		found(owner, buffer_text(&response.body), response.body.len);
	http_response_release(&response);
	return result;
}
