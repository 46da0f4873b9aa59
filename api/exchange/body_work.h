/* Parses large bodies away from the reactors: `finish` of a request whose whole body is parsed at
 * once runs on one of a few threads of this pool. The bodies of one caller run one after the other,
 * so a caller that sends many large bodies delays only itself. Internally locked; any thread. */
#ifndef API_EXCHANGE_BODY_WORK_H
#define API_EXCHANGE_BODY_WORK_H

#include "api/exchange/exchange.h"

enum { BODY_WORK_LEAST_BYTES = 64 * 1024 };

struct body_work *body_work_start(unsigned threads);
/* To be called after all exchanges have ended. NULL is fine. */
void body_work_stop(struct body_work *work);

size_t body_work_waiting(struct body_work *work); /* bodies; NULL: none */

/* Whether the pool exists and the exchange's body is over BODY_WORK_LEAST_BYTES. */
bool body_work_is_for(const struct exchange *exchange);
/* Runs `finish` on the pool. Returns NEXT_WAIT; the caller calls body_work_resume when the exchange
 * is woken. At most once for an exchange. */
enum next body_work_run(struct exchange *exchange, enum next (*finish)(struct exchange *exchange));
/* Must be called first at each resume. True when `finish` has just ended: *out_next is what comes
 * next. False when a wait of the handler has ended: its `resume` is due. */
bool body_work_resume(struct exchange *exchange, enum next *out_next);

/* For exchange.c, at a wake by what the handler waits for. True while `finish` still runs: the wake
 * is kept until its end. */
bool body_job_keeps_wake(struct body_job *job);
bool body_job_is_over(struct body_job *job);

#endif
