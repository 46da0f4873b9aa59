#include "api/hub/handlers.h"

#include "api/exchange/json_reply.h"

enum { REPLY_MAX_BYTES = 64 };

enum next hub_change_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	ASSERT(exchange->call != NULL);
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	buffer_add_text(&body, "{}");
	return json_reply(exchange, 200, &body);
}
