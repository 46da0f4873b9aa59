/* Puts the work of a test and of the store's own threads in order, without waiting for a time to
 * pass. */
#ifndef TESTS_UNIT_STORAGE_HOLD_FIXTURE_H
#define TESTS_UNIT_STORAGE_HOLD_FIXTURE_H

#include "storage/core/store.h"

/* Keeps the committer in a batch of its own until committer_hold_end. Changes that are queued
 * meanwhile come into the next batch, in their order. */
struct committer_hold;
struct committer_hold *committer_hold_new(struct store *store); /* it stands still */
void committer_hold_end(struct committer_hold *hold);           /* frees it */

/* Returns when all jobs that the helpers had before have run. The store must have the default
 * number of helpers (store_open.h). */
void helpers_pass(struct store *store);

/* Queues a change that loses the transaction of its whole batch, as a broken disk does. */
struct lost_batch;
struct lost_batch *lost_batch_submit(struct store *store);
void lost_batch_wait(struct lost_batch *lost); /* frees it */

#endif
