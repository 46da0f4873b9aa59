#include "api/s3/bucket/handlers.h"

#include "api/s3/request/s3_request.h"
#include "storage/upkeep/bucket_delete.h"

enum next delete_bucket_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(
		exchange, bucket_delete_call(exchange->context->store, exchange_bucket(exchange)));
}

enum next delete_bucket_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}
