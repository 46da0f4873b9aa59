/* Counts the requests of each operation of the route table: how long they took, the bytes of their
 * replies, and their statuses. An operation is a name on a face ("GetObject", "s3"), whatever number
 * of rows lead to it; requests that fit no row count as the operation "none". So the table bounds
 * the series, and no name comes from a client. Counting takes no lock. Any thread. */
#ifndef API_ROUTE_ROUTE_METRICS_H
#define API_ROUTE_ROUTE_METRICS_H

#include "api/exchange/route.h"

struct route_metrics;

struct route_metrics *route_metrics_new(void);
void route_metrics_free(struct route_metrics *metrics); /* NULL is fine */

struct route_sample {
	const struct face *face;
	const struct route *route; /* NULL: none fitted */
	int status;                /* 0: the client was gone before the reply */
	/* the request waited on purpose, as a long poll or a stream of events */
	bool waited;
	/* from the request's first line to the end of its reply; not counted when it waited, and
	 * without a reply: it says nothing about the server then */
	int64_t us;
	uint64_t reply_bytes;
};
/* `metrics` may be NULL. */
void route_metrics_count(struct route_metrics *metrics, const struct route_sample *sample);
/* Adds the series of the operations that were used. */
void route_metrics_print(const struct route_metrics *metrics, struct buffer *out);

#endif
