#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"
#include "base/format/json_node.h"

enum { WEBHOOK_BODY_MAX_BYTES = 4096 };

enum next run_webhook_begin(struct exchange *exchange)
{
	const struct run_ref ref = steps_request_run(exchange);
	char secret[RUN_WEBHOOK_SECRET_BYTES];
	struct run_message run;
	struct json_writer writer;
	struct buffer body;
	struct error err = {0};
	struct store *const store = exchange->context->store;
	if (run_find(store, &ref, exchange->arena, &run, &err) != 0 ||
		run_webhook_secret(store, &ref, secret, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, WEBHOOK_BODY_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "url", span_text(run.settings.webhook));
	json_writer_text(&writer, "secret", span_text(secret));
	json_writer_end(&writer, '}');
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
