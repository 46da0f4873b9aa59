/* `deltabucket publish`: one checkpoint becomes the run's next step. The parts: publish_head
 * settles who writes and what the baseline is, publish_forms makes and sends the step's objects,
 * publish_state remembers. Any kill leaves a state from which the same command goes on; the
 * baseline moves only after the server has said yes. */
#ifndef CLIENT_PUBLISH_PUBLISHER_H
#define CLIENT_PUBLISH_PUBLISHER_H

#include "client/local/snapshot.h"
#include "client/publish/anchor_policy.h"
#include "client/publish/publish_source.h"
#include "client/publish/publish_state.h"
#include "client/remote/remote_run.h"
#include "client/transfer/session.h"
#include "weights/delta/delta.h"

struct publish_order {
	const char *checkpoint; /* file or folder */
	/* patterns of files that are published whatever they are (publish_choice.h) */
	const char *const *include;
	size_t include_count;
	/* of a folder that is watched: no part of the checkpoint; NULL: none */
	const char *marker;
	const char *state_folder; /* NULL: the default one */
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
	bool already;    /* it had been published before this call */
	bool anchor_due; /* the server wants an anchor with the step after this one */
	uint64_t checkpoint_bytes;
	uint64_t delta_bytes;     /* 0: no delta */
	uint64_t anchor_bytes;    /* 0: no anchor */
	struct delta_stats stats; /* of the delta; zero when an earlier call made it */
	int64_t diff_ms;
	int64_t upload_ms;
};

/* What the parts share; made by publisher_run. */
struct publisher {
	struct session *session;
	const struct publish_order *order;
	struct run_name run;
	struct remote *remote;
	struct publish_state state;
	struct publish_source source; /* of what is being published */
	bool enters;                  /* this call makes the state folder the run's writer */
	bool has_opened;              /* and it has done so */
	/* nothing can be built upon the committed step: the next one has no delta */
	bool goes_whole;
	bool used_copy;           /* the delta was made against what the state folder has */
	struct arena *arena;      /* of one answer at a time */
	struct arena *head_arena; /* of the next two */
	bool has_head;
	struct step_message head; /* as the server has it */
	bool anchor_due;          /* the server wants an anchor with the next step */
	bool adopted;             /* the pending step turned out to be published */
	struct publish_outcome outcome;
};

/* Whether publisher_run would be let in, and with the baseline fetched that it would need, without
 * a checkpoint (the order's is not looked at) and without taking the run over. */
int publisher_check(struct session *session, const char *run, const struct publish_order *order,
	struct error *err);
int publisher_run(struct session *session, const char *run, const struct publish_order *order,
	struct publish_outcome *out_outcome, struct error *err);

#endif
