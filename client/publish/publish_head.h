/* The publisher's place in the run: the epoch that it writes under, and a baseline that equals the
 * run's head. */
#ifndef CLIENT_PUBLISH_PUBLISH_HEAD_H
#define CLIENT_PUBLISH_PUBLISH_HEAD_H

#include "client/publish/publisher.h"

/* Makes the committed step equal to the run's head; when the run has no head there is no committed
 * step either. A pending step that the server already has becomes committed. A run that does not
 * exist is opened. A run that exists, and that this publisher enters, stays with its writer until
 * publish_head_open. When the head failed its proof or cannot be fetched whole, the next step must
 * be an anchor: publisher->goes_whole is set.
 *
 * stale_epoch when run_claim.h does not allow entering, or another writer has opened the run since;
 * head_moved when the head is not ours, or --step names another step. Trying again helps with
 * neither. */
int publish_head_settle(struct publisher *publisher, struct error *err);

/* Opens the run if this publisher enters it, which shuts out its writer. This is the last act
 * before anything is sent, so that an attempt that fails here stops no other writer. 1 when the
 * head has moved since publish_head_settle: the caller must settle again, and from then on the head
 * cannot move. */
int publish_head_open(struct publisher *publisher, struct error *err);

/* Fetches the head from the server in place of a baseline on disk that is damaged, as
 * publish_head_settle does. Drops the pending step. There must be a committed step. */
int publish_head_refetch(struct publisher *publisher, struct error *err);

#endif
