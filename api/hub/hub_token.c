/* A write token needs a permission to write something in the bucket: by the key, by ownership, or
 * by a grant of the bucket to the account. The rights of a token are judged again at each request
 * that bears it. */
#include "api/hub/handlers.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "api/exchange/base_url.h"
#include "api/exchange/json_reply.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket.h"

enum { REPLY_MAX_BYTES = 8 * 1024 };

static enum next give(struct exchange *exchange, const struct bucket *bucket, bool is_write);
static enum next reply(struct exchange *exchange, const char *token, int64_t expires_s);
static int check_writes(struct exchange *exchange, const struct bucket *bucket, struct error *err);
static bool key_writes(const struct principal *principal, const struct bucket *bucket);
static int account_writes(
	struct exchange *exchange, const struct bucket *bucket, bool *out, struct error *err);

enum next hub_token_read_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	if (bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
		    &bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	return give(exchange, &bucket, false);
}

enum next hub_token_write_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	if (bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
		    &bucket, &err) != 0 ||
		check_writes(exchange, &bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	return give(exchange, &bucket, true);
}

static enum next give(struct exchange *exchange, const struct bucket *bucket, bool is_write)
{
	const struct clock_source *const clock = exchange->context->clock;
	ASSERT(bucket->id > 0);
	const struct xet_token token = {
		.bucket_id = bucket->id,
		.key_id = exchange->principal != NULL ? exchange->principal->key_id
						      : (struct span){NULL, 0},
		.is_write = is_write,
		.expires_s = clock->wall_ms(clock) / 1000 + XET_TOKEN_SECONDS,
	};
	const char *const text = xet_token_print(exchange, &token);
	if (text == NULL || arena_overflowed(exchange->arena)) {
		struct error err = {0};
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	return reply(exchange, text, token.expires_s);
}

static enum next reply(struct exchange *exchange, const char *token, int64_t expires_s)
{
	const char *const url = arena_format(exchange->arena, "%s/xet", base_url(exchange));
	struct buffer body;
	struct json_writer json;
	exchange_add_header(exchange, "X-Xet-Cas-Url", url);
	exchange_add_header(exchange, "X-Xet-Access-Token", token);
	exchange_add_header(exchange, "X-Xet-Token-Expiration",
		arena_format(exchange->arena, "%lld", (long long)expires_s));
	exchange_add_header(exchange, "Cache-Control", "no-store");
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "accessToken", span_text(token));
	json_writer_i64(&json, "exp", expires_s);
	json_writer_text(&json, "casUrl", span_text(url));
	json_writer_end(&json, '}');
	return json_reply(exchange, 200, &body);
}

static int check_writes(struct exchange *exchange, const struct bucket *bucket, struct error *err)
{
	bool writes;
	if (exchange->principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "Writing needs credentials.");
	if (key_writes(exchange->principal, bucket))
		return 0;
	if (account_writes(exchange, bucket, &writes, err) != 0)
		return -1;
	return writes ? 0 : error_set(err, ERROR_DENIED, "You may not write to this bucket.");
}

static bool key_writes(const struct principal *principal, const struct bucket *bucket)
{
	if (principal->is_root)
		return true;
	for (size_t i = 0; i < principal->grant_count; i++)
		if (span_equal(principal->grants[i].bucket, bucket->name) &&
			(principal->grants[i].permissions & PERMISSION_WRITE) != 0)
			return true;
	return principal->grant_count == 0 && span_equal(bucket->owner, principal->namespace);
}

/* Whether a grant of the bucket to the caller's account allows to write any keys. */
static int account_writes(
	struct exchange *exchange, const struct bucket *bucket, bool *out, struct error *err)
{
	struct bucket_grants listed;
	ASSERT(exchange->principal != NULL);
	*out = false;
	if (exchange->principal->grant_count > 0)
		return 0;
	if (bucket_grant_list(exchange->context->store, bucket->id, BUCKET_GRANTS_OF_POLICY,
		    exchange->arena, &listed, err) != 0)
		return -1;
	for (size_t i = 0; i < listed.count; i++)
		if (span_equal(listed.grants[i].account, exchange->principal->namespace) &&
			(listed.grants[i].permissions & PERMISSION_WRITE) != 0)
			*out = true;
	return 0;
}
