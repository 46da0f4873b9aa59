/* Requests whose body and answer are small JSON documents: replicas, pins, settings and keys. They
 * retry as remote_send does. */
#ifndef CLIENT_REMOTE_REMOTE_JSON_H
#define CLIENT_REMOTE_REMOTE_JSON_H

#include "base/format/json_node.h"
#include "client/remote/remote.h"
#include "client/remote/run_name.h"

struct remote_json_request {
	const char *method;
	const char *target;
	struct span body; /* empty: no body */
};
/* *out is the answer, or NULL when the answer has no body; the caller frees it. `out` may be
 * NULL. */
int remote_json_send(struct remote *remote, const struct remote_json_request *request,
	struct json_node **out, struct error *err);

/* Parses a server's answer; `what` names it in the message. NULL with upstream when it is not JSON.
 * The caller frees the result. */
struct json_node *remote_json_parse(struct span answer, const char *what, struct error *err);

/* "<run's target>/<below>", followed by "/<name>" unless `name` is NULL; `name` is percent-encoded
 * here. The caller frees it. */
char *remote_json_target(const struct run_name *run, const char *below, const char *name);

#endif
