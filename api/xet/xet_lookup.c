#include "api/xet/xet_lookup.h"

#include "api/auth/authorise.h"
#include "api/auth/xet_token.h"
#include "storage/buckets/bucket_grant.h"

static int xet_lookup_may_read(void *owner, struct span key, bool is_current, struct error *err);

int xet_lookup_parse(struct span text, struct chunk_id *out, struct error *err)
{
	return chunk_id_parse(text, out)
		? 0
		: error_set(err, ERROR_INVALID,
			  "A hash must have 64 hexadecimal digits in lower case.");
}

int xet_lookup_find(struct exchange *exchange, struct xet_view *view, const struct chunk_id *file,
	struct xet_content *out, struct error *err)
{
	const struct api_context *const context = exchange->context;
	ASSERT(exchange->transfer != NULL);
	const struct xet_reach reach = {
		.bucket = exchange->transfer->bucket_id,
		.account = exchange->transfer->account,
		.now_ms = context->clock->wall_ms(context->clock),
		.may_read = xet_lookup_may_read,
		.owner = exchange,
	};
	return xet_view_find(view, &reach, file, out, err);
}

static int xet_lookup_may_read(void *owner, struct span key, bool is_current, struct error *err)
{
	const unsigned permission =
		is_current ? PERMISSION_READ : PERMISSION_READ | PERMISSION_VERSIONS;
	struct exchange *const exchange = owner;
	struct bucket_ref bucket = {
		.name = exchange->transfer->bucket, .id = exchange->transfer->bucket_id};
	return authorise_permits(exchange, &bucket, key, permission, err);
}
