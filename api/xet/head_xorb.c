/* In a far place (storage/packs/backend.h) a helper measures the xorb when its pack's index is not
 * in memory. */
#include "api/xet/handlers.h"

#include "api/xet/xorb_request.h"
#include "base/thread/helpers.h"
#include "storage/xet/xorb.h"

struct head_request { /* in the exchange's arena */
	struct helper_job job;
	struct helper_lane lane;
	struct exchange *exchange;
	struct xorb xorb;
	uint64_t length;
	struct error error;
};

static enum next measure_on_helper(struct exchange *exchange, const struct xorb *xorb);
static void head_xorb_measure(struct helper_job *job);
static enum next reply(struct exchange *exchange, uint64_t length);

enum next head_xorb_begin(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct chunk_id hash;
	struct xorb xorb;
	uint64_t length;
	if (xorb_request_hash(exchange, &hash, &err) != 0 ||
		xorb_find(store, &hash, &xorb, &err) != 0)
		return exchange_fail(exchange, &err);
	if (xorb_length_soon(store, &xorb, &length, &err) == 0)
		return reply(exchange, length);
	return err.kind == ERROR_NOT_READY ? measure_on_helper(exchange, &xorb)
					   : exchange_fail(exchange, &err);
}

enum next head_xorb_resume(struct exchange *exchange)
{
	const struct head_request *const request = exchange->state;
	return request->error.kind == ERROR_NONE ? reply(exchange, request->length)
						 : exchange_fail(exchange, &request->error);
}

static enum next measure_on_helper(struct exchange *exchange, const struct xorb *xorb)
{
	struct error err = {0};
	struct head_request *const request = arena_take(exchange->arena, sizeof(*request));
	if (request == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	request->job.run = head_xorb_measure;
	request->exchange = exchange;
	request->xorb = *xorb;
	exchange->state = request;
	helpers_submit(store_helpers(exchange->context->store), &request->lane, &request->job);
	return NEXT_WAIT;
}

static void head_xorb_measure(struct helper_job *job)
{
	struct head_request *const request = (struct head_request *)job;
	(void)xorb_length(request->exchange->context->store, &request->xorb, &request->length,
		&request->error);
	exchange_wake(request->exchange); /* from here on the request may be gone */
}

static enum next reply(struct exchange *exchange, uint64_t length)
{
	const enum next next = exchange_reply_empty(exchange, 200);
	exchange->reply.length = length;
	exchange->reply.length_known = true;
	return next;
}
