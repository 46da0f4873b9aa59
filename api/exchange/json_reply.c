#include "api/exchange/json_reply.h"

#include <string.h>

#include "base/format/json_node.h"

enum { ERROR_BODY_MAX_BYTES = 16 * 1024 };

static const char content_type[] = "application/json; charset=utf-8";

enum next json_reply(struct exchange *exchange, int status, struct buffer *body)
{
	return exchange_reply_buffer(exchange, status, content_type, body);
}

void json_reply_error(struct exchange *exchange, struct span text, const char *code)
{
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, ERROR_BODY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "error", text);
	if (code != NULL)
		json_writer_text(&json, "code", span_text(code));
	json_writer_end(&json, '}');
	exchange->reply.body = buffer_failed(&body)
		? (struct span){NULL, 0}
		: arena_copy(exchange->arena, buffer_span(&body));
	exchange->reply.content_type = content_type;
	buffer_release(&body);
}

const char *json_reply_without_stop(struct exchange *exchange, const char *text)
{
	const size_t len = strlen(text);
	if (len == 0 || text[len - 1] != '.')
		return text;
	const char *const cut =
		arena_text(exchange->arena, span_slice(span_text(text), 0, len - 1));
	return cut != NULL ? cut : text;
}

const char *json_reply_header_text(struct exchange *exchange, const char *text)
{
	char *const copy = arena_text(exchange->arena, span_text(text));
	for (char *at = copy; at != NULL && *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return copy;
}

void json_reply_pace(struct exchange *exchange)
{
	const unsigned seconds = exchange_pause_seconds(exchange);
	if (exchange->reply.status != JSON_REPLY_BUSY)
		return;
	exchange_add_header(
		exchange, "RateLimit", arena_format(exchange->arena, "\"api\";r=0;t=%u", seconds));
	exchange_add_header(exchange, "RateLimit-Policy",
		arena_format(exchange->arena, "\"fixed window\";\"api\";q=0;w=%u", seconds));
	exchange_add_header(exchange, "Retry-After", arena_format(exchange->arena, "%u", seconds));
}

void json_reply_prepare(struct exchange *exchange)
{
	exchange_add_header(exchange, "X-Request-Id", exchange->request_id);
}
