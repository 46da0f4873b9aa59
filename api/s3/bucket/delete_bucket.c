#include "api/s3/bucket/delete_bucket.h"

#include "api/s3/request/s3_request.h"
#include "storage/upkeep/bucket_delete.h"

struct delete_bucket { /* the exchange's state; freed by `release` */
	struct bucket_change *change;
};

static void release(struct exchange *exchange)
{
	struct delete_bucket *const state = exchange->state;
	bucket_change_free(state->change);
}

enum next delete_bucket_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	struct delete_bucket *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL);
	exchange->state = state;
	exchange->release = release;
	state->change = bucket_delete_start(exchange->context->store, s3_request_bucket(exchange),
		exchange_wake_owner, exchange);
	return NEXT_WAIT;
}

enum next delete_bucket_resume(struct exchange *exchange)
{
	struct delete_bucket *const state = exchange->state;
	struct error err = {0};
	if (bucket_change_outcome(state->change, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}
