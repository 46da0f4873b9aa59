#include "api/steps/steps_error.h"

#include "wire/step_message.h"

enum { ERROR_BODY_MAX_BYTES = 16 * 1024 };

static const char content_type[] = "application/json";

static struct span print(struct exchange *exchange, const struct error_message *message);
static void steps_error_write(
	struct exchange *exchange, const struct error *err, const struct error_row *row);

const struct face face_steps = {.name = "steps", .write_error = steps_error_write};

enum next steps_error_fail(struct exchange *exchange, const struct error *err, uint64_t anchor)
{
	if (err->kind != ERROR_COLLECTED)
		return exchange_fail(exchange, err);
	const struct error_row *const row = error_map_find(err->kind);
	const struct error_message message = {.code = span_text(row->json_code),
		.message = span_text(err->text),
		.has_anchor = anchor != UINT64_MAX,
		.anchor = anchor};
	return exchange_reply_body(
		exchange, row->json_status, content_type, print(exchange, &message));
}

enum next steps_error_invalid(struct exchange *exchange, const char *name, const char *rule)
{
	struct error err = {0};
	error_set(&err, ERROR_INVALID, "The parameter %s %s.", name, rule);
	return exchange_fail(exchange, &err);
}

static struct span print(struct exchange *exchange, const struct error_message *message)
{
	struct buffer body;
	buffer_init(&body, ERROR_BODY_MAX_BYTES);
	error_message_print(message, exchange->request_id, &body);
	const struct span copy = buffer_failed(&body)
		? (struct span){0}
		: arena_copy(exchange->arena, buffer_span(&body));
	buffer_release(&body);
	return copy;
}

static void steps_error_write(
	struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	const struct error_message message = {
		.code = span_text(row->json_code), .message = span_text(error_map_text(err, row))};
	exchange->reply.body = print(exchange, &message);
	exchange->reply.content_type = content_type;
}
