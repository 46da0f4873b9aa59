/* `deltabucket publish`: makes one checkpoint the run's next step. publish_head settles who writes
 * and what the baseline is, publish_forms makes and sends the step's objects, and publish_state
 * remembers. A kill at any moment leaves a state from which the same command continues. The
 * baseline advances only after the server has said that the step is published. */
#ifndef CLIENT_PUBLISH_PUBLISHER_H
#define CLIENT_PUBLISH_PUBLISHER_H

#include "client/local/kept_mapping.h"
#include "client/local/snapshot.h"
#include "client/publish/anchor_policy.h"
#include "client/publish/label_number.h"
#include "client/publish/publish_source.h"
#include "client/publish/publish_state.h"
#include "client/remote/remote_run.h"
#include "client/transfer/session.h"
#include "weights/delta/delta.h"
#include "weights/model/memory_checkpoint.h"

struct publish_order {
	const char *checkpoint; /* file or folder; NULL: `memory` has it */
	const struct memory_parts *memory;
	struct kept_mapping *mapping; /* for state folders in memory; NULL: none */
	/* patterns for files that are published in any case (publish_choice.h) */
	const char *const *include;
	size_t include_count;
	/* the marker of a watched folder, which is not part of the checkpoint; NULL: none */
	const char *marker;
	const char *state_folder; /* NULL: the default one */
	const int *state_lock;    /* from publisher_lock; NULL: none */
	/* Labels must end in rising numbers. The publisher sets it from the run's steps when it has
	 * the right to add one. NULL: any label will do. */
	struct label_number *newest;
	bool has_step;
	uint64_t step;
	const char *label;    /* NULL: none */
	struct span metadata; /* JSON object of strings; empty: none */
	struct anchor_policy anchor;
	enum delta_format format;
	bool take_over;
	bool create_bucket;
	bool has_keep_steps;
	uint64_t keep_steps;
	unsigned threads;
};

struct publish_outcome {
	uint64_t step;
	struct digest128 digest;
	bool already;    /* the step had been published before this call */
	bool anchor_due; /* the server wants an anchor with the step after this one */
	struct rollback_message rollback; /* the fleet is held, so it does not take the step */
	uint64_t checkpoint_bytes;
	uint64_t delta_bytes;     /* 0: no delta */
	uint64_t anchor_bytes;    /* 0: no anchor */
	struct delta_stats stats; /* of the delta; zero when an earlier call made it */
	int64_t diff_ms;
	int64_t upload_ms;
	uint64_t epoch; /* of a rank, when the call ended, also in a failure; 0: none */
};

/* State that the parts share; made by publisher_run and publisher_check. One thread. */
struct publisher {
	struct session *session;
	const struct publish_order *order;
	struct run_name run;
	struct remote *remote;
	struct publish_state state;
	struct publish_source source; /* the checkpoint that is being published */
	bool enters;                  /* this call makes the state folder the run's writer */
	bool has_opened;              /* it has done so */
	/* no delta can be made against the committed step: the next step is an anchor */
	bool goes_whole;
	bool used_copy;           /* the delta was made against the base in the state folder */
	struct arena *arena;      /* holds one answer at a time */
	struct arena *head_arena; /* holds `head` */
	bool has_head;
	struct step_message head; /* the run's head, as the server describes it */
	bool anchor_due;          /* the server wants an anchor with the next step */
	int64_t began_ms;         /* monotonic, when publisher_run began */
	bool adopted;             /* the pending step turned out to be published */
	struct publish_outcome outcome;
};

/* Keeps other publishers out of the order's state folder, which is made if needed. `held` is an
 * earlier lock of this process, -1: none. Gives `held` when that still locks the folder, otherwise
 * a new lock; -1 with busy when another publisher works there. Each lock is left once, with
 * folder_lock_leave. */
int publisher_lock(struct session *session, const char *run, const struct publish_order *order,
	int held, struct error *err);
/* Fails if publisher_run would not be allowed to write. Fetches the baseline that publisher_run
 * would need, but does not take the run over, and does not look at the order's checkpoint. */
int publisher_check(struct session *session, const char *run, const struct publish_order *order,
	struct error *err);
/* Publishes the order's checkpoint. *out_outcome is always set. head_moved and stale_epoch as
 * publish_head.h says; step_differs when --step names a step of other content; precondition when
 * order->newest is as high as the label's number; schema_mismatch when the tensors are not those of
 * the run's first step. */
int publisher_run(struct session *session, const char *run, const struct publish_order *order,
	struct publish_outcome *out_outcome, struct error *err);
/* What a publish that began then (clock_monotonic_ms) has taken so far, as its manifest may say. */
uint64_t publisher_ms_since(int64_t began_ms);

#endif
