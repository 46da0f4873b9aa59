/* What a follower tells the server of itself: its lease (docs/PROTOCOL.md, "Replicas"), renewed
 * every third of its length and at each change by a thread of its own. Following never waits for
 * it: a report that fails is tried again later. */
#ifndef CLIENT_FOLLOW_LEASE_H
#define CLIENT_FOLLOW_LEASE_H

#include "client/remote/remote_run.h"
#include "wire/replica_message.h"

struct lease;

struct lease_params { /* borrowed until lease_stop */
	const struct remote_options *remote;
	const struct run_name *run;
	const char *id;
	const char *tensors; /* what part is held, in words; NULL: all */
	const struct output *output;
};

struct lease *lease_start(const struct lease_params *params);
/* Sends what has not been sent yet, if the server answers at once, and ends. `signs_off`: the
 * worker ends in order, and the server forgets it; else it is shown until its lease runs out. NULL
 * is fine. */
void lease_stop(struct lease *lease, bool signs_off);

/* What is to be told from now on; copied. */
struct lease_facts {
	enum replica_state state;
	bool has_step; /* what is held */
	uint64_t step;
	struct digest128 digest;
	bool has_wanted; /* what it is on its way to */
	uint64_t wanted;
	const char *error; /* with REPLICA_ERROR; NULL otherwise */
};
void lease_say(struct lease *lease, const struct lease_facts *facts);

/* The server has let this worker in: from now on it is told, once, when a report is not taken. What
 * keeps the worker out altogether is told by whoever meets it. NULL is fine. */
void lease_let_in(struct lease *lease);

/* The id of a worker that was given none: the host's name and a hash of the folder's path. Heap,
 * the caller's. */
char *lease_default_id(const char *folder);

#endif
