/* The steps face of one run, "b/r", and the objects of its bucket, in memory: enough of a server
 * for publishers and followers, and told to fail where a real one would not. */
#ifndef TESTS_UNIT_CLIENT_RUN_SERVER_H
#define TESTS_UNIT_CLIENT_RUN_SERVER_H

#include <stdatomic.h>

#include "tests/unit/client/web_fixture.h"
#include "wire/step_message.h"

enum { RUN_SERVER_STEPS = 40, RUN_SERVER_OBJECTS = 128 };

struct run_server {
	struct web *web;
	struct arena *arena;
	bool has_bucket;
	uint64_t epoch; /* 0: there is no run */
	uint64_t keep_steps;
	struct step_message steps[RUN_SERVER_STEPS];
	size_t count;
	struct {
		char *target;
		struct buffer bytes;
	} objects[RUN_SERVER_OBJECTS];
	size_t object_count;
	atomic_int refusals; /* so many publishes are answered 507, or 409 with `refusal` */
	const char *refusal; /* code of these answers; NULL: "no_space" */
	atomic_int cuts;     /* so many publishes are taken, and the answer is lost */
	atomic_int full;     /* so many weights of anchors are answered 507 */
	atomic_int flips;    /* so many answers with deltas have a flipped bit */
	atomic_int lost;     /* so many answers with deltas are "no_key": they went meanwhile */
	atomic_int fetches;  /* counts the objects that were given out */
	bool is_held;        /* a rollback holds the fleet at: */
	uint64_t held;
	atomic_int late; /* so many paths are answered as before the first step */
	bool anchor_due; /* as answers to a publish say, and the run */
	/* Of ranks: the part that comes makes the step, with this digest of all its tensors. */
	struct digest128 whole;
	atomic_int waits; /* so many parts wait for those of other ranks, which never come */
	struct step_message waiting; /* with the last of these */
	char latest[64];   /* the last question about the newest step, from its query on */
	bool is_fenced;    /* another writer comes while a part waits */
	bool is_of_others; /* the steps that parts make have other files than those of the part */
};
void run_server_start(struct run_server *server); /* with the bucket */
void run_server_stop(struct run_server *server);
/* What is waiting becomes a step: the other ranks have put theirs. */
void run_server_complete(struct run_server *server);
/* The step as it was published; it must be there. */
const struct step_message *run_server_step(const struct run_server *server, uint64_t step);

#endif
