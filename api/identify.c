#include "api/identify.h"

#include <string.h>

#include "api/keyring.h"
#include "api/signature_v4.h"
#include "base/digest.h"
#include "base/encode.h"

enum { SKEW_MAX_MS = 15 * 60 * 1000 };

/* The key that the server's own user acts with over DIR/control.sock. */
static int identify_control(struct exchange *exchange, struct error *err)
{
	struct principal *const root = arena_take(exchange->arena, sizeof *root);
	if (root == NULL)
		return error_set(err, ERROR_NO_MEMORY, "the memory of a request ran out");
	root->key_id = span_text("control");
	root->namespace = span_text(exchange->context->default_namespace);
	root->is_root = true;
	exchange->principal = root;
	return 0;
}

static int identify_bearer(struct exchange *exchange, struct span token, struct error *err)
{
	exchange->principal = keyring_find_token(exchange->context->keyring, token, exchange->arena);
	if (exchange->principal == NULL)
		return error_set(err, ERROR_UNKNOWN_KEY_ID, "the bearer token is not one of this server's");
	return 0;
}

static int find_date(struct exchange *exchange, const struct signature_v4 *signature, struct span *out_text, struct error *err)
{
	const struct span amz = exchange_header(exchange, "x-amz-date");
	const struct span date = exchange_header(exchange, "date");
	int64_t sent_ms = 0;
	if (amz.data == NULL && date.data == NULL)
		return error_set(err, ERROR_DENIED, "a signed request must carry x-amz-date or Date");
	const bool parsed = amz.data != NULL ? clock_parse_amz(amz, &sent_ms) : clock_parse_http(date, &sent_ms);
	if (!parsed)
		return error_set(err, ERROR_DENIED, "the request's x-amz-date or Date is not a date");
	char text[CLOCK_TEXT_BYTES];
	clock_format_amz(sent_ms, text);
	*out_text = arena_copy(exchange->arena, span_text(text));
	const int64_t now_ms = exchange->context->clock->wall_ms(exchange->context->clock);
	if (sent_ms > now_ms + SKEW_MAX_MS || sent_ms < now_ms - SKEW_MAX_MS)
		return error_set(err, ERROR_SKEW, "the request's clock is over 15 minutes away from the server's");
	if (!span_equal(signature->date, span_slice(*out_text, 0, 8)))
		return error_set(err, ERROR_AUTH_MALFORMED, "the date in the Credential is not the day of x-amz-date");
	return 0;
}

struct unsigned_search {
	const struct signature_v4 *signature;
	bool found;
};

static void look_for_unsigned(void *taker, struct span name, struct span value)
{
	(void)value;
	struct unsigned_search *const search = taker;
	const bool must = span_equal_nocase(name, "host") || (name.len > 6 && span_equal_nocase(span_slice(name, 0, 6), "x-amz-"));
	if (must && !signature_v4_signs(search->signature, name))
		search->found = true;
}

static int check_signed_headers(struct exchange *exchange, const struct signature_v4 *signature, struct error *err)
{
	struct unsigned_search search = {signature, false};
	exchange->ops->each_header(exchange, look_for_unsigned, &search);
	if (search.found || !signature_v4_signs(signature, span_text("host")))
		return error_set(err, ERROR_DENIED, "there were headers present in the request which were not signed; "
			"host and every x-amz-* must be");
	return 0;
}

/* What x-amz-content-sha256 says about the body. */
static int take_payload(struct exchange *exchange, struct span *out_text, struct error *err)
{
	const struct span text = exchange_header(exchange, "x-amz-content-sha256");
	*out_text = text;
	if (text.data == NULL)
		return error_set(err, ERROR_INVALID_REQUEST, "a signed request must carry x-amz-content-sha256");
	if (span_equal_text(text, "UNSIGNED-PAYLOAD"))
		return 0;
	if (span_starts(text, span_text("STREAMING-")))
		return error_set(err, ERROR_UNSUPPORTED, "uploads in signed or trailed chunks (x-amz-content-sha256: %.*s) are not supported; "
			"set AWS_REQUEST_CHECKSUM_CALCULATION=when_required", (int)(text.len < 60 ? text.len : 60), (const char *)text.data);
	if (!decode_hex(text, exchange->payload_sha256, SHA256_BYTES))
		return error_set(err, ERROR_INVALID, "x-amz-content-sha256 is neither UNSIGNED-PAYLOAD nor 64 hex digits");
	exchange->payload_rule = PAYLOAD_SHA256;
	return 0;
}

static int identify_signature(struct exchange *exchange, struct span authorization, struct error *err)
{
	struct signature_v4 signature;
	struct span secret = {NULL, 0};
	struct span amz_date;
	struct span payload;
	if (signature_v4_parse(authorization, &signature, err) != 0)
		return -1;
	if (exchange_header(exchange, "x-amz-security-token").data != NULL)
		return error_set(err, ERROR_INVALID_TOKEN, "x-amz-security-token is not valid: this server gives out no temporary credentials");
	const struct span id = signature.key_id;
	const struct principal *const principal = keyring_find_id(exchange->context->keyring, id, exchange->arena, &secret);
	if (principal == NULL)
		return error_set(err, ERROR_UNKNOWN_KEY_ID, "there is no key with the id %.*s", (int)(id.len < 64 ? id.len : 64),
			(const char *)id.data);
	int outcome = find_date(exchange, &signature, &amz_date, err);
	if (outcome == 0)
		outcome = check_signed_headers(exchange, &signature, err);
	if (outcome == 0)
		outcome = take_payload(exchange, &payload, err);
	if (outcome == 0)
		outcome = signature_v4_check(exchange, &signature, secret, amz_date, payload, err);
	explicit_bzero((void *)(uintptr_t)secret.data, secret.len);
	if (outcome == 0)
		exchange->principal = principal;
	return outcome;
}

static int refuse_presigned(struct exchange *exchange, struct error *err)
{
	struct span value;
	if (exchange_query(exchange, "X-Amz-Signature", &value) || exchange_query(exchange, "Signature", &value))
		return error_set(err, ERROR_UNSUPPORTED, "presigned URLs are not supported; sign the request in its Authorization header");
	return 0;
}

int identify(struct exchange *exchange, struct error *err)
{
	const struct span authorization = exchange_header(exchange, "authorization");
	exchange->principal = NULL;
	exchange->payload_rule = PAYLOAD_UNSIGNED;
	exchange->has_body_length = exchange->has_length;
	exchange->body_length = exchange->length;
	if (exchange->control)
		return identify_control(exchange, err);
	if (authorization.data == NULL)
		return refuse_presigned(exchange, err);
	if (authorization.len > 7 && span_equal_nocase(span_slice(authorization, 0, 7), "bearer "))
		return identify_bearer(exchange, span_trim(span_slice(authorization, 7, authorization.len)), err);
	if (span_starts(authorization, span_text("AWS ")))
		return error_set(err, ERROR_INVALID_REQUEST, "this authorization mechanism is not supported; use AWS4-HMAC-SHA256");
	return identify_signature(exchange, authorization, err);
}

enum payload_rule identify_payload(const struct exchange *exchange, uint8_t out_sha256[32])
{
	if (exchange->payload_rule == PAYLOAD_SHA256)
		memcpy(out_sha256, exchange->payload_sha256, SHA256_BYTES);
	return (enum payload_rule)exchange->payload_rule;
}
