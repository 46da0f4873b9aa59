/* All six parameters must be present. The signature covers the query without X-Amz-Signature. The
 * URL is valid from 15 minutes before X-Amz-Date, for clocks that differ, until X-Amz-Expires
 * seconds after it. */
#include "api/auth/presigned_v4.h"

#include "base/encode.h"

enum { SKEW_MAX_MS = 15 * 60 * 1000 };

static int malformed(struct error *err, const char *what);
static int parse_credential(struct span credential, struct presigned_v4 *out, struct error *err);
static int parse_expires(struct span text, int64_t *out_s, struct error *err);
static struct span signed_payload(struct exchange *exchange, const struct presigned_v4 *presigned);

bool presigned_v4_is_present(struct exchange *exchange)
{
	static const char *const names[] = {
		"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature"};
	struct span value;
	if (exchange->query.len == 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (exchange_query_nocase(exchange, names[i], &value))
			return true;
	return false;
}

int presigned_v4_parse(struct exchange *exchange, struct presigned_v4 *out, struct error *err)
{
	struct span algorithm = {NULL, 0};
	struct span credential = {NULL, 0};
	struct span expires = {NULL, 0};
	struct span token;
	uint8_t bytes[SHA256_BYTES];
	*out = (struct presigned_v4){.expires_s = 0};
	const struct {
		const char *name;
		struct span *value;
	} parameters[] = {{"X-Amz-Algorithm", &algorithm}, {"X-Amz-Credential", &credential},
		{"X-Amz-Date", &out->amz_date}, {"X-Amz-Expires", &expires},
		{"X-Amz-SignedHeaders", &out->signature.signed_headers},
		{"X-Amz-Signature", &out->signature.signature}};
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (!exchange_query_nocase(exchange, parameters[i].name, parameters[i].value) ||
			parameters[i].value->len == 0)
			return error_set(err, ERROR_AUTH_QUERY,
				"Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, "
				"X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.");
	if (exchange_query_nocase(exchange, "X-Amz-Security-Token", &token))
		return error_set(err, ERROR_INVALID_TOKEN,
			"X-Amz-Security-Token is not valid: this server issues no temporary credentials.");
	exchange_query_nocase(exchange, "X-Amz-Content-Sha256", &out->payload);
	if (!span_equal_text(algorithm, "AWS4-HMAC-SHA256"))
		return malformed(err, "X-Amz-Algorithm only supports AWS4-HMAC-SHA256");
	if (!decode_hex(out->signature.signature, bytes, sizeof(bytes)))
		return malformed(err, "X-Amz-Signature is not 64 hexadecimal digits");
	if (parse_credential(credential, out, err) != 0)
		return -1;
	return parse_expires(expires, &out->expires_s, err);
}

int presigned_v4_check_time(
	struct exchange *exchange, const struct presigned_v4 *presigned, struct error *err)
{
	const int64_t now_ms = exchange->context->clock->wall_ms(exchange->context->clock);
	ASSERT(presigned->expires_s > 0 && presigned->expires_s <= PRESIGNED_V4_EXPIRES_MAX_S);
	const int64_t end_ms = presigned->signed_ms + presigned->expires_s * 1000;
	char text[CLOCK_TEXT_BYTES];
	if (presigned->signed_ms > now_ms + SKEW_MAX_MS)
		return error_set(err, ERROR_DENIED, "Request is not valid yet.");
	if (now_ms <= end_ms)
		return 0;
	exchange_error_number(exchange, "X-Amz-Expires", (uint64_t)presigned->expires_s);
	clock_format_iso(end_ms, text);
	exchange_error_field(exchange, "Expires", span_text(text));
	clock_format_iso(now_ms, text);
	exchange_error_field(exchange, "ServerTime", span_text(text));
	return error_set(err, ERROR_DENIED, "Request has expired.");
}

int presigned_v4_check(struct exchange *exchange, const struct presigned_v4 *presigned,
	const uint8_t key[SHA256_BYTES], struct error *err)
{
	const struct canonical_request request = {
		.payload = signed_payload(exchange, presigned), .left_out = "X-Amz-Signature"};
	if (signature_v4_check_headers(
		    exchange, &presigned->signature, "x-amz-content-sha256", err) != 0)
		return -1;
	return signature_v4_check(
		exchange, &presigned->signature, key, presigned->amz_date, request, err);
}

static int malformed(struct error *err, const char *what)
{
	return error_set(err, ERROR_AUTH_QUERY,
		"Error parsing the X-Amz-* parameters of the query: %s.", what);
}

static int parse_credential(struct span credential, struct presigned_v4 *out, struct error *err)
{
	struct error cause = {0};
	if (signature_v4_parse_credential(credential, &out->signature, &cause) != 0)
		return malformed(err, cause.text);
	if (!clock_parse_amz(out->amz_date, &out->signed_ms))
		return malformed(err, "X-Amz-Date is not of the form yyyymmddThhmmssZ");
	if (!span_equal(out->signature.date, span_slice(out->amz_date, 0, 8)))
		return malformed(err, "the date in X-Amz-Credential is not the day of X-Amz-Date");
	return 0;
}

/* Accepts digits with or without a minus sign, so that a number out of range and a text that is not
 * a number get different errors. */
static int parse_expires(struct span text, int64_t *out_s, struct error *err)
{
	uint64_t number;
	const bool is_negative = text.len > 1 && text.data[0] == '-';
	if (!span_parse_u64(is_negative ? span_slice(text, 1, text.len) : text, &number))
		return malformed(err, "X-Amz-Expires is not a number of seconds");
	if (is_negative || number == 0 || number > PRESIGNED_V4_EXPIRES_MAX_S)
		return error_set(err, ERROR_DENIED,
			"X-Amz-Expires must be from 1 second to a week (604800 seconds).");
	*out_s = (int64_t)number;
	return 0;
}

/* The body's digest is signed when the query or a signed header contains it. */
static struct span signed_payload(struct exchange *exchange, const struct presigned_v4 *presigned)
{
	static const char name[] = "x-amz-content-sha256";
	if (presigned->payload.data != NULL)
		return presigned->payload;
	const struct span header = exchange_header(exchange, name);
	return header.data != NULL && signature_v4_signs(&presigned->signature, span_text(name))
		? header
		: span_text("UNSIGNED-PAYLOAD");
}
