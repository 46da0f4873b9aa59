#include "api/s3/upload/handlers.h"

#include "api/s3/upload/upload_request.h"

enum next abort_upload_begin(struct exchange *exchange)
{
	struct upload_ref ref;
	enum next next;
	if (!upload_request_read(exchange, &ref, &next))
		return next;
	return exchange_await(exchange, upload_abort_call(exchange->context->store, &ref));
}

enum next abort_upload_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}
