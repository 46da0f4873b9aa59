/* Waiting for a change of a run: what every writing handler of the steps face does between its last
 * look at the request and its reply. */
#ifndef API_STEPS_RUN_WAIT_H
#define API_STEPS_RUN_WAIT_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"

/* A change that was started with exchange_wake_owner and the exchange as its owner: kept in
 * exchange->state until the exchange ends. NEXT_WAIT. */
enum next run_wait_for(struct exchange *exchange, struct run_change *change);
/* The same, with an answer that was made before and is given once the change is through; it lives
 * in the exchange's arena. */
enum next run_wait_with(struct exchange *exchange, struct run_change *change, const void *answer);
const void *run_wait_answer(const struct exchange *exchange);
/* In `resume`. Texts live as long as the exchange. */
int run_wait_outcome(struct exchange *exchange, struct run_outcome *out, struct error *err);
/* `resume` of changes whose success has nothing to tell: 204, or the error. */
enum next run_wait_resume_empty(struct exchange *exchange);

#endif
