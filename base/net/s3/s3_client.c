#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/net/s3/s3_client_internal.h"

enum { CONNECTIONS = 8, TRIES = 5, PAUSE_MS = 1000, GIVE_UP_MS = 30 * 1000, PAGE = 1000 };

struct s3_whole {              /* a body that goes to a buffer */
	struct body_sink sink; /* first */
	struct buffer *out;
	size_t begin;
};
struct s3_piece {              /* a body that goes to memory of a fixed size */
	struct body_sink sink; /* first */
	struct s3_range *range;
	size_t len;
};

static int check_options(const struct s3_client_options *options, struct error *err);
static int check_word(const char *what, const char *word, const char *also, struct error *err);
static void take_options(struct s3_client *client, const struct s3_client_options *options);
static int make_connections(
	struct s3_client *client, const struct s3_client_options *options, struct error *err);
static int send_plain(struct s3_client *client, const char *name, struct s3_request *request,
	struct s3_answer *answer, struct error *err);
static void s3_client_restart_whole(struct body_sink *sink);
static enum sink_result s3_client_write_whole(
	struct body_sink *sink, struct span bytes, struct error *err);
static int check_whole(const char *name, const struct s3_whole *whole,
	const struct http_response *response, struct error *err);
static void s3_client_restart_piece(struct body_sink *sink);
static enum sink_result s3_client_write_piece(
	struct body_sink *sink, struct span bytes, struct error *err);
static int check_piece(const char *name, const struct s3_piece *piece,
	const struct http_response *response, struct error *err);
static int check_bucket(struct s3_client *client, const char *name, struct error *err);

struct s3_client *s3_client_open(const struct s3_client_options *options, struct error *err)
{
	if (check_options(options, err) != 0)
		return NULL;
	struct s3_client *client = memory_new(sizeof(*client));
	lock_init(&client->lock, LOCK_S3_CLIENT);
	lock_condition_init(&client->freed);
	lock_condition_init(&client->cancelled);
	client->answered_ms = -1;
	take_options(client, options);
	if (make_connections(client, options, err) == 0)
		return client;
	s3_client_free(client);
	return NULL;
}

/* No message has a credential. */
static int check_options(const struct s3_client_options *options, struct error *err)
{
	const char *prefix = options->prefix != NULL ? options->prefix : "";
	ASSERT(options->endpoint != NULL && options->bucket != NULL);
	if (options->bucket[0] == '\0' || strchr(options->bucket, '/') != NULL ||
		strlen(options->bucket) > 255)
		return error_set(err, ERROR_INVALID, "\"%.80s\" is not the name of a bucket.",
			options->bucket);
	if (strlen(prefix) > S3_PREFIX_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"The prefix \"%.80s...\" is longer than %d bytes.", prefix,
			S3_PREFIX_MAX_BYTES);
	if (options->signing.key_id == NULL || options->signing.secret == NULL)
		return error_set(err, ERROR_INVALID, "An S3 service needs a key id and a secret.");
	if (check_word("key id", options->signing.key_id, NULL, err) != 0 ||
		check_word("secret", options->signing.secret, NULL, err) != 0 ||
		check_word("session token", options->signing.session, NULL, err) != 0)
		return -1;
	return check_word("region", options->signing.region, ":/", err);
}

/* `word` may be NULL; it goes into a header. `also`: what it may not have either. */
static int check_word(const char *what, const char *word, const char *also, struct error *err)
{
	const struct span text = span_text(word);
	bool is_right = word == NULL || text.len > 0;
	for (size_t i = 0; i < text.len; i++)
		is_right = is_right && text.data[i] > ' ' && text.data[i] < 0x7f &&
			(also == NULL || strchr(also, text.data[i]) == NULL);
	return is_right
		? 0
		: error_set(err, ERROR_INVALID,
			  "The %s for the S3 service is empty, or has blanks, line ends or other characters that it cannot have.",
			  what);
}

static void take_options(struct s3_client *client, const struct s3_client_options *options)
{
	struct s3_client_options *taken = &client->options;
	struct buffer path;
	*taken = *options;
	taken->connections = taken->connections != 0 ? taken->connections : CONNECTIONS;
	taken->tries = taken->tries != 0 ? taken->tries : TRIES;
	taken->pause_ms = taken->pause_ms != 0 ? taken->pause_ms : PAUSE_MS;
	taken->give_up_ms = taken->give_up_ms != 0 ? taken->give_up_ms : GIVE_UP_MS;
	taken->page = taken->page != 0 ? taken->page : PAGE;
	taken->endpoint = taken->ca_file = taken->bucket = taken->prefix = NULL;
	taken->signing = (struct http_signing){.key_id = NULL};
	client->endpoint = memory_copy_text(options->endpoint);
	client->prefix = memory_copy_text(options->prefix != NULL ? options->prefix : "");
	buffer_init(&path, S3_TARGET_MAX_BYTES);
	buffer_add_byte(&path, '/');
	encode_percent(span_text(options->bucket), false, &path);
	client->bucket_path = memory_copy_text(buffer_text(&path));
	buffer_release(&path);
}

static int make_connections(
	struct s3_client *client, const struct s3_client_options *options, struct error *err)
{
	struct http_client_options each = {.endpoint = options->endpoint,
		.ca_file = options->ca_file,
		.signing = options->signing,
		.connect_timeout_ms = options->connect_timeout_ms,
		.stall_timeout_ms = options->stall_timeout_ms};
	if (each.signing.region == NULL)
		each.signing.region = "us-east-1";
	client->connections =
		memory_new_array(client->options.connections, sizeof(*client->connections));
	for (size_t i = 0; i < client->options.connections; i++) {
		client->connections[i].http = http_client_new(&each, err);
		if (client->connections[i].http == NULL)
			return -1;
	}
	return 0;
}

void s3_client_free(struct s3_client *client)
{
	if (client == NULL)
		return;
	for (size_t i = 0; i < client->options.connections; i++) {
		ASSERT(!client->connections[i].is_used);
		http_client_free(client->connections[i].http);
	}
	free(client->connections);
	lock_condition_release(&client->cancelled);
	lock_condition_release(&client->freed);
	lock_release(&client->lock);
	free(client->bucket_path);
	free(client->endpoint);
	free(client->prefix);
	free(client);
}

/* A request that waits for a connection sees it when one of those that are used ends. */
void s3_client_cancel(struct s3_client *client)
{
	lock_enter(&client->lock);
	client->is_cancelled = true;
	for (size_t i = 0; i < client->options.connections; i++)
		http_client_cancel(client->connections[i].http);
	lock_broadcast(&client->cancelled);
	lock_leave(&client->lock);
}

int s3_client_target(const struct s3_client *client, const char *name, const char *query,
	struct buffer *out, struct error *err)
{
	ASSERT(name[0] != '\0');
	buffer_init(out, S3_TARGET_MAX_BYTES);
	if (strlen(client->prefix) + strlen(name) > S3_KEY_MAX_BYTES)
		return error_set(err, ERROR_KEY_TOO_LONG,
			"The key \"%.80s%.80s...\" is longer than %d bytes.", client->prefix, name,
			S3_KEY_MAX_BYTES);
	buffer_add_text(out, client->bucket_path);
	buffer_add_byte(out, '/');
	encode_percent(span_text(client->prefix), true, out);
	encode_percent(span_text(name), true, out);
	buffer_add_text(out, query);
	return buffer_check(out, "the target of a request", err);
}

int s3_client_put(struct s3_client *client, const char *name, struct span bytes, struct error *err)
{
	struct s3_request request = {.method = "PUT", .body = bytes};
	struct s3_answer answer;
	const int result = send_plain(client, name, &request, &answer, err);
	http_response_release(&answer.response);
	return result;
}

static int send_plain(struct s3_client *client, const char *name, struct s3_request *request,
	struct s3_answer *answer, struct error *err)
{
	struct buffer target;
	int result = -1;
	*answer = (struct s3_answer){.response.status = 0};
	if (s3_client_target(client, name, "", &target, err) == 0) {
		request->target = buffer_text(&target);
		result = s3_sender_send(client, request, answer, err);
	}
	buffer_release(&target);
	return result;
}

int s3_client_get(struct s3_client *client, const char *name, struct buffer *out, struct error *err)
{
	struct s3_whole whole = {
		.sink.write = s3_client_write_whole, .out = out, .begin = out->len};
	struct s3_request request = {
		.method = "GET", .sink = &whole.sink, .restart = s3_client_restart_whole};
	struct s3_answer answer;
	int result = send_plain(client, name, &request, &answer, err);
	if (result == 0)
		result = check_whole(name, &whole, &answer.response, err);
	http_response_release(&answer.response);
	return result;
}

static void s3_client_restart_whole(struct body_sink *sink)
{
	struct s3_whole *whole = (struct s3_whole *)sink;
	whole->out->len = whole->begin;
}

static enum sink_result s3_client_write_whole(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct buffer *out = ((struct s3_whole *)sink)->out;
	buffer_add_span(out, bytes);
	return buffer_check(out, "an object of the S3 service", err) == 0 ? SINK_TAKEN
									  : SINK_FAILED;
}

static int check_whole(const char *name, const struct s3_whole *whole,
	const struct http_response *response, struct error *err)
{
	const uint64_t got = whole->out->len - whole->begin;
	if (response->status == 200 &&
		(response->content_length == UINT64_MAX || response->content_length == got))
		return 0;
	return error_set(err, ERROR_CORRUPT,
		"The S3 service answered with status %d and %" PRIu64
		" bytes where the whole of %.200s was asked for.",
		response->status, got, name);
}

int s3_client_get_range(
	struct s3_client *client, const char *name, struct s3_range *range, struct error *err)
{
	char header[80];
	struct s3_piece piece = {.sink.write = s3_client_write_piece, .range = range};
	struct s3_request request = {.method = "GET",
		.header = header,
		.sink = &piece.sink,
		.restart = s3_client_restart_piece};
	struct s3_answer answer;
	ASSERT(range->length > 0 && range->offset <= UINT64_MAX - range->length);
	snprintf(header, sizeof(header), "Range: bytes=%" PRIu64 "-%" PRIu64, range->offset,
		range->offset + range->length - 1);
	int result = send_plain(client, name, &request, &answer, err);
	range->total = answer.response.status != 0 ? answer.response.range.total : UINT64_MAX;
	if (result == 0 || answer.response.status == 416)
		result = check_piece(name, &piece, &answer.response, err);
	http_response_release(&answer.response);
	return result;
}

static void s3_client_restart_piece(struct body_sink *sink)
{
	((struct s3_piece *)sink)->len = 0;
}

static enum sink_result s3_client_write_piece(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct s3_piece *piece = (struct s3_piece *)sink;
	ASSERT(piece->len <= piece->range->length);
	if (bytes.len > piece->range->length - piece->len) {
		error_set(err, ERROR_CORRUPT,
			"The S3 service sent more than the %zu bytes that were asked for.",
			piece->range->length);
		return SINK_FAILED;
	}
	memcpy(piece->range->into + piece->len, bytes.data, bytes.len);
	piece->len += bytes.len;
	return SINK_TAKEN;
}

static int check_piece(const char *name, const struct s3_piece *piece,
	const struct http_response *response, struct error *err)
{
	const struct s3_range *range = piece->range;
	const uint64_t last = range->offset + range->length - 1;
	const struct http_range *told = &response->range;
	if (response->status == 206 && piece->len == range->length &&
		told->first == range->offset && told->last == last && told->total != UINT64_MAX &&
		told->total > last)
		return 0;
	return error_set(err, ERROR_CORRUPT,
		"The S3 service answered with status %d and %zu bytes where the bytes %" PRIu64
		" to %" PRIu64 " of %.200s were asked for.",
		response->status, piece->len, range->offset, last, name);
}

int s3_client_head(
	struct s3_client *client, const char *name, uint64_t *out_bytes, struct error *err)
{
	struct s3_request request = {.method = "HEAD"};
	struct s3_answer answer;
	int result = send_plain(client, name, &request, &answer, err);
	if (result != 0 && err->kind == ERROR_NOT_FOUND)
		(void)check_bucket(client, name, err);
	if (result == 0 && answer.response.content_length == UINT64_MAX)
		result = error_set(err, ERROR_UPSTREAM,
			"The S3 service did not tell the length of %.200s.", name);
	if (result == 0)
		*out_bytes = answer.response.content_length;
	http_response_release(&answer.response);
	return result;
}

/* The answer to a HEAD has no body that would say whether the object or the bucket is missing. */
static int check_bucket(struct s3_client *client, const char *name, struct error *err)
{
	const struct s3_request request = {.method = "HEAD", .target = client->bucket_path};
	struct s3_answer answer;
	const int result = s3_sender_send(client, &request, &answer, err);
	http_response_release(&answer.response);
	if (result == 0 || err->kind == ERROR_DENIED) /* keys may have the right to objects alone */
		return error_set(
			err, ERROR_NOT_FOUND, "The S3 service has no object %.200s.", name);
	return err->kind != ERROR_NOT_FOUND
		? -1
		: error_set(err, ERROR_UPSTREAM, "The S3 service has no bucket %.200s.",
			  client->bucket_path + 1);
}

int s3_client_remove(struct s3_client *client, const char *name, struct error *err)
{
	struct s3_request request = {.method = "DELETE"};
	struct s3_answer answer;
	struct error why;
	int result = send_plain(client, name, &request, &answer, &why);
	if (result != 0 && why.kind == ERROR_NOT_FOUND)
		result = 0;
	if (result != 0)
		*err = why;
	http_response_release(&answer.response);
	return result;
}
