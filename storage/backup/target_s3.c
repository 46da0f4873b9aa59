/* An object is one of a bucket, addressed by path. Requests are signed by libcurl; the signature
 * has the SHA-256 of the body, so the service refuses one that does not arrive as it was sent. The
 * settings are those of other S3 clients: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL_S3 and AWS_CA_BUNDLE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/format/xml_reader.h"
#include "base/memory.h"
#include "base/net/http_client.h"
#include "storage/backup/backup_target.h"

enum {
	TARGET_MAX_BYTES = 8192,
	TRIES = 5,
	GIVE_UP_MS = 30 * 1000,
	MS_PER_SECOND = 1000,
	MESSAGE_BYTES = 200,
	TOKEN_MAX_BYTES = 4096,
	KEY_MAX_BYTES = 1100
};
static const char EMPTY_SHA256[] =
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct target_s3 {
	struct backup_target target; /* first */
	struct http_client *client;
	char *path;   /* "/BUCKET/" and the prefix, which ends with a slash if it is not empty */
	char *prefix; /* of the keys, as path, without the bucket; not encoded */
	bool has_answered; /* to any request */
	bool is_down;      /* the last request had no answer, however often it was sent */
	bool has_told;     /* of a failure */
};

struct s3_sink {               /* a body that goes to a buffer */
	struct body_sink sink; /* first */
	struct buffer *out;
	size_t begin; /* of this try's bytes */
};

struct s3_listing {
	const struct target_s3 *s3;
	backup_target_take_fn *take;
	void *taker;
	char key[KEY_MAX_BYTES];
	uint64_t bytes;
	int64_t changed_ms;
	char next[TOKEN_MAX_BYTES]; /* of the next page; "" when this was the last one */
};

struct s3_request {
	const char *method;
	const char *target;
	struct span body;
	struct s3_sink *sink; /* NULL: the body is kept */
};

static const char *setting(const char *const *names);
static struct http_client *make_client(struct error *err);
static void split_place(struct target_s3 *s3, const char *place);
static int target_s3_put(
	struct backup_target *target, const char *name, struct span bytes, struct error *err);
static int send_to(struct target_s3 *s3, const char *name, struct s3_request *request,
	struct http_response *response, struct error *err);
static int send_request(struct target_s3 *s3, const struct s3_request *request,
	struct http_response *response, struct error *err);
static int send_once(const struct target_s3 *s3, const struct s3_request *request,
	struct http_response *response, struct error *err);
static bool is_worth_again(const struct target_s3 *s3, int result,
	const struct http_response *response, const struct error *err);
static void tell_once(struct target_s3 *s3, const struct s3_request *request, int result,
	const struct http_response *response, const struct error *err);
static int refused(
	const struct s3_request *request, const struct http_response *response, struct error *err);
static int target_s3_take_message(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static int target_s3_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err);
static enum sink_result target_s3_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int target_s3_list(struct backup_target *target, const char *kind,
	backup_target_take_fn *take, void *taker, struct error *err);
static int list_page(struct target_s3 *s3, const char *kind, struct s3_listing *listing,
	struct error *err);
static int target_s3_close_element(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static int give_object(struct s3_listing *listing, struct error *err);
static int target_s3_remove(struct backup_target *target, const char *name, struct error *err);
static int target_s3_pin(struct backup_target *target, struct error *err);
static int target_s3_settle(struct backup_target *target, const char *kind, struct error *err);
static void target_s3_free(struct backup_target *target);

static const struct backup_target_ops ops = {.put = target_s3_put,
	.get = target_s3_get,
	.list = target_s3_list,
	.remove = target_s3_remove,
	.pin = target_s3_pin,
	.settle = target_s3_settle,
	.free = target_s3_free};

struct backup_target *target_s3_open(const char *place, struct error *err)
{
	if (strlen(place) > TARGET_MAX_BYTES / 4) {
		error_set(err, ERROR_INVALID, "s3://%.80s... is too long.", place);
		return NULL;
	}
	struct http_client *client = make_client(err);
	if (client == NULL)
		return NULL;
	struct target_s3 *s3 = memory_new(sizeof(*s3));
	s3->target.ops = &ops;
	s3->target.is_far = true;
	s3->client = client;
	split_place(s3, place);
	return &s3->target;
}

/* The first of these variables that is set and not empty. */
static const char *setting(const char *const *names)
{
	for (size_t i = 0; names[i] != NULL; i++) {
		const char *value = getenv(names[i]);
		if (value != NULL && value[0] != '\0')
			return value;
	}
	return NULL;
}

static struct http_client *make_client(struct error *err)
{
	static const char *const key_names[] = {"AWS_ACCESS_KEY_ID", NULL};
	static const char *const secret_names[] = {"AWS_SECRET_ACCESS_KEY", NULL};
	static const char *const session_names[] = {"AWS_SESSION_TOKEN", NULL};
	static const char *const region_names[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
	static const char *const endpoint_names[] = {
		"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
	static const char *const ca_names[] = {"AWS_CA_BUNDLE", NULL};
	char amazon[256];
	struct http_client_options options = {.ca_file = setting(ca_names)};
	options.signing.key_id = setting(key_names);
	options.signing.secret = setting(secret_names);
	options.signing.session = setting(session_names);
	options.signing.region = setting(region_names);
	if (options.signing.region == NULL)
		options.signing.region = "us-east-1";
	if (options.signing.key_id == NULL || options.signing.secret == NULL) {
		error_set(err, ERROR_INVALID,
			"A bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment.");
		return NULL;
	}
	snprintf(amazon, sizeof(amazon), "https://s3.%.60s.amazonaws.com", options.signing.region);
	options.endpoint = setting(endpoint_names);
	if (options.endpoint == NULL)
		options.endpoint = amazon;
	return http_client_new(&options, err);
}

static void split_place(struct target_s3 *s3, const char *place)
{
	const size_t bucket = strcspn(place, "/");
	const char *prefix = place + bucket + (place[bucket] == '/' ? 1 : 0);
	const size_t len = strlen(prefix);
	const bool lacks_slash = len > 0 && prefix[len - 1] != '/';
	struct buffer path;
	s3->prefix = memory_new(len + 2);
	snprintf(s3->prefix, len + 2, "%s%s", prefix, lacks_slash ? "/" : "");
	buffer_init(&path, TARGET_MAX_BYTES);
	buffer_add_byte(&path, '/');
	encode_percent(span_of(place, bucket), false, &path);
	buffer_add_byte(&path, '/');
	encode_percent(span_text(s3->prefix), true, &path);
	s3->path = memory_copy_text(buffer_text(&path));
	buffer_release(&path);
}

static int target_s3_put(
	struct backup_target *target, const char *name, struct span bytes, struct error *err)
{
	struct s3_request request = {.method = "PUT", .body = bytes};
	struct http_response response;
	int result = send_to((struct target_s3 *)target, name, &request, &response, err);
	if (result == 0 && response.status != 200)
		result = refused(&request, &response, err);
	http_response_release(&response);
	return result;
}

static int send_to(struct target_s3 *s3, const char *name, struct s3_request *request,
	struct http_response *response, struct error *err)
{
	char target[TARGET_MAX_BYTES];
	snprintf(target, sizeof(target), "%s%s", s3->path, name);
	request->target = target;
	return send_request(s3, request, response, err);
}

/* Services ask now and then to send a request again. One that does not answer at all is waited for
 * once, not by each request. */
static int send_request(struct target_s3 *s3, const struct s3_request *request,
	struct http_response *response, struct error *err)
{
	const int64_t until = clock_monotonic_ms() + GIVE_UP_MS;
	for (int i = 0;; i++) {
		const int64_t pause_ms = (int64_t)MS_PER_SECOND << i;
		const int result = send_once(s3, request, response, err);
		const bool is_last = i == TRIES - 1 ||
			(result != 0 && (s3->is_down || clock_monotonic_ms() + pause_ms > until));
		s3->has_answered = s3->has_answered || result == 0;
		if (is_last || !is_worth_again(s3, result, response, err)) {
			s3->is_down = result != 0 && err->kind == ERROR_UPSTREAM;
			return result;
		}
		tell_once(s3, request, result, response, err);
		http_response_release(response);
		nanosleep(&(struct timespec){.tv_sec = pause_ms / MS_PER_SECOND}, NULL);
	}
}

static int send_once(const struct target_s3 *s3, const struct s3_request *request,
	struct http_response *response, struct error *err)
{
	static const char name[] = "x-amz-content-sha256: ";
	char header[sizeof(name) + sizeof(EMPTY_SHA256)];
	uint8_t digest[SHA256_BYTES];
	snprintf(header, sizeof(header), "%s%s", name, EMPTY_SHA256);
	if (request->body.len > 0) {
		sha256(request->body, digest);
		encode_hex(span_of(digest, sizeof(digest)), header + sizeof(name) - 1);
	}
	if (request->sink != NULL)
		request->sink->out->len = request->sink->begin;
	const char *const headers[] = {header, "Content-Type: application/octet-stream", NULL};
	const struct http_request sent = {.method = request->method,
		.target = request->target,
		.headers = headers,
		.body = request->body,
		.sink = request->sink != NULL ? &request->sink->sink : NULL};
	return http_client_send(s3->client, &sent, response, err);
}

/* TLS that was never agreed on will not be. */
static bool is_worth_again(const struct target_s3 *s3, int result,
	const struct http_response *response, const struct error *err)
{
	if (result != 0)
		return err->kind == ERROR_UPSTREAM &&
			(s3->has_answered || !response->wrong_protocol);
	return response->status == 429 || response->status == 500 || response->status == 502 ||
		response->status == 503;
}

static void tell_once(struct target_s3 *s3, const struct s3_request *request, int result,
	const struct http_response *response, const struct error *err)
{
	struct error why = *err;
	if (s3->has_told || s3->target.tell == NULL)
		return;
	if (result == 0)
		refused(request, response, &why);
	s3->has_told = true;
	s3->target.tell(s3->target.owner, &why);
}

static int refused(
	const struct s3_request *request, const struct http_response *response, struct error *err)
{
	static const struct xml_reader_events events = {.close = target_s3_take_message};
	char message[MESSAGE_BYTES] = "";
	struct error ignored;
	(void)xml_reader_parse(buffer_span(&response->body), &events, message, &ignored);
	return error_set(err,
		response->status == 404           ? ERROR_NOT_FOUND
			: response->status == 403 ? ERROR_DENIED
						  : ERROR_UPSTREAM,
		"%s %.300s was answered with status %d%s%s", request->method, request->target,
		response->status, message[0] != '\0' ? ": " : ".", message);
}

static int target_s3_take_message(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	(void)err;
	if (depth == 2 && span_equal_text(name, "Message"))
		snprintf(owner, MESSAGE_BYTES, "%.*s", (int)text.len, (const char *)text.data);
	return 0;
}

static int target_s3_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err)
{
	struct s3_sink sink = {.sink.write = target_s3_write, .out = out, .begin = out->len};
	struct s3_request request = {.method = "GET", .sink = &sink};
	struct http_response response;
	int result = send_to((struct target_s3 *)target, name, &request, &response, err);
	if (result == 0 && response.status != 200)
		result = refused(&request, &response, err);
	http_response_release(&response);
	return result;
}

static enum sink_result target_s3_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct buffer *out = ((struct s3_sink *)sink)->out;
	buffer_add_span(out, bytes);
	return buffer_check(out, "an object of the backup", err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

static int target_s3_list(struct backup_target *target, const char *kind,
	backup_target_take_fn *take, void *taker, struct error *err)
{
	struct target_s3 *s3 = (struct target_s3 *)target;
	struct s3_listing *listing = memory_new(sizeof(*listing));
	int result;
	listing->s3 = s3;
	listing->take = take;
	listing->taker = taker;
	do
		result = list_page(s3, kind, listing, err);
	while (result == 0 && listing->next[0] != '\0');
	free(listing);
	return result;
}

/* The parameters stand in the order of their names, as a signature needs them. */
static int list_page(
	struct target_s3 *s3, const char *kind, struct s3_listing *listing, struct error *err)
{
	static const struct xml_reader_events events = {.close = target_s3_close_element};
	struct buffer target;
	struct http_response response;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_span(
		&target, span_of(s3->path, strcspn(s3->path + 1, "/") + 1)); /* the bucket alone */
	buffer_add_byte(&target, '?');
	if (listing->next[0] != '\0') {
		buffer_add_text(&target, "continuation-token=");
		encode_percent(span_text(listing->next), false, &target);
		buffer_add_byte(&target, '&');
	}
	buffer_add_text(&target, "list-type=2&prefix=");
	encode_percent(span_text(s3->prefix), false, &target);
	encode_percent(span_text(kind), false, &target);
	buffer_add_text(&target, "%2F");
	const struct s3_request request = {.method = "GET", .target = buffer_text(&target)};
	int result = send_request(s3, &request, &response, err);
	if (result == 0 && response.status != 200)
		result = refused(&request, &response, err);
	listing->next[0] = '\0';
	if (result == 0)
		result = xml_reader_parse(buffer_span(&response.body), &events, listing, err);
	http_response_release(&response);
	buffer_release(&target);
	return result;
}

static int target_s3_close_element(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct s3_listing *listing = owner;
	if (depth == 3 && span_equal_text(name, "Key"))
		snprintf(listing->key, sizeof(listing->key), "%.*s", (int)text.len,
			(const char *)text.data);
	else if (depth == 3 && span_equal_text(name, "Size"))
		span_parse_u64(text, &listing->bytes);
	else if (depth == 3 && span_equal_text(name, "LastModified"))
		clock_parse_http(text, &listing->changed_ms);
	else if (depth == 2 && span_equal_text(name, "NextContinuationToken"))
		snprintf(listing->next, sizeof(listing->next), "%.*s", (int)text.len,
			(const char *)text.data);
	else if (depth == 2 && span_equal_text(name, "Contents"))
		return give_object(listing, err);
	return 0;
}

static int give_object(struct s3_listing *listing, struct error *err)
{
	const size_t front = strlen(listing->s3->prefix);
	const struct backup_object object = {.name = listing->key + front,
		.bytes = listing->bytes,
		.changed_ms = listing->changed_ms};
	if (strncmp(listing->key, listing->s3->prefix, front) != 0 ||
		strlen(object.name) >= BACKUP_NAME_BYTES)
		return 0;
	return listing->take(listing->taker, &object, err);
}

static int target_s3_remove(struct backup_target *target, const char *name, struct error *err)
{
	struct s3_request request = {.method = "DELETE"};
	struct http_response response;
	int result = send_to((struct target_s3 *)target, name, &request, &response, err);
	if (result == 0 && response.status != 204 && response.status != 200 &&
		response.status != 404)
		result = refused(&request, &response, err);
	http_response_release(&response);
	return result;
}

/* A bucket does not go away and leave another one. */
static int target_s3_pin(struct backup_target *target, struct error *err)
{
	(void)target, (void)err;
	return 0;
}

/* A service that has confirmed a removal keeps to it. */
static int target_s3_settle(struct backup_target *target, const char *kind, struct error *err)
{
	(void)target;
	(void)kind;
	(void)err;
	return 0;
}

static void target_s3_free(struct backup_target *target)
{
	struct target_s3 *s3 = (struct target_s3 *)target;
	http_client_free(s3->client);
	free(s3->path);
	free(s3->prefix);
	free(s3);
}
