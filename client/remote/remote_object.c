/* A download is a loop of tries around remote_try and remote_again. A sink between the connection
 * and the caller's sink counts the bytes, so that each try requests only what is missing, and an
 * answer that is too long is refused before it is written. A try that brought bytes resets the
 * count of retries. An upload cannot resume: each try starts the body again and takes its progress
 * back first. */
#include "client/remote/remote_object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/file.h"
#include "base/memory.h"
#include "client/work/progress.h"

enum {
	TARGET_MAX_BYTES = 64 * 1024, /* a token and a prefix, percent-encoded */
	COMMIT_WAIT_MS = 120 * 1000,  /* the server syncs and commits after the last byte */
	HEADER_MAX_BYTES = 192
};

struct file_source {
	struct body_source source;
	const struct remote_object_body *body;
	uint64_t sent;
};

struct range_sink {
	struct body_sink sink;
	struct body_sink *into;
	uint64_t left; /* bytes that are still missing */
	const char *target;
};

static char *take_text(struct buffer *buffer);
static int send_plain(struct remote *remote, const char *method, const char *target,
	struct http_response *response, struct error *err);
static ptrdiff_t remote_object_source_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
static void remote_object_source_close(struct body_source *source);
static enum sink_result remote_object_sink_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int get_rest(struct remote *remote, const struct remote_object_range *range,
	struct range_sink *sink, struct error *err);
static int fetch_listing(struct remote *remote, struct buffer *target, struct arena *arena,
	struct listing *out, struct error *err);

char *remote_object_target(struct span bucket, struct span key)
{
	struct buffer target;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_byte(&target, '/');
	encode_percent(bucket, false, &target);
	if (key.len > 0) {
		buffer_add_byte(&target, '/');
		encode_percent(span_slice(key, 0, 4096), true, &target);
	}
	return take_text(&target);
}

int remote_object_head(struct remote *remote, const char *target, struct remote_object_facts *out,
	struct error *err)
{
	struct http_response response;
	int result = send_plain(remote, "HEAD", target, &response, err);
	if (result != 0 && response.status == 404)
		/* the answer to a HEAD has no body that could say so */
		error_reword(err, ERROR_NO_KEY, "there is no object %s", target + 1);
	if (result == 0 && response.content_length == UINT64_MAX)
		result = error_set(
			err, ERROR_UPSTREAM, "the server does not say how large %s is", target);
	if (result == 0) {
		out->size = response.content_length;
		snprintf(out->etag, sizeof(out->etag), "%s", response.etag);
		out->has_digest = digest128_parse(span_text(response.digest), &out->digest);
		out->has_hash = chunk_id_parse(span_text(response.file_hash), &out->hash);
		out->is_derived = response.is_derived;
		out->modified_ms = response.modified_ms;
	}
	http_response_release(&response);
	return result;
}

int remote_object_delete(struct remote *remote, const char *target, struct error *err)
{
	struct http_response response;
	const int result = send_plain(remote, "DELETE", target, &response, err);
	http_response_release(&response);
	return result;
}

int remote_object_copy(
	struct remote *remote, const char *source, const char *target, struct error *err)
{
	struct buffer header;
	struct http_response response;
	buffer_init(&header, TARGET_MAX_BYTES + HEADER_MAX_BYTES);
	buffer_format(&header, "x-amz-copy-source: %s", source);
	const char *const headers[] = {buffer_text(&header), NULL};
	const struct http_request request = {
		.method = "PUT", .target = target, .headers = headers, .wait_ms = COMMIT_WAIT_MS};
	const int result = remote_send(remote, &request, &response, err);
	http_response_release(&response);
	buffer_release(&header);
	return result;
}

int remote_object_send(struct remote *remote, const struct http_request *request,
	const struct remote_object_body *body, struct http_response *response, struct error *err)
{
	struct file_source file = {
		.source = {.read = remote_object_source_read, .close = remote_object_source_close},
		.body = body};
	struct http_request with_body = *request;
	with_body.source = &file.source;
	with_body.source_size = body->size;
	with_body.wait_ms = COMMIT_WAIT_MS;
	struct retry retry = remote_retry(remote);
	struct error failure = {0};
	for (;;) {
		*response = (struct http_response){0};
		if (remote_try(remote, &with_body, response, &failure) == 0)
			return 0;
		progress_take_back(body->progress, file.sent);
		file.sent = 0;
		if (!remote_again(remote, &retry, &failure))
			break;
		http_response_release(response);
	}
	*err = failure;
	return -1;
}

int remote_object_put(struct remote *remote, const char *target,
	const struct remote_object_body *body, struct error *err)
{
	const struct http_request request = {.method = "PUT", .target = target};
	struct http_response response;
	const int result = remote_object_send(remote, &request, body, &response, err);
	http_response_release(&response);
	return result;
}

int remote_object_put_bytes(
	struct remote *remote, const char *target, struct span bytes, struct error *err)
{
	const struct http_request request = {
		.method = "PUT", .target = target, .body = bytes, .wait_ms = COMMIT_WAIT_MS};
	struct http_response response;
	const int result = remote_send(remote, &request, &response, err);
	http_response_release(&response);
	return result;
}

int remote_object_get(struct remote *remote, const struct remote_object_range *range,
	struct body_sink *into, struct error *err)
{
	struct range_sink sink = {.sink = {.write = remote_object_sink_write},
		.into = into,
		.left = range->size,
		.target = range->target};
	struct retry retry = remote_retry(remote);
	struct error failure = {0};
	while (sink.left > 0) {
		const uint64_t before = sink.left;
		if (get_rest(remote, range, &sink, &failure) == 0) {
			if (sink.left == 0)
				break;
			return error_set(err, ERROR_CORRUPT,
				"the server's answer lacks %" PRIu64 " bytes of %.*s", sink.left,
				http_shown(range->target), range->target);
		}
		if (sink.left < before)
			retry_reset(&retry);
		if (!remote_again(remote, &retry, &failure)) {
			*err = failure;
			return -1;
		}
	}
	return 0;
}

int remote_object_make_bucket(struct remote *remote, struct span bucket, struct error *err)
{
	char *const target = remote_object_target(bucket, (struct span){0});
	struct http_response response;
	struct error failure = {0};
	int result = send_plain(remote, "PUT", target, &response, &failure);
	if (result != 0 && failure.kind == ERROR_BUCKET_OWNED)
		result = 0;
	if (result != 0)
		*err = failure;
	http_response_release(&response);
	free(target);
	return result;
}

int remote_object_has_bucket(struct remote *remote, struct span bucket, struct error *err)
{
	char *const target = remote_object_target(bucket, (struct span){0});
	struct http_response response;
	int result = send_plain(remote, "HEAD", target, &response, err) == 0 ? 1 : -1;
	if (result < 0 && response.status == 404)
		result = 0;
	http_response_release(&response);
	free(target);
	return result;
}

int remote_object_remove_bucket(struct remote *remote, struct span bucket, struct error *err)
{
	char *const target = remote_object_target(bucket, (struct span){0});
	const int result = remote_object_delete(remote, target, err);
	free(target);
	return result;
}

int remote_object_list(struct remote *remote, const struct remote_object_page *page,
	struct arena *arena, struct listing *out, struct error *err)
{
	struct buffer target;
	ASSERT(page->token.len <= REMOTE_LIST_TOKEN_MAX_BYTES);
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_byte(&target, '/');
	encode_percent(page->bucket, false, &target);
	buffer_add_text(&target, "?list-type=2&encoding-type=url&max-keys=1000&prefix=");
	encode_percent(span_slice(page->prefix, 0, 4096), false, &target);
	if (page->delimiter.len > 0) {
		buffer_add_text(&target, "&delimiter=");
		encode_percent(span_slice(page->delimiter, 0, 4096), false, &target);
	}
	if (page->token.len > 0) {
		buffer_add_text(&target, "&continuation-token=");
		encode_percent(page->token, false, &target);
	}
	return fetch_listing(remote, &target, arena, out, err);
}

int remote_object_list_buckets(struct remote *remote, struct span token, struct arena *arena,
	struct listing *out, struct error *err)
{
	struct buffer target;
	ASSERT(token.len <= REMOTE_LIST_TOKEN_MAX_BYTES);
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_byte(&target, '/');
	if (token.len > 0) {
		buffer_add_text(&target, "?continuation-token=");
		encode_percent(token, false, &target);
	}
	return fetch_listing(remote, &target, arena, out, err);
}

/* The finished request target. It fits, because all parts of a target are bounded. */
static char *take_text(struct buffer *buffer)
{
	ASSERT(!buffer_failed(buffer));
	char *const text = memory_copy_text(buffer_text(buffer));
	buffer_release(buffer);
	return text;
}

static int send_plain(struct remote *remote, const char *method, const char *target,
	struct http_response *response, struct error *err)
{
	const struct http_request request = {.method = method, .target = target};
	return remote_send(remote, &request, response, err);
}

static ptrdiff_t remote_object_source_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct file_source *const file = (struct file_source *)source;
	const struct remote_object_body *const body = file->body;
	ASSERT(file->sent <= body->size);
	const uint64_t left = body->size - file->sent;
	const size_t wanted = left < capacity ? (size_t)left : capacity;
	if (wanted == 0)
		return 0;
	const struct iovec part = {.iov_base = into, .iov_len = wanted};
	if (file_read_at(file_system(), body->fd, part, (off_t)(body->offset + file->sent),
		    body->path, err) != 0)
		return -1;
	file->sent += wanted;
	progress_add(body->progress, wanted);
	return (ptrdiff_t)wanted;
}

static void remote_object_source_close(struct body_source *source)
{
	(void)source; /* it lies on the stack of remote_object_send */
}

static enum sink_result remote_object_sink_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct range_sink *const range = (struct range_sink *)sink;
	if (bytes.len > range->left) {
		error_set(err, ERROR_CORRUPT,
			"the server sends more bytes of %.*s than were requested",
			http_shown(range->target), range->target);
		return SINK_FAILED;
	}
	const enum sink_result result = range->into->write(range->into, bytes, err);
	if (result == SINK_TAKEN)
		range->left -= bytes.len;
	return result;
}

/* Makes one try for the missing bytes. */
static int get_rest(struct remote *remote, const struct remote_object_range *range,
	struct range_sink *sink, struct error *err)
{
	ASSERT(sink->left > 0 && sink->left <= range->size);
	const uint64_t from = range->offset + (range->size - sink->left);
	const bool ranged = !range->whole || from > range->offset;
	char range_header[HEADER_MAX_BYTES];
	char match_header[HEADER_MAX_BYTES];
	const char *headers[3] = {NULL, NULL, NULL};
	size_t count = 0;
	if (ranged) {
		snprintf(range_header, sizeof(range_header), "Range: bytes=%" PRIu64 "-%" PRIu64,
			from, from + sink->left - 1);
		headers[count++] = range_header;
	}
	if (range->etag != NULL) {
		snprintf(match_header, sizeof(match_header), "If-Match: \"%s\"", range->etag);
		headers[count++] = match_header;
	}
	const struct http_request request = {
		.method = "GET", .target = range->target, .headers = headers, .sink = &sink->sink};
	struct http_response response = {0};
	int result = remote_try(remote, &request, &response, err);
	if (result == 0 && ranged && response.status != 206)
		result = error_set(err, ERROR_CORRUPT,
			"the server answers a request for a range of %.*s with status %d instead of 206",
			http_shown(range->target), range->target, response.status);
	http_response_release(&response);
	return result;
}

static int fetch_listing(struct remote *remote, struct buffer *target, struct arena *arena,
	struct listing *out, struct error *err)
{
	char *const text = take_text(target);
	struct http_response response;
	int result = send_plain(remote, "GET", text, &response, err);
	if (result == 0)
		result = listing_parse(buffer_span(&response.body), arena, out, err);
	http_response_release(&response);
	free(text);
	return result;
}
