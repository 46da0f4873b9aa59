#include "api/xet/handlers.h"

enum { TELEMETRY_MAX_BYTES = 64 * 1024 };

static enum next reply_nothing(struct exchange *exchange);

enum next telemetry_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, TELEMETRY_MAX_BYTES);
}

enum next telemetry_finish(struct exchange *exchange)
{
	return reply_nothing(exchange);
}

enum next telemetry_health_begin(struct exchange *exchange)
{
	return reply_nothing(exchange);
}

static enum next reply_nothing(struct exchange *exchange)
{
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}
