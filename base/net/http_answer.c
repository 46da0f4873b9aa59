/* The receiving half: headers become fields, the body goes to the sink or into the response.
 * libcurl calls these functions within curl_easy_perform. */
#include "base/net/http_client_internal.h"

#include <string.h>

#include "base/clock.h"

static size_t http_answer_on_header(char *data, size_t size, size_t count, void *argument);
static void forget_headers(struct http_response *response);
static void take_header(struct http_response *response, struct span name, struct span value);
static void http_answer_take_etag(struct http_response *response, struct span value);
static void keep_text(char *field, size_t capacity, struct span value);
static void http_answer_take_digest(struct http_response *response, struct span value);
static void http_answer_take_file_hash(struct http_response *response, struct span value);
static void http_answer_take_derived(struct http_response *response, struct span value);
static void http_answer_take_request_id(struct http_response *response, struct span value);
static void http_answer_take_length(struct http_response *response, struct span value);
static void http_answer_take_range(struct http_response *response, struct span value);
static void http_answer_take_location(struct http_response *response, struct span value);
static void http_answer_take_link(struct http_response *response, struct span value);
static void http_answer_take_modified(struct http_response *response, struct span value);
static void http_answer_take_date(struct http_response *response, struct span value);
static void http_answer_take_retry_after(struct http_response *response, struct span value);
static size_t http_answer_on_body(char *data, size_t size, size_t count, void *argument);
static int keep_error_body(struct http_transfer *transfer, struct span bytes);
static int push_to_sink(struct http_transfer *transfer, struct span bytes);
static int keep_body(struct http_transfer *transfer, struct span bytes);

void http_answer_watch(struct http_transfer *transfer)
{
	curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, http_answer_on_header);
	curl_easy_setopt(transfer->easy, CURLOPT_HEADERDATA, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, http_answer_on_body);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
}

static size_t http_answer_on_header(char *data, size_t size, size_t count, void *argument)
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

/* The headers of an interim answer (100) must not outlive it. */
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
	response->range = (struct http_range){UINT64_MAX, UINT64_MAX, UINT64_MAX};
	response->modified_ms = -1;
	response->date_ms = -1;
	response->retry_after_s = -1;
}

static void take_header(struct http_response *response, struct span name, struct span value)
{
	static const struct {
		const char *name;
		void (*take)(struct http_response *response, struct span value);
	} headers[] = {
		{"ETag", http_answer_take_etag},
		{"x-deltabucket-digest", http_answer_take_digest},
		{"x-deltabucket-file-hash", http_answer_take_file_hash},
		{"x-deltabucket-derived", http_answer_take_derived},
		{"x-amz-request-id", http_answer_take_request_id},
		{"x-request-id", http_answer_take_request_id},
		{"Content-Length", http_answer_take_length},
		{"Content-Range", http_answer_take_range},
		{"Location", http_answer_take_location},
		{"Link", http_answer_take_link},
		{"Last-Modified", http_answer_take_modified},
		{"Date", http_answer_take_date},
		{"Retry-After", http_answer_take_retry_after},
	};
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (span_equal_nocase(name, headers[i].name) && value.len > 0)
			headers[i].take(response, value);
}

static void http_answer_take_etag(struct http_response *response, struct span value)
{
	struct span tag = value;
	if (span_starts(tag, span_text("W/")))
		tag = span_slice(tag, 2, tag.len);
	if (tag.len >= 2 && tag.data[0] == '"' && tag.data[tag.len - 1] == '"')
		tag = span_slice(tag, 1, tag.len - 2);
	keep_text(response->etag, sizeof(response->etag), tag);
}

/* A value that is too long for its field counts as absent: half an ETag or URL is worse than
 * none. */
static void keep_text(char *field, size_t capacity, struct span value)
{
	if (value.len >= capacity)
		return;
	memcpy(field, value.data, value.len);
	field[value.len] = '\0';
}

static void http_answer_take_digest(struct http_response *response, struct span value)
{
	keep_text(response->digest, sizeof(response->digest), value);
}

static void http_answer_take_file_hash(struct http_response *response, struct span value)
{
	keep_text(response->file_hash, sizeof(response->file_hash), value);
}

static void http_answer_take_derived(struct http_response *response, struct span value)
{
	response->is_derived = span_equal_text(value, "true");
}

static void http_answer_take_request_id(struct http_response *response, struct span value)
{
	keep_text(response->request_id, sizeof(response->request_id), value);
}

static void http_answer_take_length(struct http_response *response, struct span value)
{
	span_parse_u64(value, &response->content_length);
}

/* "bytes 0-99/1000"; either side of the slash may be a star. */
static void http_answer_take_range(struct http_response *response, struct span value)
{
	static const char unit[] = "bytes ";
	struct http_range range = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct span rest = span_slice(value, sizeof(unit) - 1, value.len);
	struct span bytes = {NULL, 0};
	struct span first = {NULL, 0};
	if (!span_starts(value, span_text(unit)) || !span_split(&rest, '/', &bytes))
		return;
	span_parse_u64(rest, &range.total);
	if (span_split(&bytes, '-', &first) &&
		(!span_parse_u64(first, &range.first) || !span_parse_u64(bytes, &range.last)))
		range.first = range.last = UINT64_MAX;
	response->range = range;
}

static void http_answer_take_location(struct http_response *response, struct span value)
{
	keep_text(response->location, sizeof(response->location), value);
}

static void http_answer_take_link(struct http_response *response, struct span value)
{
	keep_text(response->link, sizeof(response->link), value);
}

static void http_answer_take_modified(struct http_response *response, struct span value)
{
	if (!clock_parse_http(value, &response->modified_ms))
		response->modified_ms = -1;
}

static void http_answer_take_date(struct http_response *response, struct span value)
{
	if (!clock_parse_http(value, &response->date_ms))
		response->date_ms = -1;
}

static void http_answer_take_retry_after(struct http_response *response, struct span value)
{
	enum { LONGEST_S = 24 * 60 * 60 };
	uint64_t seconds = 0;
	if (span_parse_u64(value, &seconds))
		response->retry_after_s = seconds < LONGEST_S ? (int)seconds : LONGEST_S;
}

static size_t http_answer_on_body(char *data, size_t size, size_t count, void *argument)
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
	/* libcurl stops at any other count than it passed */
	return result == 0 ? bytes.len : bytes.len + 1;
}

static int keep_error_body(struct http_transfer *transfer, struct span bytes)
{
	struct buffer *const body = &transfer->response->body;
	const size_t most =
		transfer->request->whole_errors ? HTTP_BODY_MAX_BYTES : HTTP_ERROR_BODY_MAX_BYTES;
	ASSERT(body->len <= most);
	const size_t room = most - body->len;
	buffer_add_span(body, span_slice(bytes, 0, room));
	transfer->cut = bytes.len > room;
	return transfer->cut ? -1 : 0;
}

static int push_to_sink(struct http_transfer *transfer, struct span bytes)
{
	struct body_sink *const sink = transfer->request->sink;
	ASSERT(sink != NULL);
	const enum sink_result result = sink->write(sink, bytes, &transfer->err);
	if (result == SINK_WAIT)
		return error_set(&transfer->err, ERROR_UNSUPPORTED,
			"the receiver of %s asked to wait, which a download cannot do",
			transfer->request->target);
	if (result == SINK_FAILED && transfer->err.kind == ERROR_NONE)
		return error_set(&transfer->err, ERROR_IO, "the receiver of %s failed",
			transfer->request->target);
	return result == SINK_TAKEN ? 0 : -1;
}

static int keep_body(struct http_transfer *transfer, struct span bytes)
{
	buffer_add_span(&transfer->response->body, bytes);
	return buffer_check(&transfer->response->body, "the answer's body", &transfer->err);
}
