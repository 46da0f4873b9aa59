/* Parses the credential and the components of the header, and compares the signature with one that
 * is made from the canonical request. The texts are joined by hand, because every signed request
 * comes through here and formatted output would cost more than the hashes. */
#include "api/auth/signature_v4.h"

#include <string.h>

#include "base/encode.h"

static const char algorithm[] = "AWS4-HMAC-SHA256";

struct unsigned_search {
	const struct signature_v4 *signature;
	const char *spared;
	struct span found;
};

static bool is_date(struct span text);
static int parse_components(struct span text, struct span out_values[3], struct error *err);
static int malformed(struct error *err, const char *what);
static bool is_hex64(struct span text);
static bool same_nocase(struct span name, struct span header_name);
static char lower(uint8_t c);
static void signature_v4_find_unsigned(void *taker, struct span name, struct span value);
static struct span join(struct arena *arena, const struct span *pieces, size_t count);
static struct span string_to_sign(struct exchange *exchange, const struct signature_v4 *signature,
	struct span amz_date, struct span canonical);
static int refuse(struct exchange *exchange, const struct signature_v4 *signature, struct span text,
	struct span canonical, struct error *err);

/* An id has no slash (keyring_check_texts). */
int signature_v4_parse_credential(
	struct span credential, struct signature_v4 *out, struct error *err)
{
	struct span pieces[5] = {{NULL, 0}};
	struct span rest = credential;
	size_t count = 0;
	while (count < 5 && span_split(&rest, '/', &pieces[count]))
		count++;
	if (count != 5 || rest.len > 0 || pieces[0].len == 0 ||
		credential.data[credential.len - 1] == '/')
		return error_set(err, ERROR_AUTH_MALFORMED,
			"the Credential is not of the form KEY/yyyymmdd/region/s3/aws4_request");
	if (!is_date(pieces[1]))
		return error_set(err, ERROR_AUTH_MALFORMED,
			"the date in the Credential is not of the form yyyymmdd");
	if (!span_equal_text(pieces[3], "s3"))
		return error_set(
			err, ERROR_AUTH_MALFORMED, "the service in the Credential is not s3");
	if (!span_equal_text(pieces[4], "aws4_request"))
		return error_set(
			err, ERROR_AUTH_MALFORMED, "the Credential does not end with aws4_request");
	out->key_id = pieces[0];
	out->date = pieces[1];
	out->region = pieces[2];
	return 0;
}

int signature_v4_parse(struct span authorization, struct signature_v4 *out, struct error *err)
{
	const struct span prefix = span_text(algorithm);
	struct span values[3] = {{NULL, 0}};
	struct signature_v4 parsed = {0};
	struct error cause = {0};
	if (!span_starts(authorization, prefix))
		return error_set(err, ERROR_INVALID,
			"The type of the Authorization header is not supported. Please use AWS4-HMAC-SHA256 or Bearer.");
	const struct span rest = span_slice(authorization, prefix.len, authorization.len);
	if (rest.len < 2 || rest.data[0] != ' ' || rest.data[1] == ' ')
		return error_set(err, ERROR_INVALID,
			"The Authorization header must have one space after AWS4-HMAC-SHA256.");
	if (parse_components(span_slice(rest, 1, rest.len), values, err) != 0)
		return -1;
	if (values[0].len == 0)
		return malformed(err, "the Credential is empty");
	if (signature_v4_parse_credential(values[0], &parsed, &cause) != 0)
		return malformed(err, cause.text);
	if (values[1].len == 0)
		return malformed(err, "SignedHeaders is empty");
	if (!is_hex64(values[2]))
		return malformed(err, "the Signature is not 64 hexadecimal digits");
	parsed.signed_headers = values[1];
	parsed.signature = values[2];
	*out = parsed;
	return 0;
}

bool signature_v4_signs(const struct signature_v4 *signature, struct span header_name)
{
	struct span rest = signature->signed_headers;
	struct span name;
	while (span_split(&rest, ';', &name))
		if (name.len == header_name.len && same_nocase(name, header_name))
			return true;
	return false;
}

int signature_v4_check_headers(struct exchange *exchange, const struct signature_v4 *signature,
	const char *spared, struct error *err)
{
	struct unsigned_search search = {signature, spared, {NULL, 0}};
	if (exchange->differs_from_host)
		return error_set(err, ERROR_INVALID_REQUEST,
			"The request line names another host than the signed header Host.");
	exchange->ops->each_header(exchange, signature_v4_find_unsigned, &search);
	if (search.found.data == NULL && signature_v4_signs(signature, span_text("host")))
		return 0;
	exchange_error_field(exchange, "HeadersNotSigned",
		search.found.data != NULL ? search.found : span_text("host"));
	return error_set(err, ERROR_DENIED,
		"There were headers present in the request which were not signed; host and every x-amz-* must be.");
}

struct span signature_v4_scope(struct arena *arena, const struct signature_v4 *signature)
{
	const struct span pieces[] = {
		signature->date, span_text("/"), signature->region, span_text("/s3/aws4_request")};
	return join(arena, pieces, sizeof(pieces) / sizeof(pieces[0]));
}

bool signature_v4_matches(const uint8_t key[SHA256_BYTES], struct span text, struct span signature)
{
	uint8_t expected[SHA256_BYTES];
	uint8_t given[SHA256_BYTES];
	hmac_sha256(span_of(key, SHA256_BYTES), text, expected);
	return decode_hex(signature, given, sizeof(given)) &&
		span_equal_secret(
			span_of(expected, sizeof(expected)), span_of(given, sizeof(given)));
}

int signature_v4_check(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct span amz_date, struct canonical_request request,
	struct error *err)
{
	struct buffer canonical;
	request.signed_headers = signature->signed_headers;
	buffer_init(&canonical, CANONICAL_REQUEST_MAX_BYTES);
	int outcome = canonical_request_build(exchange, &request, &canonical, err);
	if (outcome == 0) {
		const struct span text =
			string_to_sign(exchange, signature, amz_date, buffer_span(&canonical));
		if (!signature_v4_matches(key, text, signature->signature))
			outcome = refuse(exchange, signature, text, buffer_span(&canonical), err);
	}
	buffer_release(&canonical);
	return outcome;
}

static bool is_date(struct span text)
{
	uint64_t number;
	return text.len == 8 && span_parse_u64(text, &number);
}

/* Parses "Name=value" components, separated by commas and optional spaces, in any order. */
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
			return malformed(err, "it has an unknown or repeated component");
		out_values[i] = span_slice(component, strlen(names[i]), component.len);
		count++;
	}
	if (count != 3)
		return malformed(err, "it must have Credential, SignedHeaders and Signature");
	return 0;
}

static int malformed(struct error *err, const char *what)
{
	return error_set(
		err, ERROR_AUTH_MALFORMED, "The Authorization header is malformed: %s.", what);
}

static bool is_hex64(struct span text)
{
	uint8_t bytes[SHA256_BYTES];
	return decode_hex(text, bytes, sizeof(bytes));
}

static bool same_nocase(struct span name, struct span header_name)
{
	for (size_t i = 0; i < name.len; i++)
		if (lower(name.data[i]) != lower(header_name.data[i]))
			return false;
	return true;
}

static char lower(uint8_t c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static void signature_v4_find_unsigned(void *taker, struct span name, struct span value)
{
	(void)value;
	struct unsigned_search *const search = taker;
	const bool must = span_equal_nocase(name, "host") ||
		(name.len > 6 && span_equal_nocase(span_slice(name, 0, 6), "x-amz-"));
	const bool is_spared = search->spared != NULL && span_equal_nocase(name, search->spared);
	if (must && !is_spared && !signature_v4_signs(search->signature, name))
		search->found = name;
}

/* The pieces one after the other, in the arena; empty when that is full. */
static struct span join(struct arena *arena, const struct span *pieces, size_t count)
{
	size_t len = 0;
	for (size_t i = 0; i < count; i++)
		len += pieces[i].len;
	uint8_t *const text = arena_take(arena, len + 1);
	uint8_t *end = text;
	for (size_t i = 0; text != NULL && i < count; i++)
		if (pieces[i].len > 0)
			end = (uint8_t *)mempcpy(end, pieces[i].data, pieces[i].len);
	return span_of(text, text != NULL ? len : 0);
}

/* The text to sign for a canonical request. */
static struct span string_to_sign(struct exchange *exchange, const struct signature_v4 *signature,
	struct span amz_date, struct span canonical)
{
	uint8_t hash[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	sha256(canonical, hash);
	encode_hex(span_of(hash, sizeof(hash)), hex);
	const struct span feed = span_text("\n");
	const struct span pieces[] = {span_text(algorithm), feed, amz_date, feed,
		signature_v4_scope(exchange->arena, signature), feed,
		span_of(hex, sizeof(hex) - 1)};
	return join(exchange->arena, pieces, sizeof(pieces) / sizeof(pieces[0]));
}

static int refuse(struct exchange *exchange, const struct signature_v4 *signature, struct span text,
	struct span canonical, struct error *err)
{
	exchange_error_field(exchange, "AWSAccessKeyId", signature->key_id);
	exchange_error_field(exchange, "StringToSign", text);
	exchange_error_field(exchange, "SignatureProvided", signature->signature);
	exchange_error_bytes(exchange, "StringToSignBytes", text);
	exchange_error_field(exchange, "CanonicalRequest", canonical);
	exchange_error_bytes(exchange, "CanonicalRequestBytes", canonical);
	return error_set(err, ERROR_SIGNATURE,
		"The signature does not match the request as it arrived. "
		"Check the secret, and that no proxy changes the host, path or signed headers.");
}
