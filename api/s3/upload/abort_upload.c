#include "api/s3/upload/abort_upload.h"

#include "api/s3/upload/upload_request.h"

static void release(struct exchange *exchange)
{
	upload_abort_free(exchange->state);
}

enum next abort_upload_begin(struct exchange *exchange)
{
	struct upload_ref ref;
	enum next next;
	if (!upload_request_read(exchange, &ref, &next))
		return next;
	exchange->state =
		upload_abort_start(exchange->context->store, &ref, exchange_wake_owner, exchange);
	exchange->release = release;
	return NEXT_WAIT;
}

enum next abort_upload_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (upload_abort_outcome(exchange->state, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}
