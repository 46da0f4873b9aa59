/* The part of a stream that tells the replicas of one run that changed, in whatever way. */
#ifndef API_LIVE_LIVE_REPLICAS_H
#define API_LIVE_LIVE_REPLICAS_H

#include "api/live/live_part.h"
#include "base/format/json_node.h"
#include "storage/runs/replica.h"

struct live_replicas {
	struct live_part part; /* first */
	struct span name;      /* "BUCKET/RUN" */
	struct replica_follow follow;
	bool has_ended;          /* the run was removed, and that was told */
	bool is_telling;         /* an event has begun */
	size_t told;             /* replicas in that event */
	uint64_t runs;           /* the last change of all runs that was looked at */
	uint64_t facts;          /* a hash of head, rollback and counts, as told last */
	struct json_writer json; /* of the event that has begun */
};
/* `name` is "BUCKET/RUN" and lives as long as the stream. From now on. Fails with invalid, denied,
 * no_bucket or no_run. */
int live_replicas_begin(struct live_replicas *replicas, struct exchange *exchange, struct span name,
	struct error *err);
/* Ends the event that has begun, if one has, with what was printed of it. */
void live_replicas_end_event(struct live_replicas *replicas, struct buffer *out);

#endif
