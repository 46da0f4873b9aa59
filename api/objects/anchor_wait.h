/* Waiting for a file of an anchor that the server makes when somebody asks for it: what GET of such
 * a file does before its bytes are there. A waiting exchange holds no thread and no reader. */
#ifndef API_OBJECTS_ANCHOR_WAIT_H
#define API_OBJECTS_ANCHOR_WAIT_H

#include "api/exchange/long_wait.h"
#include "storage/runs/run.h"

struct anchor_wait { /* in the exchange's state */
	struct long_wait wait;
	struct run_anchor anchor; /* set by whoever looked for the file */
	uint64_t seen;
};
void anchor_wait_init(struct anchor_wait *wait, struct exchange *exchange);
/* Before each look at the catalog, so that what is made meanwhile is not missed. */
void anchor_wait_look(struct anchor_wait *wait);
/* Has it made: NEXT_WAIT, then `resume` looks again. Or the reply: why it cannot be made; 503 with
 * Retry-After after 60 s. */
enum next anchor_wait_for(struct anchor_wait *wait);

#endif
