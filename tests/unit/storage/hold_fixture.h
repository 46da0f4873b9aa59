/* Order between what a test starts and the store's own threads, without waiting for time to
 * pass. */
#ifndef TESTS_UNIT_STORAGE_HOLD_FIXTURE_H
#define TESTS_UNIT_STORAGE_HOLD_FIXTURE_H

#include "storage/core/store.h"

/* The committer stands still in a batch of its own until it is let go: what is queued meanwhile
 * comes to lie in the next one, in its order. */
struct committer_hold;
struct committer_hold *committer_hold_new(struct store *store); /* it stands still */
void committer_hold_end(struct committer_hold *hold);           /* frees it */

/* Returns when all that was given to the helpers before has run. The store has as many of them as
 * store.h says where nothing else is asked for. */
void helpers_pass(struct store *store);

/* Queues a change that loses the transaction of its whole batch, as a disk that breaks does, and
 * gives what to wait for. */
struct lost_batch;
struct lost_batch *lost_batch_submit(struct store *store);
void lost_batch_wait(struct lost_batch *lost); /* frees it */

#endif
