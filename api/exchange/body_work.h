/* Large bodies that are parsed whole are parsed here and not on the reactors: `finish` of such a
 * request runs on one of a few threads of its own. Callers take turns, a body each, so that whoever
 * sends many large ones waits for himself. Internally locked; any thread. */
#ifndef API_EXCHANGE_BODY_WORK_H
#define API_EXCHANGE_BODY_WORK_H

#include "api/exchange/exchange.h"

enum { BODY_WORK_LEAST_BYTES = 64 * 1024 };

struct body_work *body_work_start(unsigned threads);
void body_work_stop(struct body_work *work); /* once all exchanges have ended; NULL is fine */

/* Whether the exchange's body is one of those. */
bool body_work_is_for(const struct exchange *exchange);
/* Has `finish` run there: NEXT_WAIT, and at the wake body_work_resume. Once for an exchange. */
enum next body_work_run(struct exchange *exchange, enum next (*finish)(struct exchange *exchange));
/* At each resume. True: *out_next is what comes next. False: it is the exchange's own wait that is
 * over. */
bool body_work_resume(struct exchange *exchange, enum next *out_next);

/* For exchange.c. Whether this wake, one of the exchange's own, is kept for later, because `finish`
 * still runs. */
bool body_job_keeps_wake(struct body_job *job);
bool body_job_is_over(struct body_job *job);

#endif
