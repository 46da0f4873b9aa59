/* A small HTTP server on 127.0.0.1 that serves one run of bytes under every path, with ranges, and
 * misbehaves as told: what a download has to survive. A thread per connection. */
#ifndef TESTS_UNIT_CLIENT_RANGE_SERVER_H
#define TESTS_UNIT_CLIENT_RANGE_SERVER_H

#include <stdatomic.h>

#include "base/span.h"

struct range_server_faults {
	atomic_int refusals;      /* answer so many requests with 503 */
	atomic_int cuts;          /* end so many answers halfway */
	atomic_int flips;         /* flip a bit in so many answers */
	atomic_bool ignore_range; /* answer 200 with everything */
	atomic_bool too_much;     /* send more than the range */
	atomic_int status;        /* answer everything with this status; 0: no */
	atomic_int good;          /* with die: so many answers come, every later request is cut */
	atomic_bool die;
	atomic_int requests; /* counts */
	atomic_ullong sent;  /* body bytes */
};

struct range_server;

/* both borrowed */
struct range_server *range_server_start(struct span content, struct range_server_faults *faults);
void range_server_stop(struct range_server *server);
const char *range_server_endpoint(const struct range_server *server);

#endif
