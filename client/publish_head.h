/* The publisher's place in the run: the epoch it writes under, and a baseline that is the run's head. */
#ifndef CLIENT_PUBLISH_HEAD_H
#define CLIENT_PUBLISH_HEAD_H

#include "client/publisher.h"

/* Afterwards the state has an epoch, and its committed step is the run's head (or neither exists). Opens the run when the state has no
 * epoch and run_claim.h allows it, or the order says take-over; a pending step that the server has becomes committed. stale_epoch when another writer has opened the
 * run since; head_moved when the head is not ours: neither is cured by trying again. */
int publish_head_settle(struct publisher *publisher, struct error *err);

/* The baseline on disk is damaged: brings the head from the server in its place. Drops the pending step. */
int publish_head_refetch(struct publisher *publisher, struct error *err);

#endif
