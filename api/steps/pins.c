#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"
#include "storage/runs/pin.h"
#include "wire/replica_message.h"

enum { LIST_BODY_MAX_BYTES = PINS_OF_RUN_MAX * 1024 };

static struct span pin_name(const struct exchange *exchange);
static enum next reply(struct exchange *exchange, const struct pin_message *pin);

enum next put_pin_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (replica_check_id("A pin's name", pin_name(exchange), &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, PIN_MESSAGE_MAX_BYTES);
}

enum next put_pin_finish(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct pin_message pin;
	struct error err = {0};
	if (pin_message_parse(exchange_body(exchange), exchange->arena, &pin, &err) != 0)
		return exchange_fail(exchange, &err);
	pin.name = pin_name(exchange);
	return exchange_await(exchange, pin_put_call(exchange->context->store, &run, &pin));
}

enum next put_pin_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, pin_put_result(exchange->call));
}

enum next get_pin_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct pin_message pin;
	struct error err = {0};
	if (pin_find(exchange->context->store, &run, pin_name(exchange), &pin, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, &pin);
}

enum next delete_pin_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	return exchange_await(
		exchange, pin_remove_call(exchange->context->store, &run, pin_name(exchange)));
}

enum next list_pins_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct pin_message *pins;
	size_t count;
	struct error err = {0};
	if (pin_list(exchange->context->store, &run, exchange->arena, &pins, &count, &err) != 0)
		return exchange_fail(exchange, &err);
	struct buffer body;
	buffer_init(&body, LIST_BODY_MAX_BYTES);
	pin_list_print(pins, count, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}

static struct span pin_name(const struct exchange *exchange)
{
	ASSERT(exchange->parameter_count >= 3);
	return exchange->parameters[2];
}

static enum next reply(struct exchange *exchange, const struct pin_message *pin)
{
	struct buffer body;
	buffer_init(&body, PIN_MESSAGE_MAX_BYTES);
	pin_message_print(pin, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
