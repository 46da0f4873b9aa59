#include "api/steps/hot_load_call.h"

#include "api/authorise.h"
#include "api/keyring.h"
#include "storage/hot_load.h"

/* The caller has named a deployment alone: which run that is, and of whose bucket, is not for everyone. */
static int judge(struct exchange *const exchange, const struct hot_load_call *const call, const unsigned permission, struct error *const err)
{
	const char *const key = arena_format(exchange->arena, "%.*s/", (int)call->run.len, (const char *)call->run.data);
	struct error problem = {0};
	if (key == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The request's memory ran out.");
	if (authorise_owned_key(exchange, call->bucket, span_text(key), permission, &problem) == 0)
		return 0;
	if (authorise_is_refusal(problem.kind) && !authorise_knows(exchange, call->bucket))
		return hot_load_refuse(call->deployment, err);
	const struct span id = exchange->principal->key_id;
	if (problem.kind == ERROR_DENIED)
		return error_set(err, ERROR_DENIED, "The key %.*s may not %s the run of this deployment.", (int)id.len, (const char *)id.data,
			permission == PERMISSION_WRITE ? "write to" : "read");
	*err = problem;
	return -1;
}

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
	return judge(exchange, call, permission, err) == 0 ? call : NULL;
}
