/* The wait of a GET for a file of an anchor that the server makes on request. A waiting exchange
 * occupies no thread and no reader of the catalog. */
#ifndef API_OBJECTS_ANCHOR_WAIT_H
#define API_OBJECTS_ANCHOR_WAIT_H

#include "api/exchange/long_wait.h"
#include "storage/runs/run.h"

struct anchor_wait { /* in the exchange's state */
	struct long_wait wait;
	struct run_anchor anchor; /* set by the function that looked for the file */
	uint64_t seen;            /* the watch's generation at the last anchor_wait_look */
};
void anchor_wait_init(struct anchor_wait *wait, struct exchange *exchange);
/* Must be called before each look at the catalog, so that no anchor made in between is missed. */
void anchor_wait_look(struct anchor_wait *wait);
/* Asks for the anchor. Returns NEXT_WAIT, and `resume` must look again; or a failure reply when it
 * cannot be made, which is 503 with Retry-After after a wait of 60 s. */
enum next anchor_wait_for(struct anchor_wait *wait);
/* The same for a caller that can reply without the anchor. Returns true when the exchange waits;
 * false, without a reply, where anchor_wait_for would have replied. */
bool anchor_wait_try(struct anchor_wait *wait);

#endif
