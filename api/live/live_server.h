/* The part of a stream that tells the server's numbers: those that changed, the warnings when they
 * did, and what the work behind the requests is doing when that did. */
#ifndef API_LIVE_LIVE_SERVER_H
#define API_LIVE_LIVE_SERVER_H

#include "api/live/live_part.h"
#include "api/live/server_numbers.h"

struct live_server {
	struct live_part part;         /* first */
	struct server_numbers numbers; /* told last */
	struct server_numbers now;
	uint64_t warnings; /* a hash of what was told last */
	uint64_t work;
	bool tells_warnings;
	bool tells_work;
};
/* From now on. Fails with denied for callers that may not read metrics. */
int live_server_begin(struct live_server *server, struct exchange *exchange, struct error *err);

#endif
