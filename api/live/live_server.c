#include "api/live/live_server.h"

#include "api/exchange/principal.h"
#include "api/exchange/server_event.h"
#include "api/live/run_element.h"
#include "api/live/server_warnings.h"
#include "base/digest/xxh3.h"

enum { TEXT_MAX_BYTES = 64 * 1024 };

static bool live_server_may(struct live_part *part, struct exchange *exchange);
static bool live_server_look(struct live_part *part, struct exchange *exchange);
static uint64_t hash_warnings(struct exchange *exchange);
static uint64_t hash_work(const struct exchange *exchange);
static enum live_told live_server_tell(
	struct live_part *part, struct exchange *exchange, struct buffer *out);

int live_server_begin(struct live_server *server, struct exchange *exchange, struct error *err)
{
	*server = (struct live_server){.part = {.may = live_server_may,
					       .look = live_server_look,
					       .tell = live_server_tell}};
	if (!live_server_may(&server->part, exchange))
		return error_set(err, ERROR_DENIED,
			"Only the root key and keys with the grant metrics may follow the server.");
	server_numbers_read(exchange->context, &server->numbers);
	server->warnings = hash_warnings(exchange);
	server->work = hash_work(exchange);
	return 0;
}

static bool live_server_may(struct live_part *part, struct exchange *exchange)
{
	(void)part;
	return principal_may_read_metrics(exchange->principal);
}

static bool live_server_look(struct live_part *part, struct exchange *exchange)
{
	struct live_server *const server = (struct live_server *)part;
	const uint64_t warnings = hash_warnings(exchange);
	const uint64_t work = hash_work(exchange);
	server->tells_warnings = server->tells_warnings || warnings != server->warnings;
	server->tells_work = server->tells_work || work != server->work;
	server->warnings = warnings;
	server->work = work;
	server_numbers_read(exchange->context, &server->now);
	return server->tells_warnings || server->tells_work ||
		server_numbers_differ(&server->now, &server->numbers);
}

static uint64_t hash_warnings(struct exchange *exchange)
{
	struct buffer text;
	buffer_init(&text, TEXT_MAX_BYTES);
	server_warnings_print(exchange, &text);
	const uint64_t hash = xxh3_64(buffer_span(&text));
	buffer_release(&text);
	return hash;
}

static uint64_t hash_work(const struct exchange *exchange)
{
	struct buffer text;
	struct json_writer json;
	buffer_init(&text, TEXT_MAX_BYTES);
	json_writer_init(&json, &text);
	json_writer_object(&json, NULL);
	server_work_print(exchange->context, &json);
	json_writer_end(&json, '}');
	const uint64_t hash = xxh3_64(buffer_span(&text));
	buffer_release(&text);
	return hash;
}

static enum live_told live_server_tell(
	struct live_part *part, struct exchange *exchange, struct buffer *out)
{
	struct live_server *const server = (struct live_server *)part;
	const struct api_context *const context = exchange->context;
	struct json_writer json;
	server_event_begin(out, "server", &json);
	run_element_time(&json, "time", context->clock->wall_ms(context->clock));
	server_numbers_print(&server->now, &server->numbers, &json);
	if (server->tells_warnings)
		server_warnings_list(exchange, "warnings", &json);
	if (server->tells_work)
		server_work_print(context, &json);
	server_event_end(out, &json);
	server->numbers = server->now;
	server->tells_warnings = false;
	server->tells_work = false;
	return LIVE_DONE;
}
