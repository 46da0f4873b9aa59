/* A thread that sends one event at a time and settles it. An event that the receiver takes (any
 * 2xx) is removed. Otherwise it is due again after a pause that grows, or is given up. A receiver
 * occupies the sender for 30 s at most, however it answers. Internal to
 * storage/step_jobs/webhook_worker.h, its only user. */
#ifndef STORAGE_STEP_JOBS_WEBHOOK_SENDER_H
#define STORAGE_STEP_JOBS_WEBHOOK_SENDER_H

#include "storage/core/store.h"
#include "storage/run_tables/webhook_row.h"

struct webhook_sender;

struct webhook_sender_plan {
	struct store *store;
	/* called when an event is settled and the sender is free; on its thread, without a lock */
	void (*freed)(void *owner);
	void *owner;
};

struct webhook_sender *webhook_sender_start(const struct webhook_sender_plan *plan);
/* *out_run: the run whose event it has. When it is free, run is 0, and its last event is settled in
 * the catalog. */
bool webhook_sender_is_free(struct webhook_sender *sender, struct webhook_run *out_run);
/* Gives an event to a free sender. The arena, which has the event's body, becomes the sender's. */
void webhook_sender_give(struct webhook_sender *sender, const struct webhook_run *run,
	const struct webhook_event *event, struct arena *arena);
/* Breaks off a running request, unsettled, within about a second. Returns at once. */
void webhook_sender_quiesce(struct webhook_sender *sender);
/* Quiesces, waits for the end, and frees it. */
void webhook_sender_stop(struct webhook_sender *sender);

#endif
