#include "api/signature_v4.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/encode.h"

enum { CANONICAL_MAX_BYTES = 1024 * 1024, QUERY_PAIRS_MAX = 256, SIGNED_HEADERS_MAX = 128 };

static const char algorithm[] = "AWS4-HMAC-SHA256";

static bool is_hex64(struct span text)
{
	uint8_t bytes[SHA256_BYTES];
	return decode_hex(text, bytes, sizeof bytes);
}

static bool is_date(struct span text)
{
	uint64_t number;
	return text.len == 8 && span_parse_u64(text, &number);
}

/* Credential=ID/yyyymmdd/region/s3/aws4_request; an id holds no slash. */
static int parse_credential(struct span credential, struct signature_v4 *out, struct error *err)
{
	struct span pieces[5] = {{NULL, 0}};
	struct span rest = credential;
	size_t count = 0;
	while (count < 5 && span_split(&rest, '/', &pieces[count]))
		count++;
	if (count != 5 || rest.len > 0 || pieces[0].len == 0 || credential.data[credential.len - 1] == '/')
		return error_set(err, ERROR_AUTH_MALFORMED, "the Credential is not of the form KEY/yyyymmdd/region/s3/aws4_request");
	if (!is_date(pieces[1]))
		return error_set(err, ERROR_AUTH_MALFORMED, "the date in the Credential is not of the form yyyymmdd");
	if (pieces[2].len == 0)
		return error_set(err, ERROR_AUTH_MALFORMED, "the Credential names no region");
	if (!span_equal_text(pieces[3], "s3"))
		return error_set(err, ERROR_AUTH_MALFORMED, "the service in the Credential is not s3");
	if (!span_equal_text(pieces[4], "aws4_request"))
		return error_set(err, ERROR_AUTH_MALFORMED, "the Credential does not end with aws4_request");
	out->key_id = pieces[0];
	out->date = pieces[1];
	out->region = pieces[2];
	return 0;
}

/* "Name=value" components, separated by a comma and optional spaces, in any order. */
static int parse_components(struct span text, struct span out_values[3], struct error *err)
{
	static const char *const names[3] = {"Credential=", "SignedHeaders=", "Signature="};
	struct span rest = text;
	struct span component;
	size_t count = 0;
	while (span_split(&rest, ',', &component)) {
		component = span_trim(component);
		size_t i = 0;
		while (i < 3 && !span_starts(component, span_text(names[i])))
			i++;
		if (i == 3 || out_values[i].len > 0)
			return error_set(err, ERROR_AUTH_MALFORMED, "the Authorization header has an unknown or repeated component");
		out_values[i] = span_slice(component, strlen(names[i]), component.len);
		count++;
	}
	if (count != 3)
		return error_set(err, ERROR_AUTH_MALFORMED, "the Authorization header must hold Credential, SignedHeaders and Signature");
	return 0;
}

int signature_v4_parse(struct span authorization, struct signature_v4 *out, struct error *err)
{
	const struct span prefix = span_text(algorithm);
	struct span values[3] = {{NULL, 0}};
	struct signature_v4 parsed = {0};
	if (!span_starts(authorization, prefix))
		return error_set(err, ERROR_INVALID, "unsupported Authorization type; use AWS4-HMAC-SHA256 or Bearer");
	const struct span rest = span_slice(authorization, prefix.len, authorization.len);
	if (rest.len < 2 || rest.data[0] != ' ' || rest.data[1] == ' ')
		return error_set(err, ERROR_INVALID, "the Authorization header must have one space after AWS4-HMAC-SHA256");
	if (parse_components(span_slice(rest, 1, rest.len), values, err) != 0)
		return -1;
	if (values[0].len == 0 || parse_credential(values[0], &parsed, err) != 0)
		return values[0].len > 0 ? -1 : error_set(err, ERROR_AUTH_MALFORMED, "the Credential is empty");
	if (values[1].len == 0)
		return error_set(err, ERROR_AUTH_MALFORMED, "SignedHeaders is empty");
	if (!is_hex64(values[2]))
		return error_set(err, ERROR_AUTH_MALFORMED, "the Signature is not 64 hex digits");
	parsed.signed_headers = values[1];
	parsed.signature = values[2];
	*out = parsed;
	return 0;
}

static bool equal_nocase(struct span a, struct span b)
{
	char text[256];
	if (a.len != b.len || b.len >= sizeof text)
		return false;
	memcpy(text, b.data, b.len);
	text[b.len] = '\0';
	return span_equal_nocase(a, text);
}

bool signature_v4_signs(const struct signature_v4 *signature, struct span header_name)
{
	struct span rest = signature->signed_headers;
	struct span name;
	while (span_split(&rest, ';', &name))
		if (equal_nocase(name, header_name))
			return true;
	return false;
}

/* Decoded and encoded again, so that clients who leave different characters raw agree. */
static int recode(struct span text, bool plus_is_space, bool keep_slash, struct buffer *out, struct error *err)
{
	struct buffer decoded;
	buffer_init(&decoded, text.len + 1);
	const bool good = decode_percent(text, plus_is_space, &decoded) && span_find(buffer_span(&decoded), 0) < 0;
	if (good)
		encode_percent(buffer_span(&decoded), keep_slash, out);
	buffer_release(&decoded);
	return good ? 0 : error_set(err, ERROR_BAD_URI, "the request target is not valid percent-encoding");
}

int signature_v4_canonical_path(struct span path, struct buffer *out, struct error *err)
{
	return recode(path, false, true, out, err);
}

struct query_pair { /* places in the recoded text: it moves while it grows */
	size_t from;
	size_t len;
};
struct query_sort {
	const uint8_t *text;
	struct query_pair pairs[QUERY_PAIRS_MAX];
	size_t count;
};

/* By name, then by value. Comparing "name=value" at once would be wrong: '-', '.' and digits sort below '='. */
static int compare_pairs(const void *left, const void *right, void *text)
{
	const struct query_pair *const a = left;
	const struct query_pair *const b = right;
	const struct span whole_a = span_of((const uint8_t *)text + a->from, a->len);
	const struct span whole_b = span_of((const uint8_t *)text + b->from, b->len);
	const size_t name_a = (size_t)span_find(whole_a, '=');
	const size_t name_b = (size_t)span_find(whole_b, '=');
	const int names = span_compare(span_slice(whole_a, 0, name_a), span_slice(whole_b, 0, name_b));
	return names != 0 ? names : span_compare(whole_a, whole_b);
}

static int add_pair(struct span pair, struct query_sort *sort, struct buffer *recoded, struct error *err)
{
	const ptrdiff_t equals = span_find(pair, '=');
	const size_t name_len = equals < 0 ? pair.len : (size_t)equals;
	const size_t from = recoded->len;
	if (sort->count == QUERY_PAIRS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "the query has over %d parameters", QUERY_PAIRS_MAX);
	if (recode(span_slice(pair, 0, name_len), true, false, recoded, err) != 0)
		return -1;
	buffer_add_byte(recoded, '=');
	if (recode(span_slice(pair, name_len + 1, pair.len), true, false, recoded, err) != 0)
		return -1;
	sort->pairs[sort->count++] = (struct query_pair){from, recoded->len - from};
	return 0;
}

int signature_v4_canonical_query(struct span query, struct buffer *out, struct error *err)
{
	struct query_sort sort = {0};
	struct buffer recoded;
	struct span rest = query;
	struct span pair;
	int outcome = 0;
	buffer_init(&recoded, CANONICAL_MAX_BYTES);
	while (outcome == 0 && span_split(&rest, '&', &pair))
		if (pair.len > 0)
			outcome = add_pair(pair, &sort, &recoded, err);
	if (outcome == 0)
		outcome = buffer_check(&recoded, "the query", err);
	if (outcome == 0 && sort.count > 0)
		qsort_r(sort.pairs, sort.count, sizeof sort.pairs[0], compare_pairs, recoded.data);
	for (size_t i = 0; outcome == 0 && i < sort.count; i++) {
		if (i > 0)
			buffer_add_byte(out, '&');
		buffer_add(out, recoded.data + sort.pairs[i].from, sort.pairs[i].len);
	}
	buffer_release(&recoded);
	return outcome;
}

void signature_v4_canonical_value(struct span value, struct buffer *out)
{
	const struct span trimmed = span_trim(value);
	for (size_t i = 0; i < trimmed.len; i++)
		if (trimmed.data[i] != ' ' || trimmed.data[i - 1] != ' ')
			buffer_add_byte(out, trimmed.data[i]);
}

struct header_search {
	struct span wanted;
	struct buffer *out;
	bool found;
};

static void take_header(void *taker, struct span name, struct span value)
{
	struct header_search *const search = taker;
	if (!equal_nocase(name, search->wanted))
		return;
	if (search->found)
		buffer_add_byte(search->out, ',');
	search->found = true;
	signature_v4_canonical_value(value, search->out);
}

static int add_headers(struct exchange *exchange, struct span signed_headers, struct buffer *out, struct error *err)
{
	struct span rest = signed_headers;
	struct span name;
	size_t count = 0;
	while (span_split(&rest, ';', &name)) {
		struct header_search search = {.wanted = name, .out = out};
		if (++count > SIGNED_HEADERS_MAX)
			return error_set(err, ERROR_TOO_LARGE, "over %d headers are signed", SIGNED_HEADERS_MAX);
		buffer_add_span(out, name);
		buffer_add_byte(out, ':');
		exchange->ops->each_header(exchange, take_header, &search);
		buffer_add_byte(out, '\n');
	}
	return 0;
}

static const char *method_name(enum method method)
{
	switch (method) {
	case METHOD_GET: return "GET";
	case METHOD_HEAD: return "HEAD";
	case METHOD_PUT: return "PUT";
	case METHOD_POST: return "POST";
	case METHOD_DELETE: return "DELETE";
	case METHOD_OPTIONS: return "OPTIONS";
	case METHOD_OTHER: break;
	}
	return "";
}

static int canonical_request(struct exchange *exchange, const struct signature_v4 *signature, struct span payload, struct buffer *out,
	struct error *err)
{
	buffer_format(out, "%s\n", method_name(exchange->method));
	if (signature_v4_canonical_path(exchange->path, out, err) != 0)
		return -1;
	buffer_add_byte(out, '\n');
	if (signature_v4_canonical_query(exchange->query, out, err) != 0)
		return -1;
	buffer_add_byte(out, '\n');
	if (add_headers(exchange, signature->signed_headers, out, err) != 0)
		return -1;
	buffer_add_byte(out, '\n');
	buffer_add_span(out, signature->signed_headers);
	buffer_add_byte(out, '\n');
	buffer_add_span(out, payload);
	return buffer_check(out, "the canonical request", err);
}

static void signing_key(struct span secret, const struct signature_v4 *signature, uint8_t out[SHA256_BYTES])
{
	const struct span links[] = {signature->date, signature->region, span_text("s3"), span_text("aws4_request")};
	struct buffer start;
	buffer_init(&start, secret.len + 4);
	buffer_add_text(&start, "AWS4");
	buffer_add_span(&start, secret);
	hmac_sha256(buffer_span(&start), links[0], out);
	for (size_t i = 1; i < sizeof links / sizeof links[0]; i++) {
		uint8_t next[SHA256_BYTES];
		hmac_sha256(span_of(out, SHA256_BYTES), links[i], next);
		memcpy(out, next, SHA256_BYTES);
	}
	explicit_bzero(start.data, start.len);
	buffer_release(&start);
}

static void sign(const struct signature_v4 *signature, struct span secret, struct span amz_date, struct span canonical,
	uint8_t out[SHA256_BYTES])
{
	uint8_t hash[SHA256_BYTES];
	uint8_t key[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct buffer text;
	sha256(canonical, hash);
	encode_hex(span_of(hash, sizeof hash), hex);
	buffer_init(&text, CANONICAL_MAX_BYTES);
	buffer_format(&text, "%s\n%.*s\n%.*s/%.*s/s3/aws4_request\n%s", algorithm, (int)amz_date.len, (const char *)amz_date.data,
		(int)signature->date.len, (const char *)signature->date.data, (int)signature->region.len,
		(const char *)signature->region.data, hex);
	signing_key(secret, signature, key);
	hmac_sha256(span_of(key, sizeof key), buffer_span(&text), out);
	explicit_bzero(key, sizeof key);
	buffer_release(&text);
}

int signature_v4_check(struct exchange *exchange, const struct signature_v4 *signature, struct span secret, struct span amz_date,
	struct span payload, struct error *err)
{
	uint8_t expected[SHA256_BYTES];
	uint8_t given[SHA256_BYTES];
	struct buffer canonical;
	buffer_init(&canonical, CANONICAL_MAX_BYTES);
	int outcome = canonical_request(exchange, signature, payload, &canonical, err);
	if (outcome == 0) {
		sign(signature, secret, amz_date, buffer_span(&canonical), expected);
		const bool parsed = decode_hex(signature->signature, given, sizeof given);
		if (!parsed || !span_equal_secret(span_of(expected, sizeof expected), span_of(given, sizeof given)))
			outcome = error_set(err, ERROR_SIGNATURE, "the signature is not the one that this key makes for the request as it arrived; "
				"check the secret, and that no proxy changes host, path or signed headers");
	}
	buffer_release(&canonical);
	return outcome;
}
