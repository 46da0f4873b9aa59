/* A write token needs a permission to write something in the bucket: by the key, by ownership, or
 * by a grant of the bucket to the account. The rights of a token are judged again at each request
 * that bears it. */
#include "api/hub/handlers.h"

#include <inttypes.h>

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "api/exchange/base_url.h"
#include "api/exchange/json_reply.h"
#include "api/route/router.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket.h"
#include "storage/core/store.h"

enum { REPLY_MAX_BYTES = 8 * 1024 };

static enum next give(struct exchange *exchange, const struct bucket *bucket, bool is_write);
static enum next reply(
	struct exchange *exchange, const char *url, const char *token, int64_t expires_s);
static const char *cas_url(struct exchange *exchange, bool is_write);
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
	return reply(exchange, cas_url(exchange, is_write), text, token.expires_s);
}

/* hf_xet keeps what it uploaded in a cache for each URL, and does not ask whether it is still
 * there. So while stored bytes are known to be damaged, writers get a URL that is another one after
 * each new damage: then they ask, and send what the server lacks. */
static const char *cas_url(struct exchange *exchange, bool is_write)
{
	const uint64_t mark = is_write ? store_damage_mark(exchange->context->store) : 0;
	const char *const base = base_url(exchange);
	return mark == 0 ? arena_format(exchange->arena, "%s/xet", base)
			 : arena_format(exchange->arena, "%s" ROUTER_XET_DAMAGE "%016" PRIx64, base,
				   mark);
}

static enum next reply(
	struct exchange *exchange, const char *url, const char *token, int64_t expires_s)
{
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
