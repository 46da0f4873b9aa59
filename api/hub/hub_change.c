#include "api/hub/hub_change.h"

#include "api/exchange/json_reply.h"

enum { REPLY_MAX_BYTES = 64 };

static void release(struct exchange *exchange)
{
	bucket_change_free(exchange->state);
}

enum next hub_change_wait(struct exchange *exchange, struct bucket_change *change)
{
	exchange->state = change;
	exchange->release = release;
	return NEXT_WAIT;
}

int hub_change_outcome(struct exchange *exchange, struct error *err)
{
	return bucket_change_outcome(exchange->state, err);
}

enum next hub_change_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	if (hub_change_outcome(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	buffer_add_text(&body, "{}");
	return json_reply(exchange, 200, &body);
}
