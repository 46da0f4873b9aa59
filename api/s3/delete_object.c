#include "api/s3/delete_object.h"

#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"
#include "storage/object.h"

struct delete_object { /* the exchange's state */
	struct object_delete_item item;
	struct object_delete *change;
};

static const struct s3_request_refusal refusals[] = {
	{"x-amz-if-match-size", NULL, "The condition x-amz-if-match-size is not implemented."},
	{"x-amz-if-match-last-modified-time", NULL, "The condition x-amz-if-match-last-modified-time is not implemented."},
	{"x-amz-mfa", NULL, "MFA delete is not implemented."},
};

static void release(struct exchange *const exchange)
{
	struct delete_object *const state = exchange->state;
	object_delete_free(state->change);
}

enum next delete_object_begin(struct exchange *const exchange)
{
	struct error err = {0};
	const struct s3_request_refusal *const refused = s3_request_refused(exchange, refusals, sizeof(refusals) / sizeof(refusals[0]));
	if (refused != NULL)
		return s3_error_not_implemented(exchange, refused->header, refused->message);
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	struct delete_object *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL);
	*state = (struct delete_object){.item = {.key = s3_request_key(exchange), .conditions = {.if_match = exchange_header(exchange,
		"if-match"), .if_none_match = exchange_header(exchange, "if-none-match")}}};
	const struct object_delete_params params = {.bucket = s3_request_bucket(exchange), .items = &state->item, .count = 1,
		.done = exchange_wake_owner, .owner = exchange};
	exchange->state = state;
	exchange->release = release;
	state->change = object_delete_start(exchange->context->store, &params);
	return NEXT_WAIT;
}

enum next delete_object_resume(struct exchange *const exchange)
{
	struct delete_object *const state = exchange->state;
	struct error err = {0};
	if (object_delete_outcome(state->change, &err) != 0)
		return exchange_fail(exchange, &err);
	if (state->item.error.kind != ERROR_NONE)
		return exchange_fail(exchange, &state->item.error);
	return exchange_reply_empty(exchange, 204);
}
