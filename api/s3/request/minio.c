#include "api/s3/request/minio.h"

#include "api/exchange/readiness.h"

static enum next reply(struct exchange *exchange, bool writes);
static enum next fail(struct exchange *exchange, enum error_kind kind, const char *message);

enum next minio_live_begin(struct exchange *exchange)
{
	return exchange_reply_empty(exchange, 200);
}

enum next minio_ready_begin(struct exchange *exchange)
{
	return reply(exchange, false);
}

enum next minio_cluster_begin(struct exchange *exchange)
{
	struct span value;
	if (exchange_query(exchange, "maintenance", &value) && span_equal_text(value, "true"))
		return fail(exchange, ERROR_PRECONDITION,
			"There is only this server, so nothing is served during its maintenance.");
	return reply(exchange, true);
}

enum next minio_admin_begin(struct exchange *exchange)
{
	return fail(exchange, ERROR_UNSUPPORTED,
		"This server is deltabucket and does not have MinIO's admin API. Use `deltabucketd keys`,"
		" `deltabucketd gc` and the paths under /-/.");
}

enum next minio_metrics_begin(struct exchange *exchange)
{
	return fail(exchange, ERROR_UNSUPPORTED,
		"This server is deltabucket. Its metrics are at"
		" /-/metrics, for a key with the grant metrics.");
}

static enum next reply(struct exchange *exchange, bool writes)
{
	struct error err = {0};
	return readiness_check(exchange, writes, &err) == 0 ? exchange_reply_empty(exchange, 200)
							    : exchange_fail(exchange, &err);
}

static enum next fail(struct exchange *exchange, enum error_kind kind, const char *message)
{
	struct error err = {0};
	error_set(&err, kind, "%s", message);
	return exchange_fail(exchange, &err);
}
