#include "api/xet/telemetry.h"

enum { TELEMETRY_MAX_BYTES = 64 * 1024 };

static enum next reply_nothing(struct exchange *const exchange)
{
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}

enum next telemetry_begin(struct exchange *const exchange)
{
	return exchange_accept_small(exchange, TELEMETRY_MAX_BYTES);
}

enum next telemetry_finish(struct exchange *const exchange)
{
	return reply_nothing(exchange);
}

enum next telemetry_health_begin(struct exchange *const exchange)
{
	return reply_nothing(exchange);
}

enum next telemetry_absent_begin(struct exchange *const exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_NOT_FOUND, "there is no such thing here");
	return exchange_fail(exchange, &err);
}
