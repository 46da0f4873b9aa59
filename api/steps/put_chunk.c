/* Takes a chunk from a worker that the answer to its report asked for (replicas.c). */
#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"
#include "storage/scrub/scrub.h"

static bool read_id(const struct exchange *exchange, struct chunk_id *out, struct error *err);

enum next put_chunk_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct chunk_id id;
	if (!read_id(exchange, &id, &err))
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, CHUNK_MAX_BYTES);
}

enum next put_chunk_finish(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	const struct want_place place = {.bucket = run.bucket.name, .run = run.name};
	struct store *const store = exchange->context->store;
	struct run_message found;
	struct error err = {0};
	struct chunk_id id;
	/* the run must be the one that the caller was judged for */
	if (!read_id(exchange, &id, &err) ||
		run_find(store, &run, exchange->arena, &found, &err) != 0 ||
		scrub_take(store_parts(store)->scrub, &place, &id, exchange_body(exchange), &err) !=
			0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}

static bool read_id(const struct exchange *exchange, struct chunk_id *out, struct error *err)
{
	ASSERT(exchange->parameter_count >= 3);
	if (chunk_id_parse(exchange->parameters[2], out))
		return true;
	error_set(err, ERROR_INVALID, "A chunk is named by 64 lower-case hex digits.");
	return false;
}
