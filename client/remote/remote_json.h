/* Requests whose body and answer are small JSON documents: the fleet, pins, settings and keys.
 * Retries as remote_send does. */
#ifndef CLIENT_REMOTE_REMOTE_JSON_H
#define CLIENT_REMOTE_REMOTE_JSON_H

#include "base/format/json_node.h"
#include "client/remote/remote.h"
#include "client/remote/run_name.h"

struct remote_json_request {
	const char *method;
	const char *target;
	struct span body; /* empty: none */
};
/* *out is the answer, the caller's to free: an object, or NULL when the answer has no body. `out`
 * may be NULL. */
int remote_json_send(struct remote *remote, const struct remote_json_request *request,
	struct json_node **out, struct error *err);

/* What a server's answer says; `what` names it in the message. NULL: it is not JSON,
 * ERROR_UPSTREAM. The caller frees it. */
struct json_node *remote_json_parse(struct span answer, const char *what, struct error *err);

/* "<run's target>/<below>", where `name` (percent-encoded here) may follow behind a slash; NULL:
 * nothing follows. Heap, the caller's. */
char *remote_json_target(const struct run_name *run, const char *below, const char *name);

#endif
