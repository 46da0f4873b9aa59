/* What the steps handlers read from a request and the answers that several of them give. */
#ifndef API_STEPS_STEPS_REQUEST_H
#define API_STEPS_STEPS_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"

/* Parameters of the route: "/v1/runs/{bucket}/{run}/steps/{step}/objects/{name*}". */
struct run_ref steps_request_run(const struct exchange *exchange);
const char *steps_request_name(struct exchange *exchange); /* "bucket/run", in the arena */
/* The {step} of the path: digits alone. False and the reply set otherwise. */
bool steps_request_step(struct exchange *exchange, uint64_t *out_step, enum next *out_next);

/* A number of the query: digits alone. *out_has false when absent. */
bool steps_request_number(struct exchange *exchange, const char *name, bool *out_has,
	uint64_t *out_value, enum next *out_next);
/* `limit` of the query: 1 to `most`, `fallback` when absent; more counts as `most`. */
bool steps_request_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, enum next *out_next);

/* `resume` of calls whose success has nothing to tell: 204, or the error. */
enum next steps_request_resume_empty(struct exchange *exchange);
/* A manifest, with an ETag of the very bytes sent; 304 when If-None-Match names it (status 200
 * only). */
enum next steps_request_reply_step(
	struct exchange *exchange, int status, const struct step_message *step, bool with_tensors);
/* For answers to readers: a webhook's URL often is a secret of its own, so who may not write to the
 * run does not see it. */
void steps_request_hide_webhook(struct exchange *exchange, struct run_message *run);
enum next steps_request_reply_run(struct exchange *exchange, const struct run_message *run);
/* A JSON body that was built in `body`, which is released. */
enum next steps_request_reply_json(struct exchange *exchange, int status, struct buffer *body);

#endif
