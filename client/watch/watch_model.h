/* What `deltabucket watch` knows of a run and its workers. It takes what the server answers and
 * tells what changed as events. The caller guards it. */
#ifndef CLIENT_WATCH_WATCH_MODEL_H
#define CLIENT_WATCH_WATCH_MODEL_H

#include "wire/replica_message.h"
#include "wire/step_message.h"

enum {
	WATCH_TEXT_BYTES = 200,     /* of errors and labels; longer ones are cut */
	WATCH_WORKERS_MAX = 100000, /* those behind are counted and not listed */
	WATCH_LAGS_MAX = 60,        /* kept for the picture */
	WATCH_STEPS_MAX = 16,       /* times of the last steps */
};

struct watch_worker {
	char id[REPLICA_ID_MAX_BYTES + 1];
	enum replica_state state;
	bool expired;
	bool has_step;
	uint64_t step;
	bool has_lag;
	uint64_t behind_steps, behind_s;
	bool has_pause;
	uint64_t pause_ms;
	int64_t updated_ms;
	char error[WATCH_TEXT_BYTES];
};
void watch_worker_take(struct watch_worker *worker, const struct replica_message *replica);
/* Keeps what fits of the text, ended by a NUL. */
void watch_text_keep(struct span text, char *out, size_t capacity);

/* The run, and the manifest of its head. */
struct watch_run {
	uint64_t epoch;
	uint64_t steps, bytes; /* kept */
	bool anchor_due;
	struct rollback_message rollback;
	bool has_head;
	uint64_t head;
	bool has_step; /* the manifest could be had: */
	int64_t created_ms;
	enum step_proof verified;
	char label[WATCH_TEXT_BYTES];
	char verify_error[WATCH_TEXT_BYTES];
	uint64_t full_bytes;
	bool has_delta;
	uint64_t delta_bytes;
};

struct watch_fleet {
	bool is_denied; /* the token may not see the workers */
	struct fleet_counts counts;
	bool is_listed; /* the workers are there: all, but those beyond WATCH_WORKERS_MAX */
	struct watch_worker *workers; /* in byte order of their ids */
	size_t count;
};
void watch_fleet_release(struct watch_fleet *fleet); /* a zeroed one is fine */

enum watch_kind {
	WATCH_PUBLISHED,
	WATCH_PROVEN,
	WATCH_PROOF_FAILED,
	WATCH_ROLLED_BACK,
	WATCH_FORWARDED,
	WATCH_WRITER, /* another writer has opened the run */
	WATCH_WORKER_FAILED,
	WATCH_WORKER_EXPIRED, /* its lease has ended */
	WATCH_WORKER_BACK,    /* from one of the two */
	WATCH_FLEET,          /* its counts are others */
	WATCH_KIND_COUNT
};
const char *watch_kind_name(enum watch_kind kind); /* "published", for example */

struct watch_event {
	enum watch_kind kind;
	int64_t ms; /* wall clock; of a step, when it was published */
	bool has_step;
	uint64_t step;
	const struct watch_worker *worker; /* NULL: it is about the run */
};
typedef void watch_tell_fn(void *owner, const struct watch_event *event);

struct watch_lag {
	bool is_known;
	uint64_t steps;
	bool has_seconds;
	uint64_t seconds;
};

struct watch_model {
	bool has_run, has_fleet;
	struct watch_run run;
	struct watch_fleet fleet;
	struct watch_lag lag;          /* of the slowest that holds a step */
	uint64_t lags[WATCH_LAGS_MAX]; /* in steps, one for each change or refresh */
	size_t lag_count;
	struct {
		uint64_t step;
		int64_t created_ms;
	} published[WATCH_STEPS_MAX]; /* rising */
	size_t published_count;
	watch_tell_fn *tell; /* may be NULL */
	void *owner;
};

void watch_model_release(struct watch_model *model);
/* Notes when a step was published, for the pace; in rising order. */
void watch_model_note_step(struct watch_model *model, uint64_t step, int64_t created_ms);
void watch_model_take_run(struct watch_model *model, const struct watch_run *run);
/* Takes the workers over. A fleet that is not listed leaves those of before. */
void watch_model_take_fleet(struct watch_model *model, struct watch_fleet *fleet);
/* The mean time between the last steps; 0 when it is not known. */
int64_t watch_model_pace_ms(const struct watch_model *model);
/* The step that the workers are to hold. */
bool watch_model_target(const struct watch_model *model, uint64_t *out);

#endif
