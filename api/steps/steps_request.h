/* Parts that several handlers of the steps face share: parameters of the request, and replies. */
#ifndef API_STEPS_STEPS_REQUEST_H
#define API_STEPS_STEPS_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"

/* The run of a route that begins with "/v1/runs/{bucket}/{run}". */
struct run_ref steps_request_run(const struct exchange *exchange);
const char *steps_request_name(struct exchange *exchange); /* "bucket/run", in the arena */
/* Reads the {step} of the path, which must be digits. False when it is not, with the reply set. */
bool steps_request_step(struct exchange *exchange, uint64_t *out_step, enum next *out_next);

/* Reads a number of the query, which must be digits. *out_has is false when it is absent. Returns
 * false when it is malformed, with the reply set. */
bool steps_request_number(struct exchange *exchange, const char *name, bool *out_has,
	uint64_t *out_value, enum next *out_next);
/* Reads `limit` of the query: at least 1, `fallback` when absent; numbers over `most` count as
 * `most`. False when it is malformed, with the reply set. */
bool steps_request_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, enum next *out_next);

/* `resume` for calls without a result: 204, or the error. */
enum next steps_request_resume_empty(struct exchange *exchange);
/* Replies with a manifest, whose URLs it completes (step_url.h). Its ETag is a hash of the sent
 * bytes. With status 200 the reply is 304 when If-None-Match names that ETag. */
enum next steps_request_reply_step(
	struct exchange *exchange, int status, struct step_message *step, bool with_tensors);
/* For replies to readers: removes the URL of the webhook unless the caller may write to the run,
 * because such a URL often contains a secret. */
void steps_request_hide_webhook(struct exchange *exchange, struct run_message *run);
enum next steps_request_reply_run(struct exchange *exchange, const struct run_message *run);
/* Replies with the JSON in `body`, and takes its bytes. */
enum next steps_request_reply_json(struct exchange *exchange, int status, struct buffer *body);

#endif
