/* A follower's lease on the server (docs/protocol/steps.md, "PutReplica"). A thread of its own
 * renews it as often as the server asks for, and tells what is new (lease_news.h). Following never
 * waits for it: a report that fails is tried again later. */
#ifndef CLIENT_FOLLOW_LEASE_H
#define CLIENT_FOLLOW_LEASE_H

#include "client/local/proven_files.h"
#include "client/remote/remote_run.h"
#include "wire/replica_message.h"

struct lease;

struct lease_params { /* borrowed until lease_stop */
	const struct remote_options *remote;
	const struct run_name *run;
	const char *id;
	const char *tensors;         /* the part of the model that is held, as text; NULL: all */
	const struct output *output; /* NULL: failures are not noted */
	int64_t goodbye_ms;          /* how long lease_stop waits for an answer of the server */
};

/* NULL when no connection can be set up. */
struct lease *lease_start(const struct lease_params *params);
/* Sends what has not been sent yet, and ends the thread. With `signs_off` the server forgets this
 * worker; without, the server shows it until its lease runs out. A server that leaves a request
 * unanswered for goodbye_ms, also one that was sent before, is asked no more. NULL is fine. */
void lease_stop(struct lease *lease, bool signs_off);

/* The content of a report. */
struct lease_facts {
	enum replica_state state;
	bool has_step; /* a step is held: */
	uint64_t step;
	struct digest128 digest;
	/* Its files, in this folder: the server may ask for bytes of them (chunk_gift.h). NULL:
	 * it gets none. */
	const struct proven_files *files;
	const char *folder;
	bool has_wanted; /* a step is being worked on: */
	uint64_t wanted;
	const char *error; /* with REPLICA_ERROR; NULL otherwise */
	bool has_pause;    /* the engine was paused to take the held step, for so long: */
	uint64_t pause_ms;
};
/* Reports these facts from now on; they are copied. NULL is fine. */
void lease_say(struct lease *lease, const struct lease_facts *facts);

/* Notes that the server lets this worker follow. From then on a report that the server refuses is
 * noted on stderr, once. Before, the follower itself reports what keeps it out. NULL is fine. */
void lease_let_in(struct lease *lease);

/* An id for a worker that was given none: the host's name and a hash of the folder's path. Heap,
 * the caller's. */
char *lease_default_id(const char *folder);

#endif
