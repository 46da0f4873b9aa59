#include "api/s3/object/stored_body.h"

static int stored_body_finish(struct body_sink *sink, struct error *err);
static void stored_body_abort(struct body_sink *sink);

void stored_body_init(struct stored_body *body, struct exchange *exchange,
	enum sink_result (*write)(struct body_sink *sink, struct span bytes, struct error *err))
{
	ASSERT(write != NULL);
	*body = (struct stored_body){
		.sink = {.write = write, .finish = stored_body_finish, .abort = stored_body_abort},
		.exchange = exchange};
}

int stored_body_check_length(
	const struct exchange *exchange, const char *subject, const char *limit, struct error *err)
{
	if (!exchange->has_length && !exchange->chunked)
		return error_set(err, ERROR_LENGTH_REQUIRED,
			"%s needs a Content-Length or Transfer-Encoding: chunked.", subject);
	if (exchange->has_body_length && exchange->body_length > exchange->context->put_max_bytes)
		return error_set(err, ERROR_TOO_LARGE,
			"Your proposed upload exceeds the maximum allowed %s.", limit);
	return 0;
}

enum next stored_body_reply_failed(
	struct exchange *exchange, stored_body_bad_checksum *bad_checksum, const struct error *err)
{
	struct checksum expected;
	struct checksum actual;
	ASSERT(exchange->call != NULL);
	if (err->kind == ERROR_BAD_DIGEST && bad_checksum(exchange->call, &expected, &actual))
		return checksum_headers_mismatch(exchange, &expected, &actual, 0);
	return exchange_fail(exchange, err);
}

static int stored_body_finish(struct body_sink *sink, struct error *err)
{
	(void)sink;
	(void)err;
	return 0;
}

static void stored_body_abort(struct body_sink *sink)
{
	exchange_drop_call(((struct stored_body *)sink)->exchange);
}
