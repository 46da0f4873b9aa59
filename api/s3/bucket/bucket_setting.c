#include "api/s3/bucket/bucket_setting.h"

#include "api/s3/bucket/handlers.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"

enum next bucket_setting_put_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return xml_body_accept(exchange, BUCKET_DOCUMENT_MAX_BYTES);
}

enum next bucket_setting_start(
	struct exchange *exchange, const struct bucket_edit *edit, int status)
{
	ASSERT(status >= 200 && status < 300);
	int *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* bodies of settings are capped far below the arena */
	*state = status;
	exchange->state = state;
	return exchange_await(exchange,
		bucket_edit_call(exchange->context->store, exchange_bucket(exchange), edit));
}

enum next bucket_setting_resume(struct exchange *exchange)
{
	struct error err = {0};
	ASSERT(exchange->call != NULL && exchange->state != NULL);
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, *(const int *)exchange->state);
}

enum next bucket_setting_store(
	struct exchange *exchange, enum bucket_document_kind kind, struct span bytes, int status)
{
	const struct bucket_document document = {.kind = kind, .bytes = bytes};
	const struct bucket_edit edit = {.documents = &document, .document_count = 1};
	return bucket_setting_start(exchange, &edit, status);
}

enum next bucket_setting_drop(struct exchange *exchange, enum bucket_document_kind kind)
{
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return bucket_setting_store(exchange, kind, (struct span){NULL, 0}, 204);
}

int bucket_setting_find(struct exchange *exchange, enum bucket_document_kind kind, struct span *out,
	struct error *err)
{
	if (s3_request_check_owner(exchange, err) != 0)
		return -1;
	return bucket_document_find(exchange->context->store, exchange_bucket(exchange), kind,
		exchange->arena, out, err);
}
