/* The signed text begins with its parts of fixed size: bucket id and expiry (u64 each) and the
 * digest. The names follow, each but the last with a NUL behind it, which no name contains. So
 * different URLs never have the same text. */
#include "api/auth/shared_url.h"

#include <string.h>

#include "api/exchange/route.h"
#include "base/encode.h"
#include "base/little_endian.h"

/* Far over what the server writes. A request with longer ones is refused before. */
enum { NAME_MAX_BYTES = 256, OBJECT_MAX_BYTES = 8 * 1024, TEXT_MAX_BYTES = 12 * 1024 };

static const char purpose[] = "shared url: GET";

static int refused(struct error *err);
static bool read_terms(struct exchange *exchange, struct shared_url *out);
static struct span object_of(struct exchange *exchange);
static bool is_signed(struct exchange *exchange, const struct shared_url *url);
static void print_text(const struct shared_url *url, struct buffer *out);

int64_t shared_url_expiry_s(int64_t now_ms)
{
	return (now_ms / 1000 / SHARED_URL_HOUR_S + 2) * SHARED_URL_HOUR_S;
}

void shared_url_key_init(struct shared_url_key *key, const struct api_context *context)
{
	hmac_sha256(span_of(context->token_key, sizeof(context->token_key)), span_text(purpose),
		key->bytes);
}

void shared_url_sign(const struct shared_url_key *key, const struct shared_url *url,
	char out[SHARED_URL_SIGN_TEXT_BYTES])
{
	uint8_t signature[SHA256_BYTES];
	struct buffer text;
	ASSERT(url->bucket.id != 0 && url->digest.len == SHARED_URL_DIGEST_CHARACTERS);
	buffer_init(&text, TEXT_MAX_BYTES);
	print_text(url, &text);
	ASSERT(!buffer_failed(&text));
	hmac_sha256(span_of(key->bytes, sizeof(key->bytes)), buffer_span(&text), signature);
	encode_hex(span_of(signature, SHARED_URL_SIGN_BYTES), out);
	buffer_release(&text);
}

bool shared_url_is_present(struct exchange *exchange)
{
	struct span sign;
	return exchange->query.len > 0 && exchange_query(exchange, "sign", &sign);
}

int shared_url_judge(struct exchange *exchange, struct error *err)
{
	const struct api_context *const context = exchange->context;
	struct shared_url url;
	struct bucket bucket;
	struct error missing = {0};
	ASSERT(exchange->route != NULL && exchange->parameter_count == 4);
	exchange->shared_until_s = 0;
	if (!context->shared_urls || !read_terms(exchange, &url) ||
		url.expires_s * 1000 <= context->clock->wall_ms(context->clock))
		return refused(err);
	if (bucket_find(context->store, url.bucket, exchange->arena, &bucket, &missing) != 0) {
		if (missing.kind == ERROR_NO_BUCKET)
			return refused(err);
		*err = missing;
		return -1;
	}
	url.bucket.id = bucket.id;
	if (!is_signed(exchange, &url))
		return refused(err);
	exchange->bucket_id = bucket.id;
	exchange->shared_until_s = url.expires_s;
	return 0;
}

static int refused(struct error *err)
{
	return error_set(err, ERROR_DENIED,
		"This URL is not valid, or no longer valid: ask for the step or the path again.");
}

/* Reads all but the id of the bucket. */
static bool read_terms(struct exchange *exchange, struct shared_url *out)
{
	struct span expires;
	uint64_t seconds;
	*out = (struct shared_url){
		.bucket = bucket_named(exchange->parameters[0]), .run = exchange->parameters[1]};
	if (!exchange_query(exchange, "v", &out->digest) ||
		out->digest.len != SHARED_URL_DIGEST_CHARACTERS ||
		!exchange_query(exchange, "expires", &expires) ||
		!span_parse_u64(expires, &seconds) || seconds > INT64_MAX / 1000 ||
		out->bucket.name.len > NAME_MAX_BYTES || out->run.len > NAME_MAX_BYTES)
		return false;
	out->expires_s = (int64_t)seconds;
	out->object = object_of(exchange);
	return out->object.len > 0;
}

/* The path below the run as the server writes it, however the client has encoded it; empty when it
 * is too long. */
static struct span object_of(struct exchange *exchange)
{
	struct buffer text;
	const bool is_fold = strstr(exchange->route->pattern, "/folds/") != NULL;
	buffer_init(&text, OBJECT_MAX_BYTES);
	buffer_add_text(&text, is_fold ? "folds/" : "steps/");
	encode_percent(exchange->parameters[2], false, &text);
	buffer_add_text(&text, "/objects/");
	encode_percent(exchange->parameters[3], true, &text);
	const struct span object = buffer_failed(&text)
		? (struct span){NULL, 0}
		: arena_copy(exchange->arena, buffer_span(&text));
	buffer_release(&text);
	return object;
}

static bool is_signed(struct exchange *exchange, const struct shared_url *url)
{
	char expected[SHARED_URL_SIGN_TEXT_BYTES];
	struct shared_url_key key;
	struct span given;
	if (!exchange_query(exchange, "sign", &given))
		return false;
	shared_url_key_init(&key, exchange->context);
	shared_url_sign(&key, url, expected);
	explicit_bzero(&key, sizeof(key));
	return span_equal_secret(given, span_text(expected));
}

static void print_text(const struct shared_url *url, struct buffer *out)
{
	uint8_t numbers[16];
	little_endian_put(numbers, (uint64_t)url->bucket.id, 8);
	little_endian_put(numbers + 8, (uint64_t)url->expires_s, 8);
	buffer_add_span(out, span_of(numbers, sizeof(numbers)));
	buffer_add_span(out, url->digest);
	buffer_add_span(out, url->bucket.name);
	buffer_add_byte(out, 0);
	buffer_add_span(out, url->run);
	buffer_add_byte(out, 0);
	buffer_add_span(out, url->object);
}
