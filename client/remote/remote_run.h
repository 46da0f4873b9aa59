/* Typed calls to the steps face: docs/protocol/steps.md. The content of an answer lies in the
 * given arena. Calls retry as remote_send does. All of them may be repeated safely: opening a run
 * twice only skips an epoch. */
#ifndef CLIENT_REMOTE_REMOTE_RUN_H
#define CLIENT_REMOTE_REMOTE_RUN_H

#include "client/remote/remote.h"
#include "client/remote/run_name.h"
#include "wire/replica_message.h"
#include "wire/step_message.h"

/* An arena of this size holds any one answer. */
enum { REMOTE_RUN_ARENA_BYTES = 64 * 1024 * 1024 };

/* Becomes the run's writer; makes the run if it does not exist. `keep_steps` NULL leaves retention
 * unchanged. */
int remote_run_open(struct remote *remote, const struct run_name *run, const uint64_t *keep_steps,
	struct arena *arena, struct run_message *out, struct error *err);
int remote_run_find(struct remote *remote, const struct run_name *run, struct arena *arena,
	struct run_message *out, struct error *err);
/* Fails with denied when the token may not write to the run, which must exist. Changes nothing. */
int remote_run_may_write(struct remote *remote, const struct run_name *run, struct error *err);
int remote_run_set_keep(
	struct remote *remote, const struct run_name *run, uint64_t keep_steps, struct error *err);
/* Holds the run's fleet at *step; NULL: lets it take the newest again. *out is the run then. */
int remote_run_rollback(struct remote *remote, const struct run_name *run, const uint64_t *step,
	struct arena *arena, struct run_message *out, struct error *err);
struct remote_run_published {
	bool already;                     /* the same step was published before */
	bool anchor_due;                  /* the next step should bring an anchor */
	struct rollback_message rollback; /* the fleet does not take the step */
};
int remote_run_publish(struct remote *remote, const struct run_name *run,
	const struct step_message *step, struct remote_run_published *out, struct error *err);
int remote_run_step(struct remote *remote, const struct run_name *run, uint64_t step,
	struct arena *arena, struct step_message *out, struct error *err);
/* The same, with the digests of the step's tensors. */
int remote_run_step_tensors(struct remote *remote, const struct run_name *run, uint64_t step,
	struct arena *arena, struct step_message *out, struct error *err);

struct remote_run_wait {
	bool has_after;
	uint64_t after;
	uint64_t wait_s; /* at most 60 */
	bool of_head;    /* the newest, whatever a rollback says */
};
/* 1 with the step to serve: the newest, or that of a rollback. 0 when there was none in time, or
 * none for a caller that has `after`. */
int remote_run_latest(struct remote *remote, const struct run_name *run,
	const struct remote_run_wait *wait, struct arena *arena, struct step_message *out,
	struct error *err);

struct remote_run_route {
	bool has_have;
	uint64_t have;
	struct digest128 digest; /* of the step that the caller has */
	bool has_want;           /* false: the step to serve, as remote_run_latest has it */
	uint64_t want;
	uint64_t wait_s; /* the longest wait for a fold that would save much; 0: none */
};
int remote_run_path(struct remote *remote, const struct run_name *run,
	const struct remote_run_route *route, struct arena *arena, struct path_message *out,
	struct error *err);

/* Lists come in pages. When `more` is set, ask again for the entries after the last one. */
struct remote_run_page {
	union {
		struct run_message *runs;
		struct step_message *steps;
	};
	size_t count;
	bool more;
};
int remote_run_list(struct remote *remote, struct span bucket, struct span after,
	struct arena *arena, struct remote_run_page *out, struct error *err);
/* Lists the steps from `from` on, in rising order. */
int remote_run_list_steps(struct remote *remote, const struct run_name *run, uint64_t from,
	struct arena *arena, struct remote_run_page *out, struct error *err);

struct remote_run_replicas {
	size_t limit;      /* at most REPLICA_LIST_MAX */
	struct span after; /* the id that the page follows; empty: the first page */
	/* The answer: */
	struct replica_list_message list;
	struct json_node *answer; /* the list as the server wrote it */
};
/* A page of a run's replicas. Release it in every case. */
int remote_run_list_replicas(struct remote *remote, const struct run_name *run, struct arena *arena,
	struct remote_run_replicas *page, struct error *err);
void remote_run_replicas_release(struct remote_run_replicas *page);

#endif
