/* A thread that sends one event at a time and settles it: taken (any 2xx) it is gone, else it is
 * due again after a pause that grows, or given up. A receiver holds it for 30 s at most, however it
 * answers. Internal to storage/step_jobs/webhook_worker.h, which gives it events and alone starts
 * and stops it. */
#ifndef STORAGE_STEP_JOBS_WEBHOOK_SENDER_H
#define STORAGE_STEP_JOBS_WEBHOOK_SENDER_H

#include "storage/core/store.h"
#include "storage/run_tables/webhook_row.h"

struct webhook_sender;

struct webhook_sender_plan {
	struct store *store;
	/* an event is settled, and the sender is free: on its thread, no lock held */
	void (*freed)(void *owner);
	void *owner;
};

struct webhook_sender *webhook_sender_start(const struct webhook_sender_plan *plan);
/* *out_held: whose event it has; run 0 when it is free. What it had is settled in the catalog by
 * then. */
bool webhook_sender_is_free(struct webhook_sender *sender, struct webhook_run *out_held);
/* To a free one. The arena, in which the event's body lies, becomes the sender's. */
void webhook_sender_give(struct webhook_sender *sender, const struct webhook_run *run,
	const struct webhook_event *event, struct arena *arena);
/* A request that runs is broken off, unsettled, within about a second. Returns at once. */
void webhook_sender_quiesce(struct webhook_sender *sender);
/* quiesces, waits for the end, and frees it */
void webhook_sender_stop(struct webhook_sender *sender);

#endif
