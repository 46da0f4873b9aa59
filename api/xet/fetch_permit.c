#include "api/xet/fetch_permit.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "storage/buckets/bucket.h"

static int find_caller(
	struct exchange *exchange, const struct fetch_token *token, struct error *err);
static int judge_bucket(
	struct exchange *exchange, const struct fetch_token *token, struct error *err);

int fetch_permit_judge(
	struct exchange *exchange, struct span text, struct fetch_token *out, struct error *err)
{
	const struct api_context *const context = exchange->context;
	if (!fetch_token_parse(text, context->token_key, out) ||
		out->expires_s * 1000 <= context->clock->wall_ms(context->clock) ||
		(out->is_shared && !context->shared_urls))
		return fetch_permit_refuse(err);
	return find_caller(exchange, out, err) == 0 ? judge_bucket(exchange, out, err) : -1;
}

int fetch_permit_refuse(struct error *err)
{
	return error_set(err, ERROR_DENIED,
		"This URL is not valid, or no longer valid: ask for the reconstruction again.");
}

static int find_caller(
	struct exchange *exchange, const struct fetch_token *token, struct error *err)
{
	if (token->key_id_len == 0)
		return 0;
	exchange->principal = keyring_find_caller(exchange->context->keyring,
		span_of(token->key_id, token->key_id_len), exchange->arena);
	return exchange->principal != NULL ? 0 : fetch_permit_refuse(err);
}

static int judge_bucket(
	struct exchange *exchange, const struct fetch_token *token, struct error *err)
{
	struct bucket bucket;
	struct error missing = {0};
	const int64_t id = token->bucket;
	if (bucket_find_id(exchange->context->store, id, exchange->arena, &bucket, &missing) == 0)
		return token->is_shared ||
				authorise_knows(exchange,
					(struct bucket_ref){.name = bucket.name, .id = id})
			? 0
			: fetch_permit_refuse(err);
	if (missing.kind == ERROR_NO_BUCKET)
		return fetch_permit_refuse(err);
	*err = missing;
	return -1;
}
