/* The receiving half: headers into fields, the body into the sink or the response. */
#include "base/net/http_client_internal.h"

#include <string.h>

static size_t on_header(char *data, size_t size, size_t count, void *argument);
static void forget_headers(struct http_response *response);
static void take_header(struct http_response *response, struct span name, struct span value);
static void take_etag(struct http_response *response, struct span value);
static void keep_text(char *field, size_t capacity, struct span value);
static void take_digest(struct http_response *response, struct span value);
static void take_file_hash(struct http_response *response, struct span value);
static void take_derived(struct http_response *response, struct span value);
static void take_request_id(struct http_response *response, struct span value);
static void take_length(struct http_response *response, struct span value);
static void take_location(struct http_response *response, struct span value);
static void take_link(struct http_response *response, struct span value);
static void take_retry_after(struct http_response *response, struct span value);
static size_t on_body(char *data, size_t size, size_t count, void *argument);
static int keep_error_body(struct http_transfer *transfer, struct span bytes);
static int push_to_sink(struct http_transfer *transfer, struct span bytes);
static int keep_body(struct http_transfer *transfer, struct span bytes);

void http_answer_watch(struct http_transfer *transfer)
{
	curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(transfer->easy, CURLOPT_HEADERDATA, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
}

static size_t on_header(char *data, size_t size, size_t count, void *argument)
{
	struct http_transfer *const transfer = argument;
	struct span line = span_of(data, size * count);
	while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r'))
		line.len--;
	const ptrdiff_t colon = span_find(line, ':');
	if (span_starts(line, span_text("HTTP/")))
		forget_headers(transfer->response);
	else if (colon > 0)
		take_header(transfer->response, span_slice(line, 0, (size_t)colon),
			span_trim(span_slice(line, (size_t)colon + 1, line.len)));
	return size * count;
}

/* What an interim answer (100) said is forgotten when the real one begins. */
static void forget_headers(struct http_response *response)
{
	response->etag[0] = '\0';
	response->request_id[0] = '\0';
	response->digest[0] = '\0';
	response->file_hash[0] = '\0';
	response->is_derived = false;
	response->location[0] = '\0';
	response->link[0] = '\0';
	response->content_length = UINT64_MAX;
	response->retry_after_s = -1;
}

static void take_header(struct http_response *response, struct span name, struct span value)
{
	static const struct {
		const char *name;
		void (*take)(struct http_response *response, struct span value);
	} headers[] = {
		{"ETag", take_etag},
		{"x-deltabucket-digest", take_digest},
		{"x-deltabucket-file-hash", take_file_hash},
		{"x-deltabucket-derived", take_derived},
		{"x-amz-request-id", take_request_id},
		{"x-request-id", take_request_id},
		{"Content-Length", take_length},
		{"Location", take_location},
		{"Link", take_link},
		{"Retry-After", take_retry_after},
	};
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
		if (span_equal_nocase(name, headers[i].name) && value.len > 0)
			headers[i].take(response, value);
}

static void take_etag(struct http_response *response, struct span value)
{
	struct span tag = value;
	if (span_starts(tag, span_text("W/")))
		tag = span_slice(tag, 2, tag.len);
	if (tag.len >= 2 && tag.data[0] == '"' && tag.data[tag.len - 1] == '"')
		tag = span_slice(tag, 1, tag.len - 2);
	keep_text(response->etag, sizeof response->etag, tag);
}

/* A value too long for its field is as good as absent: half an ETag or URL is worse than none. */
static void keep_text(char *field, size_t capacity, struct span value)
{
	if (value.len >= capacity)
		return;
	memcpy(field, value.data, value.len);
	field[value.len] = '\0';
}

static void take_digest(struct http_response *response, struct span value)
{
	keep_text(response->digest, sizeof response->digest, value);
}

static void take_file_hash(struct http_response *response, struct span value)
{
	keep_text(response->file_hash, sizeof response->file_hash, value);
}

static void take_derived(struct http_response *response, struct span value)
{
	response->is_derived = span_equal_text(value, "true");
}

static void take_request_id(struct http_response *response, struct span value)
{
	keep_text(response->request_id, sizeof response->request_id, value);
}

static void take_length(struct http_response *response, struct span value)
{
	span_parse_u64(value, &response->content_length);
}

static void take_location(struct http_response *response, struct span value)
{
	keep_text(response->location, sizeof response->location, value);
}

static void take_link(struct http_response *response, struct span value)
{
	keep_text(response->link, sizeof response->link, value);
}

static void take_retry_after(struct http_response *response, struct span value)
{
	enum { LONGEST_S = 24 * 60 * 60 };
	uint64_t seconds = 0;
	if (span_parse_u64(value, &seconds))
		response->retry_after_s = seconds < LONGEST_S ? (int)seconds : LONGEST_S;
}

static size_t on_body(char *data, size_t size, size_t count, void *argument)
{
	struct http_transfer *const transfer = argument;
	const struct span bytes = span_of(data, size * count);
	long status = 0;
	int result;
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || status > 299)
		result = keep_error_body(transfer, bytes);
	else if (transfer->request->sink != NULL)
		result = push_to_sink(transfer, bytes);
	else
		result = keep_body(transfer, bytes);
	/* any other count than what was given makes libcurl stop */
	return result == 0 ? bytes.len : bytes.len + 1;
}

static int keep_error_body(struct http_transfer *transfer, struct span bytes)
{
	struct buffer *const body = &transfer->response->body;
	const size_t most =
		transfer->request->whole_errors ? HTTP_BODY_MAX_BYTES : HTTP_ERROR_BODY_MAX_BYTES;
	const size_t room = most - body->len;
	buffer_add_span(body, span_slice(bytes, 0, room));
	transfer->cut = bytes.len > room;
	return transfer->cut ? -1 : 0;
}

static int push_to_sink(struct http_transfer *transfer, struct span bytes)
{
	struct body_sink *const sink = transfer->request->sink;
	const enum sink_result result = sink->write(sink, bytes, &transfer->err);
	if (result == SINK_WAIT)
		return error_set(&transfer->err, ERROR_UNSUPPORTED,
			"the taker of %s asked to wait, which a download cannot do",
			transfer->request->target);
	if (result == SINK_FAILED && transfer->err.kind == ERROR_NONE)
		return error_set(&transfer->err, ERROR_IO, "the taker of %s failed",
			transfer->request->target);
	return result == SINK_TAKEN ? 0 : -1;
}

static int keep_body(struct http_transfer *transfer, struct span bytes)
{
	buffer_add_span(&transfer->response->body, bytes);
	return buffer_check(&transfer->response->body, "the answer's body", &transfer->err);
}
