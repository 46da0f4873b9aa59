/* Takes a worker's weights from step to step: what `deltabucket follow` (follower.h) and the
 * library (next_step.h) have in common. A round asks the server once for a path from the held
 * step, downloads it, makes the step, proves it and swaps to it. When to start the next round, and
 * what to do after a failed one, is the caller's choice. The weights live in a folder
 * (follow_folder.h), or in memory, where deltas change them in place (memory_model.h). One thread
 * at a time; lease and prefetch are threads of their own. */
#ifndef CLIENT_FOLLOW_STEPPER_H
#define CLIENT_FOLLOW_STEPPER_H

#include "client/follow/follow_report.h"
#include "client/follow/memory_model.h"
#include "client/follow/prefetch.h"
#include "client/transfer/session.h"

struct stepper_params { /* borrowed until stepper_close */
	const char *run;
	const char *into;            /* the folder; NULL: in memory */
	const struct subset *subset; /* NULL: all tensors */
	const char *replica;         /* id in the fleet; NULL: made from host and folder */
	/* of lease and prefetch, which outlive the sessions of single calls */
	const struct remote_options *remote;
	const struct output *output; /* for notes of the lease; NULL: none */
	/* where weights in memory may lie, as memory_model_new has it */
	const char *const *parents;
	unsigned threads;
	uint64_t poll_s; /* length of a long poll */
	/* above 0: how long stepper_close waits for an answer of a server that reports go to */
	int64_t goodbye_ms;
	bool asks_once;   /* questions are not tried again; only downloads are */
	bool is_volatile; /* weights are not synced */
	/* The steps after one are downloaded while it is made and used. Not in memory: there the
	 * downloads would take the memory that the weights leave free. */
	bool prefetches;
	/* The deltas that led to the held step stay on disk until the next round that moves. */
	bool keeps_deltas;
	/* It is kept, too, what they changed in memory. In a folder the step before is there. */
	bool keeps_changes;
};

struct stepper {
	const struct stepper_params *params;
	struct session *session; /* of the call in progress; NULL between two */
	struct run_name run;
	struct file_ops files; /* writes weights and downloads; state and sidecars are synced */
	struct follow_folder folder;
	struct memory_model *memory; /* NULL: the weights stay in the folder */
	struct remote *remote;       /* of this session */
	struct remote_options ask;   /* of questions in this session */
	struct arena *arena;         /* holds the answers of one round */
	struct follow_report report;
	char *work;                /* folder for downloads */
	char *id;                  /* of this worker in the fleet */
	struct prefetch *prefetch; /* NULL: not running */
	bool from_anchor;          /* the next round ignores the step that is held */
	/* an apply in memory failed halfway, or the weights could not be mapped: nothing is held,
	 * and they are not gone yet */
	bool is_spoiled;
	bool waiting_told; /* that the step is not published yet */
	bool lost_told;    /* that the server is away */
	bool may_pass;     /* the last failure was a question that the server may answer later */
	bool has_newest;
	uint64_t newest; /* the newest step that the server has named */
	char *base; /* the generation's folder that the kept deltas were applied to; NULL: none */
	char **deltas; /* paths of the kept deltas, in order */
	size_t delta_count;
};

/* Opens the folder and repairs it; sends nothing. Fails as follow_folder_open does. The session is
 * that of the first call. After a failure stepper_close is still due. */
int stepper_open(struct stepper *stepper, const struct stepper_params *params,
	struct session *session, struct error *err);
/* Proves what the folder holds, because its files may have changed on disk meanwhile. What is
 * damaged is not used as a base, and that is told. -1 with busy when the word to stop came.
 * *out_whole: a step is held, and it is whole. */
int stepper_prove(struct stepper *stepper, bool *out_whole, struct error *err);
/* Reports this worker to the server from now on. */
void stepper_join(struct stepper *stepper);
/* The session of the calls that follow, until stepper_leave. */
int stepper_enter(struct stepper *stepper, struct session *session, struct error *err);
void stepper_leave(struct stepper *stepper);
/* With `signs_off` the server forgets this worker. With `abandons` what the open has made goes if
 * nothing came into it. A zeroed stepper is fine. */
void stepper_close(struct stepper *stepper, bool signs_off, bool abandons);

/* Makes the folder again if somebody removed it. Then nothing is held. */
int stepper_look_after(struct stepper *stepper, struct error *err);

struct stepper_round {
	bool has_wanted; /* otherwise the newest step is wanted */
	uint64_t wanted;
	uint64_t fold_wait_s; /* how long to wait for a fold that would save much */
	/* Answer: */
	bool moved; /* another step is current now; it has these facts: */
	struct catch_up_result fetched;
	/* The path began with an anchor, or its deltas are not kept: they were too many or brought
	 * other headers. */
	bool came_whole;
	int64_t created_ms;
};
/* Asks for a path once and, if there is one, advances. On success the wanted step is held. The
 * generations before it stay until follow_folder_trim; in memory they go at once. */
int stepper_round(struct stepper *stepper, struct stepper_round *round, struct error *err);
/* Waits up to `wait_s`, at most 60, for something newer than the held step. 1 when there is, 0 when
 * there was none in time. */
int stepper_wait(struct stepper *stepper, uint64_t wait_s, struct error *err);
/* When the held step was published, in ms since 1970; 0 when the server does not say it. */
int64_t stepper_created(struct stepper *stepper);
void stepper_stop_prefetch(struct stepper *stepper);

/* The step, the run or the bucket may still be published. */
bool stepper_is_unpublished(const struct error *failure);
/* Retention removed something while it was fetched: the next path avoids it. */
bool stepper_is_lost(const struct error *failure);
/* The server is away or overloaded. */
bool stepper_is_away(const struct stepper *stepper, const struct error *failure);
/* True when the round failed on damage that an anchor may cure, and none has been tried. The next
 * round then begins with an anchor. */
bool stepper_turn_to_anchor(struct stepper *stepper, const struct error *failure);
/* Says that following goes on after this failure, once for each time it begins. */
void stepper_tell_once(struct stepper *stepper, const struct error *failure);
void stepper_forget_told(struct stepper *stepper); /* after a round that succeeded */

#endif
