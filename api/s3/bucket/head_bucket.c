#include "api/s3/bucket/handlers.h"

#include "api/s3/request/s3_request.h"

enum next head_bucket_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	if (s3_request_check_owner(exchange, &err) != 0 ||
		bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
			&bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange_add_header(exchange, "x-amz-bucket-region", exchange->context->region);
	return exchange_reply_empty(exchange, 200);
}
