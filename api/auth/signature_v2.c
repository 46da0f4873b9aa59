/* The string to sign is the method, three headers, the x-amz-* headers in order, the resource and
 * the sub-resources of the query in order. Repeated headers and parameters must keep their order.
 * qsort is not stable, so the comparisons fall back to the places in the request. */
#include "api/auth/signature_v2.h"

#include <stdlib.h>
#include <string.h>

#include "api/auth/canonical_request.h"
#include "api/exchange/route.h"
#include "base/digest/digest.h"
#include "base/encode.h"

enum { AMZ_HEADERS_MAX = 128, QUERY_PAIRS_MAX = 64 };

struct amz_headers {
	struct arena *arena;
	struct amz_header {
		struct span name;
		struct span value;
	} * list;
	size_t count;
};

struct query_pair {
	const char *name;
	const uint8_t *place; /* in the query, for the order of repeats */
	bool has_value;
	struct span value; /* encoded */
};

static int check_time(struct exchange *exchange, uint64_t expires_s, struct error *err);
static const char *find_sub_resource(struct span sent);
static int build(struct exchange *exchange, const struct signature_v2 *signature,
	const char *suffix, struct buffer *out, struct error *err);
static int add_headers(struct exchange *exchange, struct buffer *out, struct error *err);
static void signature_v2_take_header(void *taker, struct span name, struct span value);
static struct span lower_copy(struct arena *arena, struct span text);
static int signature_v2_compare_headers(const void *left, const void *right);
static struct span resource_of(const struct exchange *exchange);
static int add_query(struct exchange *exchange, struct buffer *out, struct error *err);
static int signature_v2_compare_query(const void *left, const void *right);
static bool matches_with_slash(
	struct exchange *exchange, const struct signature_v2 *signature, struct span secret);
static bool is_bare_bucket(struct span resource);
static int refuse(struct exchange *exchange, const struct signature_v2 *signature, struct span text,
	struct error *err);

bool signature_v2_is_present(struct exchange *exchange)
{
	struct span value;
	return exchange->query.len > 0 &&
		(exchange_query(exchange, "AWSAccessKeyId", &value) ||
			exchange_query(exchange, "Signature", &value));
}

int signature_v2_parse(struct exchange *exchange, struct signature_v2 *out, struct error *err)
{
	uint64_t expires_s;
	*out = (struct signature_v2){.key_id = {NULL, 0}};
	if (!exchange->context->sigv2)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Signature version 2 is switched off on this server. Please use AWS4-HMAC-SHA256.");
	if (!exchange_query(exchange, "AWSAccessKeyId", &out->key_id) ||
		!exchange_query(exchange, "Expires", &out->expires) ||
		!exchange_query(exchange, "Signature", &out->signature))
		return error_set(err, ERROR_DENIED,
			"Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters.");
	if (!span_parse_u64(out->expires, &expires_s))
		return error_set(
			err, ERROR_DENIED, "Invalid date (should be seconds since epoch).");
	return check_time(exchange, expires_s, err);
}

int signature_v2_check_route(const struct exchange *exchange, struct error *err)
{
	if (exchange->route == NULL || exchange->route->query == NULL)
		return 0;
	struct span rest = span_text(exchange->route->query);
	struct span name = {NULL, 0};
	span_split(&rest, '=', &name);
	if (find_sub_resource(name) != NULL || span_equal_text(name, "list-type"))
		return 0;
	return error_set(err, ERROR_DENIED,
		"A signature of version 2 does not cover the parameter '%.*s'; sign with AWS4-HMAC-SHA256.",
		(int)name.len, (const char *)name.data);
}

bool signature_v2_matches(struct span secret, struct span text, struct span signature)
{
	uint8_t expected[SHA1_BYTES];
	uint8_t given[SHA1_BYTES];
	size_t len = 0;
	hmac_sha1(secret, text, expected);
	return decode_base64(signature, given, sizeof(given), &len) && len == sizeof(given) &&
		span_equal_secret(
			span_of(expected, sizeof(expected)), span_of(given, sizeof(given)));
}

int signature_v2_check(struct exchange *exchange, const struct signature_v2 *signature,
	struct span secret, struct error *err)
{
	struct buffer text;
	buffer_init(&text, CANONICAL_REQUEST_MAX_BYTES);
	int outcome = build(exchange, signature, "", &text, err);
	if (outcome == 0 &&
		!signature_v2_matches(secret, buffer_span(&text), signature->signature) &&
		!matches_with_slash(exchange, signature, secret))
		outcome = refuse(exchange, signature, buffer_span(&text), err);
	buffer_release(&text);
	return outcome;
}

static int check_time(struct exchange *exchange, uint64_t expires_s, struct error *err)
{
	const int64_t now_ms = exchange->context->clock->wall_ms(exchange->context->clock);
	char text[CLOCK_TEXT_BYTES];
	if (expires_s >= (uint64_t)now_ms / 1000)
		return 0;
	clock_format_iso((int64_t)expires_s * 1000, text);
	exchange_error_field(exchange, "Expires", span_text(text));
	clock_format_iso(now_ms, text);
	exchange_error_field(exchange, "ServerTime", span_text(text));
	return error_set(err, ERROR_DENIED, "Request has expired.");
}

/* The name of the sub-resource, or NULL when the parameter is not signed. `sent` is decoded as the
 * handlers decode it, because "%61cl" asks for the ACL too. */
static const char *find_sub_resource(struct span sent)
{
	static const char *const names[] = {"acl", "cors", "delete", "lifecycle", "location",
		"logging", "notification", "partNumber", "policy", "requestPayment",
		"response-cache-control", "response-content-disposition",
		"response-content-encoding", "response-content-language", "response-content-type",
		"response-expires", "tagging", "torrent", "uploadId", "uploads", "versionId",
		"versioning", "versions", "website"};
	const char *found = NULL;
	struct buffer name;
	buffer_init(&name, sent.len + 1);
	const bool good = decode_percent(sent, true, &name);
	for (size_t i = 0; good && found == NULL && i < sizeof(names) / sizeof(names[0]); i++)
		if (span_equal_text(buffer_span(&name), names[i]))
			found = names[i];
	buffer_release(&name);
	return found;
}

/* Builds the string to sign. `suffix` is added to the resource. */
static int build(struct exchange *exchange, const struct signature_v2 *signature,
	const char *suffix, struct buffer *out, struct error *err)
{
	const struct span parts[] = {span_text(canonical_request_method(exchange->method)),
		exchange_header(exchange, "content-md5"), exchange_header(exchange, "content-type"),
		signature->expires};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		buffer_add_span(out, span_trim(parts[i]));
		buffer_add_byte(out, '\n');
	}
	if (add_headers(exchange, out, err) != 0)
		return -1;
	buffer_add_span(out, resource_of(exchange));
	buffer_add_text(out, suffix);
	if (add_query(exchange, out, err) != 0)
		return -1;
	return buffer_check(out, "the string to sign", err);
}

static int add_headers(struct exchange *exchange, struct buffer *out, struct error *err)
{
	struct amz_headers headers = {.arena = exchange->arena};
	headers.list = arena_take_array(exchange->arena, AMZ_HEADERS_MAX, sizeof(*headers.list));
	if (headers.list == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	exchange->ops->each_header(exchange, signature_v2_take_header, &headers);
	qsort(headers.list, headers.count, sizeof(*headers.list), signature_v2_compare_headers);
	for (size_t i = 0; i < headers.count; i++) {
		const bool is_repeat =
			i > 0 && span_equal(headers.list[i].name, headers.list[i - 1].name);
		if (!is_repeat) {
			buffer_add_text(out, i > 0 ? "\n" : "");
			buffer_add_span(out, headers.list[i].name);
		}
		buffer_add_byte(out, is_repeat ? ',' : ':');
		buffer_add_span(out, headers.list[i].value);
	}
	if (headers.count > 0)
		buffer_add_byte(out, '\n');
	return 0;
}

static void signature_v2_take_header(void *taker, struct span name, struct span value)
{
	struct amz_headers *const headers = taker;
	ASSERT(headers->count <= AMZ_HEADERS_MAX);
	if (headers->count == AMZ_HEADERS_MAX ||
		!span_equal_nocase(span_slice(name, 0, 6), "x-amz-"))
		return;
	headers->list[headers->count++] =
		(struct amz_header){lower_copy(headers->arena, name), span_trim(value)};
}

static struct span lower_copy(struct arena *arena, struct span text)
{
	char *const copy = arena_text(arena, text);
	for (size_t i = 0; copy != NULL && i < text.len; i++)
		if (copy[i] >= 'A' && copy[i] <= 'Z')
			copy[i] = (char)(copy[i] - 'A' + 'a');
	return span_of(copy, copy != NULL ? text.len : 0);
}

/* Repeats keep their order: the earlier value has the lower address in the request. */
static int signature_v2_compare_headers(const void *left, const void *right)
{
	const struct amz_header *const a = left;
	const struct amz_header *const b = right;
	const int names = span_compare(a->name, b->name);
	return names != 0 ? names
			  : (a->value.data > b->value.data) - (a->value.data < b->value.data);
}

static struct span resource_of(const struct exchange *exchange)
{
	return exchange->resource.len > 0 ? exchange->resource : exchange->path;
}

static int add_query(struct exchange *exchange, struct buffer *out, struct error *err)
{
	struct query_pair pairs[QUERY_PAIRS_MAX];
	struct span rest = exchange->query;
	struct span pair;
	size_t count = 0;
	while (span_split(&rest, '&', &pair)) {
		const ptrdiff_t equals = span_find(pair, '=');
		const struct span sent =
			span_slice(pair, 0, equals < 0 ? pair.len : (size_t)equals);
		const char *const name = find_sub_resource(sent);
		if (name == NULL)
			continue;
		if (count == QUERY_PAIRS_MAX)
			return error_set(err, ERROR_TOO_LARGE, "The query has over %d parameters.",
				QUERY_PAIRS_MAX);
		pairs[count++] = (struct query_pair){
			name, pair.data, equals >= 0, span_slice(pair, sent.len + 1, pair.len)};
	}
	qsort(pairs, count, sizeof(pairs[0]), signature_v2_compare_query);
	for (size_t i = 0; i < count; i++) {
		buffer_add_byte(out, i == 0 ? '?' : '&');
		buffer_add_text(out, pairs[i].name);
		buffer_add_text(out, pairs[i].has_value ? "=" : "");
		if (!decode_percent(pairs[i].value, true, out))
			return error_set(
				err, ERROR_BAD_URI, "The query is not valid percent-encoding.");
	}
	return 0;
}

/* Repeats keep their order. */
static int signature_v2_compare_query(const void *left, const void *right)
{
	const struct query_pair *const a = left;
	const struct query_pair *const b = right;
	const int names = strcmp(a->name, b->name);
	return names != 0 ? names : (a->place > b->place) - (a->place < b->place);
}

/* botocore signs a bucket as "/bucket/" but requests "/bucket". */
static bool matches_with_slash(
	struct exchange *exchange, const struct signature_v2 *signature, struct span secret)
{
	struct buffer text;
	struct error ignored = {0};
	if (!is_bare_bucket(resource_of(exchange)))
		return false;
	buffer_init(&text, CANONICAL_REQUEST_MAX_BYTES);
	const bool matches = build(exchange, signature, "/", &text, &ignored) == 0 &&
		signature_v2_matches(secret, buffer_span(&text), signature->signature);
	buffer_release(&text);
	return matches;
}

/* "/bucket", without a slash at its end. */
static bool is_bare_bucket(struct span resource)
{
	return resource.len > 1 && span_find(span_slice(resource, 1, resource.len), '/') < 0;
}

static int refuse(struct exchange *exchange, const struct signature_v2 *signature, struct span text,
	struct error *err)
{
	exchange_error_field(exchange, "AWSAccessKeyId", signature->key_id);
	exchange_error_field(exchange, "StringToSign", text);
	exchange_error_field(exchange, "SignatureProvided", signature->signature);
	exchange_error_bytes(exchange, "StringToSignBytes", text);
	return error_set(err, ERROR_SIGNATURE,
		"The signature does not match the request as it arrived. "
		"Check the secret, and that no proxy changes the path or signed headers.");
}
