/* Refused headers are a table of each handler. A row with a whole name costs one lookup; a row with
 * a prefix walks all headers of the request. */
#include "api/s3/request/s3_request.h"

#include "api/s3/request/s3_error.h"
#include "base/encode.h"
#include "storage/versions/object.h"

struct prefix_search {
	struct span prefix;
	struct span found; /* the name as sent */
};

static const char *find_refused(struct exchange *exchange, const struct s3_request_refusal *row);
static void s3_request_match_prefix(void *taker, struct span name, struct span value);
static bool value_allowed(struct span value, const char *allowed);

struct span s3_request_key(const struct exchange *exchange)
{
	return exchange->parameters[1];
}

int s3_request_check_owner(struct exchange *exchange, struct error *err)
{
	const struct span expected = exchange_header(exchange, "x-amz-expected-bucket-owner");
	if (expected.len == 0)
		return 0;
	struct bucket bucket;
	if (bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
		    &bucket, err) != 0)
		return -1;
	if (!span_equal(bucket.owner, expected))
		return error_set(err, ERROR_DENIED,
			"The bucket's owner is not the one that x-amz-expected-bucket-owner names.");
	return 0;
}

bool s3_request_refuses(struct exchange *exchange, const struct s3_request_refusal *rows,
	size_t count, enum next *out_next)
{
	ASSERT(rows != NULL && count > 0);
	for (size_t i = 0; i < count; i++) {
		const char *const header = find_refused(exchange, &rows[i]);
		if (header == NULL)
			continue;
		*out_next = s3_error_not_implemented(exchange, header, rows[i].message);
		return true;
	}
	return false;
}

const char *s3_request_find_header(struct exchange *exchange, const char *prefix)
{
	struct prefix_search search = {.prefix = span_text(prefix)};
	exchange_each_header(exchange, s3_request_match_prefix, &search);
	char *const name =
		search.found.len > 0 ? arena_text(exchange->arena, search.found) : NULL;
	for (size_t i = 0; name != NULL && i < search.found.len; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] = (char)(name[i] - 'A' + 'a');
	return search.found.len > 0 && name == NULL ? prefix : name;
}

bool s3_request_limit(struct exchange *exchange, const char *name, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, enum next *out_next)
{
	struct span value;
	ASSERT(fallback <= most && most <= INT32_MAX);
	*out_limit = fallback;
	if (!exchange_query(exchange, name, &value) || value.len == 0)
		return true;
	if (!span_parse_u64(value, out_limit) || *out_limit > INT32_MAX) {
		*out_next = s3_error_argument(exchange, name, value,
			arena_format(exchange->arena,
				"The parameter %s must be a number from 0 to 2147483647.", name));
		return false;
	}
	if (*out_limit > most)
		*out_limit = most;
	return true;
}

struct span s3_request_make_token(struct exchange *exchange, struct span last)
{
	char *const text = arena_take(exchange->arena, 2 * last.len + 1);
	if (text == NULL)
		return (struct span){0};
	encode_hex(last, text);
	return span_of(text, 2 * last.len);
}

bool s3_request_read_token(struct exchange *exchange, struct span token, struct span *out_last)
{
	const size_t len = token.len / 2;
	uint8_t *const bytes = arena_take(exchange->arena, len + 1);
	if (token.len % 2 != 0 || len > OBJECT_KEY_MAX_BYTES || bytes == NULL ||
		!decode_hex(token, bytes, len))
		return false;
	*out_last = span_of(bytes, len);
	return true;
}

/* The name of the header that the row refuses; NULL: none. */
static const char *find_refused(struct exchange *exchange, const struct s3_request_refusal *row)
{
	if (span_ends_text(span_text(row->header), "-"))
		return s3_request_find_header(exchange, row->header);
	const struct span value = exchange_header(exchange, row->header);
	return value.data != NULL && !value_allowed(span_trim(value), row->allowed) ? row->header
										    : NULL;
}

static void s3_request_match_prefix(void *taker, struct span name, struct span value)
{
	struct prefix_search *const search = taker;
	(void)value;
	if (search->found.len == 0 &&
		span_same_nocase(span_slice(name, 0, search->prefix.len), search->prefix))
		search->found = name;
}

static bool value_allowed(struct span value, const char *allowed)
{
	struct span rest = span_text(allowed);
	struct span piece;
	while (allowed != NULL && span_split(&rest, '|', &piece)) {
		if (span_equal(value, piece))
			return true;
	}
	return false;
}
