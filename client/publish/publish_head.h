/* The publisher's place in the run: the epoch it writes under, and a baseline that is the run's
 * head. */
#ifndef CLIENT_PUBLISH_PUBLISH_HEAD_H
#define CLIENT_PUBLISH_PUBLISH_HEAD_H

#include "client/publish/publisher.h"

/* Afterwards the committed step is the run's head (or neither exists); a pending step that the
 * server has becomes committed. A run that is not there is opened. One that is there, and that this
 * publisher enters, is left to whoever writes it until publish_head_open. A head that failed its
 * proof, or that cannot be had whole, has to be followed by a full copy: publisher->goes_whole.
 * stale_epoch when run_claim.h does not allow to enter, or another writer has opened the run since;
 * head_moved when the head is not ours, or --step names another step: none is cured by trying
 * again. */
int publish_head_settle(struct publisher *publisher, struct error *err);

/* Opens the run when this publisher enters it, which fences its writer off: the last thing before
 * something is sent, so that what is refused on this side ends nobody. 1 when the head has moved
 * since publish_head_settle, which is then to be called again; it moves no more. */
int publish_head_open(struct publisher *publisher, struct error *err);

/* The baseline on disk is damaged: brings the head from the server in its place, as
 * publish_head_settle does. Drops the pending step. */
int publish_head_refetch(struct publisher *publisher, struct error *err);

#endif
