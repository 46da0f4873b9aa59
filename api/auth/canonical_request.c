/* Path and query are decoded and encoded again, so that it does not matter which characters a
 * client left unencoded. Query pairs are recoded into one buffer and sorted as places in it, so
 * that no pair needs an allocation. */
#include "api/auth/canonical_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"

enum { QUERY_PAIRS_MAX = 256, SIGNED_HEADERS_MAX = 128 };

struct query_pair { /* a place in the recoded text, not a pointer: the text moves as it grows */
	size_t from;
	size_t len;
};
struct query_sort {
	struct query_pair pairs[QUERY_PAIRS_MAX];
	size_t count;
};

struct header_search {
	struct span wanted;
	struct buffer *out;
	bool found;
};

static int recode(struct span text, bool plus_is_space, bool keep_slash, struct buffer *out,
	struct error *err);
static int add_pair(struct span pair, const char *left_out, struct query_sort *sort,
	struct buffer *recoded, struct error *err);
static bool is_left_out(struct span recoded_name, const char *left_out);
static int canonical_request_compare_pairs(const void *left, const void *right, void *text);
static int add_headers(struct exchange *exchange, struct span signed_headers, struct buffer *out,
	struct error *err);
static void canonical_request_take_header(void *taker, struct span name, struct span value);

int canonical_request_path(struct span path, struct buffer *out, struct error *err)
{
	return recode(path, false, true, out, err);
}

int canonical_request_query(
	struct span query, const char *left_out, struct buffer *out, struct error *err)
{
	struct query_sort sort;
	struct buffer recoded;
	struct span rest = query;
	struct span pair;
	int outcome = 0;
	sort.count = 0;
	buffer_init(&recoded, CANONICAL_REQUEST_MAX_BYTES);
	while (outcome == 0 && span_split(&rest, '&', &pair))
		if (pair.len > 0)
			outcome = add_pair(pair, left_out, &sort, &recoded, err);
	if (outcome == 0)
		outcome = buffer_check(&recoded, "the query", err);
	if (outcome == 0 && sort.count > 0)
		qsort_r(sort.pairs, sort.count, sizeof(sort.pairs[0]),
			canonical_request_compare_pairs, recoded.data);
	for (size_t i = 0; outcome == 0 && i < sort.count; i++) {
		if (i > 0)
			buffer_add_byte(out, '&');
		buffer_add(out, recoded.data + sort.pairs[i].from, sort.pairs[i].len);
	}
	buffer_release(&recoded);
	return outcome;
}

void canonical_request_value(struct span value, struct buffer *out)
{
	const struct span trimmed = span_trim(value);
	for (size_t i = 0; i < trimmed.len; i++)
		if (trimmed.data[i] != ' ' || trimmed.data[i - 1] != ' ')
			buffer_add_byte(out, trimmed.data[i]);
}

const char *canonical_request_method(enum method method)
{
	switch (method) {
	case METHOD_GET:
		return "GET";
	case METHOD_HEAD:
		return "HEAD";
	case METHOD_PUT:
		return "PUT";
	case METHOD_POST:
		return "POST";
	case METHOD_DELETE:
		return "DELETE";
	case METHOD_OPTIONS:
		return "OPTIONS";
	case METHOD_OTHER:
		break;
	}
	return "";
}

int canonical_request_build(struct exchange *exchange, const struct canonical_request *request,
	struct buffer *out, struct error *err)
{
	buffer_format(out, "%s\n", canonical_request_method(exchange->method));
	if (canonical_request_path(exchange->path, out, err) != 0)
		return -1;
	buffer_add_byte(out, '\n');
	if (canonical_request_query(exchange->query, request->left_out, out, err) != 0)
		return -1;
	buffer_add_byte(out, '\n');
	if (add_headers(exchange, request->signed_headers, out, err) != 0)
		return -1;
	buffer_add_byte(out, '\n');
	buffer_add_span(out, request->signed_headers);
	buffer_add_byte(out, '\n');
	buffer_add_span(out, request->payload);
	return buffer_check(out, "the canonical request", err);
}

static int recode(struct span text, bool plus_is_space, bool keep_slash, struct buffer *out,
	struct error *err)
{
	return recode_percent(text, plus_is_space, keep_slash, out)
		? 0
		: error_set(
			  err, ERROR_BAD_URI, "The request target is not valid percent-encoding.");
}

static int add_pair(struct span pair, const char *left_out, struct query_sort *sort,
	struct buffer *recoded, struct error *err)
{
	const ptrdiff_t equals = span_find(pair, '=');
	const size_t name_len = equals < 0 ? pair.len : (size_t)equals;
	const size_t from = recoded->len;
	ASSERT(sort->count <= QUERY_PAIRS_MAX);
	if (sort->count == QUERY_PAIRS_MAX)
		return error_set(
			err, ERROR_TOO_LARGE, "The query has over %d parameters.", QUERY_PAIRS_MAX);
	if (recode(span_slice(pair, 0, name_len), true, false, recoded, err) != 0)
		return -1;
	if (is_left_out(span_slice(buffer_span(recoded), from, recoded->len), left_out))
		return 0; /* its name stays in the buffer, but no pair points there */
	buffer_add_byte(recoded, '=');
	if (recode(span_slice(pair, name_len + 1, pair.len), true, false, recoded, err) != 0)
		return -1;
	sort->pairs[sort->count++] = (struct query_pair){from, recoded->len - from};
	return 0;
}

static bool is_left_out(struct span recoded_name, const char *left_out)
{
	return left_out != NULL && span_equal_nocase(recoded_name, left_out);
}

/* By name, then by value. Comparing "name=value" as a whole would be wrong, because '-', '.' and
 * digits sort before '='. */
static int canonical_request_compare_pairs(const void *left, const void *right, void *text)
{
	const struct query_pair *const a = left;
	const struct query_pair *const b = right;
	const struct span whole_a = span_of((const uint8_t *)text + a->from, a->len);
	const struct span whole_b = span_of((const uint8_t *)text + b->from, b->len);
	/* Each recoded pair has a '=', and its name has no other. */
	const size_t name_a = (size_t)span_find(whole_a, '=');
	const size_t name_b = (size_t)span_find(whole_b, '=');
	const int names =
		span_compare(span_slice(whole_a, 0, name_a), span_slice(whole_b, 0, name_b));
	return names != 0 ? names : span_compare(whole_a, whole_b);
}

static int add_headers(struct exchange *exchange, struct span signed_headers, struct buffer *out,
	struct error *err)
{
	struct span rest = signed_headers;
	struct span name;
	size_t count = 0;
	while (span_split(&rest, ';', &name)) {
		struct header_search search = {.wanted = name, .out = out};
		if (++count > SIGNED_HEADERS_MAX)
			return error_set(err, ERROR_TOO_LARGE,
				"The signature covers over %d headers.", SIGNED_HEADERS_MAX);
		buffer_add_span(out, name);
		buffer_add_byte(out, ':');
		exchange->ops->each_header(exchange, canonical_request_take_header, &search);
		buffer_add_byte(out, '\n');
	}
	return 0;
}

static void canonical_request_take_header(void *taker, struct span name, struct span value)
{
	struct header_search *const search = taker;
	if (!span_same_nocase(name, search->wanted))
		return;
	if (search->found)
		buffer_add_byte(search->out, ',');
	search->found = true;
	canonical_request_value(value, search->out);
}
