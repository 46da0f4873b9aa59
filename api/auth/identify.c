/* One function for each kind of credentials. A request may have only one kind. The principal is set
 * only after the signature was checked. Each way ends with payload_read, because the meaning of
 * x-amz-content-sha256 depends on the kind of signature. Secrets and signing keys are wiped from
 * the stack and the arena after use. */
#include "api/auth/identify.h"

#include <string.h>

#include "api/auth/keyring.h"
#include "api/auth/presigned_v4.h"
#include "api/auth/session_cookie.h"
#include "api/auth/signature_v2.h"
#include "api/auth/xet_token.h"
#include "api/exchange/chunk_signature.h"
#include "api/exchange/payload.h"

#define HUB_PREFIX "hf_" /* some Hub clients accept only tokens with this prefix */

enum { SKEW_MAX_MS = 15 * 60 * 1000 };

static int identify_caller(struct exchange *exchange, struct error *err);
static int session_again(struct exchange *exchange, struct error *err);
static int identify_control(struct exchange *exchange, struct error *err);
static int identify_query(struct exchange *exchange, struct error *err);
static int identify_presigned_v4(struct exchange *exchange, struct error *err);
static int unknown_key(struct exchange *exchange, struct span id, struct error *err);
static int identify_presigned_v2(struct exchange *exchange, struct error *err);
static int identify_anonymous(struct exchange *exchange, struct error *err);
static int identify_bearer(struct exchange *exchange, struct span token, struct error *err);
static int identify_signature(
	struct exchange *exchange, struct span authorization, struct error *err);
static int refuse_token(struct exchange *exchange, struct error *err);
static int check_signature(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct error *err);
static int find_date(struct exchange *exchange, const struct signature_v4 *signature,
	struct span *out_text, struct error *err);
static bool parse_date(struct span text, int64_t *out_ms);
static int read_signed_payload(struct exchange *exchange, struct span *out_text, struct error *err);
static int seed_chunks(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct span amz_date, struct error *err);
static void name_scheme(struct exchange *exchange, struct span authorization);

bool identify_is_signed(struct exchange *exchange)
{
	return span_starts(exchange_header(exchange, "authorization"), span_text("AWS")) ||
		presigned_v4_is_present(exchange) || signature_v2_is_present(exchange);
}

int identify(struct exchange *exchange, struct error *err)
{
	if (identify_caller(exchange, err) != 0)
		return -1;
	if (exchange->principal != NULL && !exchange->control)
		keyring_note_use(exchange->context->keyring, exchange->principal->key_id);
	return 0;
}

int identify_again(struct exchange *exchange, struct error *err)
{
	struct span secret = {NULL, 0};
	if (exchange->principal == NULL || exchange->control)
		return 0;
	if (exchange->session != NULL)
		return session_again(exchange, err);
	exchange->principal = keyring_find_id(
		exchange->context->keyring, exchange->principal->key_id, exchange->arena, &secret);
	if (secret.len > 0)
		explicit_bzero((void *)(uintptr_t)secret.data, secret.len);
	return exchange->principal != NULL
		? 0
		: error_set(err, ERROR_UNKNOWN_KEY_ID, "The key of this request was revoked.");
}

const struct principal *identify_token(struct exchange *exchange, struct span token)
{
	struct keyring *const keyring = exchange->context->keyring;
	const struct principal *const found = keyring_find_token(keyring, token, exchange->arena);
	if (found != NULL || !span_starts(token, span_text(HUB_PREFIX)))
		return found;
	return keyring_find_token(
		keyring, span_slice(token, strlen(HUB_PREFIX), token.len), exchange->arena);
}

static int identify_caller(struct exchange *exchange, struct error *err)
{
	const struct span authorization = exchange_header(exchange, "authorization");
	exchange->principal = NULL;
	exchange->session = NULL;
	if (exchange->control)
		return identify_control(exchange, err);
	if (authorization.data == NULL)
		return identify_query(exchange, err);
	if (presigned_v4_is_present(exchange) || signature_v2_is_present(exchange))
		return error_set(err, ERROR_INVALID,
			"Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string "
			"parameter or the Authorization header should be specified.");
	if (authorization.len > 7 && span_equal_nocase(span_slice(authorization, 0, 7), "bearer "))
		return identify_bearer(
			exchange, span_trim(span_slice(authorization, 7, authorization.len)), err);
	if (span_starts(authorization, span_text("AWS ")))
		return error_set(err, ERROR_INVALID_REQUEST,
			"The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.");
	const int outcome = identify_signature(exchange, authorization, err);
	if (outcome != 0 && err->kind == ERROR_INVALID && exchange->error_field_count == 0)
		name_scheme(exchange, authorization);
	return outcome;
}

/* Waiting is not a use, so a stream that nobody looks at ends with the session's idle time. */
static int session_again(struct exchange *exchange, struct error *err)
{
	exchange->principal = NULL;
	exchange->session = NULL;
	if (session_cookie_identify(exchange, false, err) != 0)
		return -1;
	return exchange->session != NULL
		? 0
		: error_set(err, ERROR_UNKNOWN_KEY_ID, "The session of this request has ended.");
}

/* The server's own user over DIR/control.sock acts as root. */
static int identify_control(struct exchange *exchange, struct error *err)
{
	struct principal *const root = arena_take(exchange->arena, sizeof(*root));
	if (root == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	root->key_id = span_text("control");
	root->namespace = span_text(exchange->context->default_namespace);
	root->is_root = true;
	exchange->principal = root;
	return payload_read(
		exchange, exchange_header(exchange, "x-amz-content-sha256"), false, err);
}

static int identify_query(struct exchange *exchange, struct error *err)
{
	if (presigned_v4_is_present(exchange))
		return identify_presigned_v4(exchange, err);
	if (signature_v2_is_present(exchange))
		return identify_presigned_v2(exchange, err);
	if (session_cookie_identify(exchange, true, err) != 0)
		return -1;
	return exchange->session == NULL
		? identify_anonymous(exchange, err)
		: payload_read(
			  exchange, exchange_header(exchange, "x-amz-content-sha256"), false, err);
}

static int identify_presigned_v4(struct exchange *exchange, struct error *err)
{
	struct presigned_v4 presigned;
	uint8_t key[SHA256_BYTES];
	if (presigned_v4_parse(exchange, &presigned, err) != 0)
		return -1;
	const struct signature_v4 *const signature = &presigned.signature;
	const struct principal *const principal =
		keyring_find_signing_key(exchange->context->keyring, signature->key_id,
			signature->date, signature->region, exchange->arena, key);
	if (principal == NULL)
		return unknown_key(exchange, signature->key_id, err);
	int outcome = presigned_v4_check_time(exchange, &presigned, err);
	if (outcome == 0)
		outcome = presigned_v4_check(exchange, &presigned, key, err);
	explicit_bzero(key, sizeof(key));
	if (outcome != 0)
		return outcome;
	exchange->principal = principal;
	exchange->hoists_headers = true;
	const struct span declared = presigned.payload;
	return payload_read(exchange,
		declared.data != NULL ? declared
				      : exchange_header(exchange, "x-amz-content-sha256"),
		false, err);
}

static int unknown_key(struct exchange *exchange, struct span id, struct error *err)
{
	exchange_error_field(exchange, "AWSAccessKeyId", span_slice(id, 0, 128));
	return error_set(err, ERROR_UNKNOWN_KEY_ID,
		"The AWS Access Key Id you provided does not exist in our records.");
}

static int identify_presigned_v2(struct exchange *exchange, struct error *err)
{
	struct signature_v2 signature;
	struct span secret = {NULL, 0};
	if (signature_v2_parse(exchange, &signature, err) != 0 ||
		signature_v2_check_route(exchange, err) != 0)
		return -1;
	const struct principal *const principal = keyring_find_id(
		exchange->context->keyring, signature.key_id, exchange->arena, &secret);
	if (principal == NULL)
		return unknown_key(exchange, signature.key_id, err);
	const int outcome = signature_v2_check(exchange, &signature, secret, err);
	explicit_bzero((void *)(uintptr_t)secret.data, secret.len);
	if (outcome != 0)
		return outcome;
	exchange->principal = principal;
	return payload_read(
		exchange, exchange_header(exchange, "x-amz-content-sha256"), false, err);
}

/* An anonymous request must not set headers of the reply: such a link would show content of its
 * author in the name of the bucket's owner. */
static int identify_anonymous(struct exchange *exchange, struct error *err)
{
	static const char *const overrides[] = {"response-cache-control",
		"response-content-disposition", "response-content-encoding",
		"response-content-language", "response-content-type", "response-expires"};
	struct span value;
	for (size_t i = 0; exchange->query.len > 0 && i < sizeof(overrides) / sizeof(overrides[0]);
		i++)
		if (exchange_query(exchange, overrides[i], &value))
			return error_set(err, ERROR_INVALID_REQUEST,
				"Request specific response headers cannot be used for anonymous GET requests.");
	return payload_read(
		exchange, exchange_header(exchange, "x-amz-content-sha256"), false, err);
}

static int identify_bearer(struct exchange *exchange, struct span token, struct error *err)
{
	if (exchange->face == &face_xet && xet_token_has_prefix(token))
		return xet_token_identify(exchange, token, err) != 0
			? -1
			: payload_read(exchange, (struct span){NULL, 0}, false, err);
	exchange->principal = identify_token(exchange, token);
	if (exchange->principal == NULL)
		return error_set(err, ERROR_UNKNOWN_KEY_ID,
			"The bearer token does not belong to a key of this server.");
	return payload_read(
		exchange, exchange_header(exchange, "x-amz-content-sha256"), false, err);
}

static int identify_signature(
	struct exchange *exchange, struct span authorization, struct error *err)
{
	struct signature_v4 signature;
	uint8_t key[SHA256_BYTES];
	if (signature_v4_parse(authorization, &signature, err) != 0 ||
		refuse_token(exchange, err) != 0)
		return -1;
	const struct span id = signature.key_id;
	const struct principal *const principal =
		keyring_find_signing_key(exchange->context->keyring, id, signature.date,
			signature.region, exchange->arena, key);
	if (principal == NULL)
		return unknown_key(exchange, id, err);
	const int outcome = check_signature(exchange, &signature, key, err);
	explicit_bzero(key, sizeof(key));
	if (outcome == 0)
		exchange->principal = principal;
	return outcome;
}

static int refuse_token(struct exchange *exchange, struct error *err)
{
	if (exchange_header(exchange, "x-amz-security-token").data == NULL)
		return 0;
	return error_set(err, ERROR_INVALID_TOKEN,
		"x-amz-security-token is not valid: this server issues no temporary credentials.");
}

static int check_signature(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct error *err)
{
	struct canonical_request request = {.left_out = NULL};
	struct span amz_date;
	if (find_date(exchange, signature, &amz_date, err) != 0 ||
		signature_v4_check_headers(exchange, signature, NULL, err) != 0 ||
		read_signed_payload(exchange, &request.payload, err) != 0 ||
		signature_v4_check(exchange, signature, key, amz_date, request, err) != 0)
		return -1;
	return seed_chunks(exchange, signature, key, amz_date, err);
}

static int find_date(struct exchange *exchange, const struct signature_v4 *signature,
	struct span *out_text, struct error *err)
{
	const struct span amz = exchange_header(exchange, "x-amz-date");
	const struct span date = amz.data != NULL ? amz : exchange_header(exchange, "date");
	int64_t sent_ms = 0;
	if (date.data == NULL)
		return error_set(
			err, ERROR_DENIED, "A signed request must have x-amz-date or Date.");
	if (!parse_date(span_trim(date), &sent_ms))
		return error_set(
			err, ERROR_DENIED, "The request's x-amz-date or Date is not a date.");
	char text[CLOCK_TEXT_BYTES];
	clock_format_amz(sent_ms, text);
	*out_text = arena_copy(exchange->arena, span_text(text));
	const int64_t now_ms = exchange->context->clock->wall_ms(exchange->context->clock);
	if (sent_ms > now_ms + SKEW_MAX_MS || sent_ms < now_ms - SKEW_MAX_MS)
		return error_set(err, ERROR_SKEW,
			"The time of the request differs from the server's clock by more than 15 minutes.");
	if (!span_equal(signature->date, span_slice(*out_text, 0, 8)))
		return error_set(err, ERROR_AUTH_MALFORMED,
			"The date in the Credential is not the day of x-amz-date.");
	return 0;
}

/* x-amz-date and Date may each have either form. */
static bool parse_date(struct span text, int64_t *out_ms)
{
	return clock_parse_amz(text, out_ms) || clock_parse_http(text, out_ms);
}

static int read_signed_payload(struct exchange *exchange, struct span *out_text, struct error *err)
{
	*out_text = exchange_header(exchange, "x-amz-content-sha256");
	if (out_text->data == NULL)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Missing required header for this request: x-amz-content-sha256.");
	return payload_read(exchange, *out_text, true, err);
}

/* The chain of chunk signatures begins with the signature of the request. */
static int seed_chunks(struct exchange *exchange, const struct signature_v4 *signature,
	const uint8_t key[SHA256_BYTES], struct span amz_date, struct error *err)
{
	if (exchange->payload_rule != PAYLOAD_CHUNKED_SIGNED &&
		exchange->payload_rule != PAYLOAD_CHUNKED_SIGNED_TRAILER)
		return 0;
	struct chunk_signature *const seed = arena_take(exchange->arena, sizeof(*seed));
	if (seed == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	ASSERT(signature->signature.len == SIGNATURE_V4_CHARACTERS);
	memcpy(seed->key, key, sizeof(seed->key));
	memcpy(seed->previous, signature->signature.data, SIGNATURE_V4_CHARACTERS);
	seed->key_id = signature->key_id;
	seed->date = amz_date;
	seed->scope = signature_v4_scope(exchange->arena, signature);
	exchange->chunk_seed = seed;
	return 0;
}

/* Reports the scheme of the header, never the credentials after it. */
static void name_scheme(struct exchange *exchange, struct span authorization)
{
	struct span rest = authorization;
	struct span scheme = {NULL, 0};
	span_split(&rest, ' ', &scheme);
	exchange_error_field(exchange, "ArgumentName", span_text("Authorization"));
	exchange_error_field(exchange, "ArgumentValue", span_slice(scheme, 0, 32));
}
