#include "api/steps/hot_load_call.h"

#include "api/authorise.h"
#include "storage/hot_load.h"

struct hot_load_call *hot_load_call_open(struct exchange *const exchange, const unsigned permission, struct error *const err)
{
	struct hot_load_call *const call = arena_take(exchange->arena, sizeof(*call));
	if (call == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The request's memory ran out.");
		return NULL;
	}
	call->deployment = exchange_header(exchange, "fireworks-deployment");
	if (call->deployment.len == 0) {
		error_set(err, ERROR_INVALID, "The header fireworks-deployment is missing: it says which run is meant.");
		return NULL;
	}
	if (hot_load_find(exchange->context->store, call->deployment, exchange->arena, &call->bucket, &call->run, err) != 0)
		return NULL;
	const char *const key = arena_format(exchange->arena, "%.*s/", (int)call->run.len, (const char *)call->run.data);
	if (key == NULL || authorise_owned_key(exchange, call->bucket, span_text(key), permission, err) != 0)
		return NULL;
	return call;
}
