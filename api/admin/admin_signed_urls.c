/* A URL has all rights of the key for its one request, also after the session has ended. So it
 * lives an hour at most, unless it only reads an object, and it is never for a path of another
 * face. */
#include "api/admin/admin_signed_urls.h"

#include <string.h>

#include "api/auth/audit_note.h"
#include "api/auth/presigned_v4.h"
#include "api/auth/signed_url.h"
#include "api/route/hub_name.h"
#include "api/route/router.h"
#include "base/format/json_node.h"

enum {
	REQUEST_MAX_BYTES = 2 * 1024 * 1024,
	REPLY_MAX_BYTES = 32 * 1024 * 1024,
	VALUES_MAX = 100 * 1000,
	URLS_MAX = 1000,
	KEY_MAX_BYTES = 1024,
	EXPIRES_DEFAULT_S = 900,
	EXPIRES_OTHER_MAX_S = 3600
};

static struct call *audit_of_long(struct exchange *exchange, const struct json_node *root);
static int read_expires(const struct json_node *root, int64_t *out_s, struct error *err);
static int sign_all(struct exchange *exchange, const struct json_node *root, struct buffer *body,
	struct error *err);
static int print_urls(const struct url_signer *signer, struct exchange *exchange,
	const struct json_node *requests, struct json_writer *json, struct error *err);
static int print_url(const struct url_signer *signer, const struct url_request *request,
	struct json_writer *json, struct error *err);
static int parse_request(struct exchange *exchange, const struct json_node *node,
	struct url_request *out, struct error *err);
static int check_path(
	struct exchange *exchange, const struct url_request *request, struct error *err);
static bool parse_method(const struct json_node *node, enum method *out);
static int parse_key(const struct json_node *node, struct url_request *out, struct error *err);
static int parse_query(const struct json_node *node, struct url_request *out, struct error *err);
static int check_expires(
	const struct url_signer *signer, const struct url_request *request, struct error *err);

enum next admin_signed_urls_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

enum next admin_signed_urls_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_node *const root = json_node_parse_within(
		exchange_body(exchange), VALUES_MAX, "The request body", &err);
	if (root == NULL)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	const int outcome = sign_all(exchange, root, &body, &err);
	struct call *const audit = outcome == 0 ? audit_of_long(exchange, root) : NULL;
	json_node_free(root);
	if (outcome != 0) {
		buffer_release(&body);
		return exchange_fail(exchange, &err);
	}
	exchange_add_header(exchange, "Cache-Control", "no-store");
	const enum next next = exchange_reply_buffer(exchange, 200, "application/json", &body);
	return audit != NULL ? exchange_await(exchange, audit) : next;
}

/* The reply was set before the wait. */
enum next admin_signed_urls_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (exchange->reply.status != 200)
		return NEXT_REPLY;
	return call_outcome(exchange->call, &err) != 0
		? exchange_fail(exchange, &err)
		: exchange_reply_body(
			  exchange, 200, "application/json", buffer_span(&exchange->reply.bytes));
}

/* URLs that outlive an hour stand in the audit trail before anybody has them: the first one, and
 * how many they are. NULL: they do not live that long. */
static struct call *audit_of_long(struct exchange *exchange, const struct json_node *root)
{
	const struct json_node *const requests = json_node_member(root, "requests");
	const struct json_node *const first = json_node_at(requests, 0);
	struct span bucket = {NULL, 0};
	struct span key = {NULL, 0};
	struct error ignored = {0};
	int64_t expires_s = EXPIRES_DEFAULT_S;
	if (read_expires(root, &expires_s, &ignored) != 0 || expires_s <= EXPIRES_OTHER_MAX_S)
		return NULL;
	json_node_text(json_node_member(first, "bucket"), &bucket);
	json_node_text(json_node_member(first, "key"), &key);
	const char *const subject = arena_format(exchange->arena, "%.*s/%.*s", (int)bucket.len,
		(const char *)bucket.data, (int)key.len, (const char *)key.data);
	const char *const detail = arena_format(exchange->arena, "%zu for %lld seconds",
		json_node_count(requests), (long long)expires_s);
	const struct audit_entry entry =
		audit_note_entry(exchange, "urls_signed", span_text(subject), span_text(detail));
	return audit_call(exchange->context->store, &entry);
}

static int sign_all(struct exchange *exchange, const struct json_node *root, struct buffer *body,
	struct error *err)
{
	const struct json_node *const requests = json_node_member(root, "requests");
	struct json_writer json;
	struct url_signer signer;
	int64_t expires_s = EXPIRES_DEFAULT_S;
	int64_t signed_ms = 0;
	char expires[CLOCK_TEXT_BYTES];
	if (!json_node_is_array(requests) || json_node_count(requests) < 1 ||
		json_node_count(requests) > URLS_MAX)
		return error_set(err, ERROR_INVALID,
			"\"requests\" must be an array of 1 to %d requests.", URLS_MAX);
	if (read_expires(root, &expires_s, err) != 0 ||
		url_signer_init(&signer, exchange, expires_s, err) != 0)
		return -1;
	json_writer_init(&json, body);
	json_writer_object(&json, NULL);
	const int outcome = print_urls(&signer, exchange, requests, &json, err);
	explicit_bzero(signer.key, sizeof(signer.key));
	clock_parse_amz(span_text(signer.date), &signed_ms);
	clock_format_iso(signed_ms + expires_s * 1000, expires);
	json_writer_text(&json, "expires", span_text(expires));
	json_writer_end(&json, '}');
	return outcome;
}

static int read_expires(const struct json_node *root, int64_t *out_s, struct error *err)
{
	const struct json_node *const node = json_node_member(root, "expires_s");
	uint64_t number = 0;
	if (node == NULL)
		return 0;
	if (!json_node_u64(node, &number) || number < 1 || number > PRESIGNED_V4_EXPIRES_MAX_S)
		return error_set(err, ERROR_INVALID,
			"\"expires_s\" must be a number of seconds from 1 to %d.",
			PRESIGNED_V4_EXPIRES_MAX_S);
	*out_s = (int64_t)number;
	return 0;
}

static int print_urls(const struct url_signer *signer, struct exchange *exchange,
	const struct json_node *requests, struct json_writer *json, struct error *err)
{
	int outcome = 0;
	json_writer_array(json, "urls");
	for (size_t i = 0; outcome == 0 && i < json_node_count(requests); i++) {
		struct url_request request = {.parameter_count = 0};
		outcome = parse_request(exchange, json_node_at(requests, i), &request, err);
		if (outcome == 0)
			outcome = check_expires(signer, &request, err);
		if (outcome == 0)
			outcome = print_url(signer, &request, json, err);
		if (outcome != 0)
			error_wrap(err, "Request %zu cannot be signed", i);
	}
	json_writer_end(json, ']');
	return outcome;
}

static int print_url(const struct url_signer *signer, const struct url_request *request,
	struct json_writer *json, struct error *err)
{
	struct buffer url;
	buffer_init(&url, 3 * (size_t)SIGNED_URL_MAX_BYTES);
	const int outcome = url_signer_print(signer, request, &url, err);
	if (outcome == 0)
		json_writer_text(json, NULL, buffer_span(&url));
	buffer_release(&url);
	return outcome;
}

static int parse_request(struct exchange *exchange, const struct json_node *node,
	struct url_request *out, struct error *err)
{
	if (!json_node_is_object(node) ||
		!json_node_text(json_node_member(node, "bucket"), &out->bucket))
		return error_set(err, ERROR_INVALID,
			"it must be an object with \"method\", \"bucket\", and perhaps \"key\" and \"query\".");
	if (!parse_method(json_node_member(node, "method"), &out->method))
		return error_set(
			err, ERROR_INVALID, "\"method\" must be GET, HEAD, PUT, POST or DELETE.");
	if (hub_name_check_bucket(exchange->context->default_namespace, out->bucket, err) != 0 ||
		parse_key(json_node_member(node, "key"), out, err) != 0)
		return -1;
	return check_path(exchange, out, err) != 0
		? -1
		: parse_query(json_node_member(node, "query"), out, err);
}

/* Some paths below a possible name are the server's own, such as /oauth/device. */
static int check_path(
	struct exchange *exchange, const struct url_request *request, struct error *err)
{
	char *const path = arena_format(exchange->arena, "/%.*s%s%.*s", (int)request->bucket.len,
		(const char *)request->bucket.data, request->key.len > 0 ? "/" : "",
		(int)request->key.len, (const char *)request->key.data);
	if (path == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	return router_is_of_bucket(span_text(path))
		? 0
		: error_set(err, ERROR_INVALID,
			  "this path below /%.*s/ is one of the server's own, and no object has it.",
			  (int)request->bucket.len, (const char *)request->bucket.data);
}

static bool parse_method(const struct json_node *node, enum method *out)
{
	static const struct {
		const char *name;
		enum method method;
	} methods[] = {{"GET", METHOD_GET}, {"HEAD", METHOD_HEAD}, {"PUT", METHOD_PUT},
		{"POST", METHOD_POST}, {"DELETE", METHOD_DELETE}};
	struct span text;
	if (!json_node_text(node, &text))
		return false;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (span_equal_text(text, methods[i].name)) {
			*out = methods[i].method;
			return true;
		}
	return false;
}

static int parse_key(const struct json_node *node, struct url_request *out, struct error *err)
{
	if (node == NULL)
		return 0;
	if (!json_node_text(node, &out->key) || out->key.len == 0 || out->key.len > KEY_MAX_BYTES ||
		span_find(out->key, '\0') >= 0)
		return error_set(err, ERROR_INVALID,
			"\"key\" must be a text of 1 to %d bytes without a NUL.", KEY_MAX_BYTES);
	return 0;
}

static int parse_query(const struct json_node *node, struct url_request *out, struct error *err)
{
	const struct json_node *value;
	struct span name;
	void *cursor = NULL;
	if (node == NULL)
		return 0;
	if (!json_node_is_object(node) || json_node_count(node) > SIGNED_URL_PARAMETERS_MAX)
		return error_set(err, ERROR_INVALID,
			"\"query\" must be an object of at most %d texts.",
			SIGNED_URL_PARAMETERS_MAX);
	while (json_node_each(node, &cursor, &name, &value)) {
		struct url_parameter *const parameter = &out->parameters[out->parameter_count++];
		parameter->name = name;
		if (name.len == 0 || span_find(name, '\0') >= 0 ||
			!json_node_text(value, &parameter->value) ||
			span_find(parameter->value, '\0') >= 0)
			return error_set(err, ERROR_INVALID,
				"the names and values of \"query\" must be texts without a NUL.");
	}
	return 0;
}

static int check_expires(
	const struct url_signer *signer, const struct url_request *request, struct error *err)
{
	const bool reads_object =
		request->key.len > 0 && (request->method & (METHOD_GET | METHOD_HEAD)) != 0;
	return reads_object || signer->expires_s <= EXPIRES_OTHER_MAX_S
		? 0
		: error_set(err, ERROR_INVALID,
			  "\"expires_s\" may be above %d only for GET and HEAD of an object.",
			  EXPIRES_OTHER_MAX_S);
}
