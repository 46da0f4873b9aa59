#include "tests/unit/storage/hold_fixture.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/helpers.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/unit.h"

enum { HELPERS = 4 };

struct committer_hold {
	struct change change; /* first */
	pthread_mutex_t gate; /* the test has it while the committer must stand still */
	struct settled *reached;
	struct settled *ended;
};

static int stand_still(struct change *change, struct db *db, struct error *err)
{
	struct committer_hold *const hold = (struct committer_hold *)change;
	(void)db;
	(void)err;
	settled_done(hold->reached);
	pthread_mutex_lock(&hold->gate);
	pthread_mutex_unlock(&hold->gate);
	return 0;
}

static void hold_done(struct change *change)
{
	settled_done(((struct committer_hold *)change)->ended);
}

struct committer_hold *committer_hold_new(struct store *store)
{
	struct committer_hold *const hold = memory_new(sizeof *hold);
	hold->change = (struct change){.apply = stand_still, .done = hold_done};
	hold->reached = settled_new();
	hold->ended = settled_new();
	pthread_mutex_init(&hold->gate, NULL);
	pthread_mutex_lock(&hold->gate);
	committer_submit(store_committer(store), &hold->change);
	settled_wait(hold->reached);
	return hold;
}

void committer_hold_end(struct committer_hold *hold)
{
	pthread_mutex_unlock(&hold->gate);
	settled_wait(hold->ended);
	pthread_mutex_destroy(&hold->gate);
	free(hold);
}

struct pass {
	struct helper_job job; /* first */
	struct helper_lane lane;
	pthread_barrier_t *all;
};

static void meet(struct helper_job *job)
{
	pthread_barrier_wait(((struct pass *)job)->all);
}

/* Jobs begin in order, so when each helper is here, no earlier job runs. */
void helpers_pass(struct store *store)
{
	struct pass passes[HELPERS] = {{.all = NULL}};
	pthread_barrier_t all;
	pthread_barrier_init(&all, NULL, HELPERS + 1);
	for (size_t i = 0; i < HELPERS; i++) {
		passes[i].job.run = meet;
		passes[i].all = &all;
		helpers_submit(store_helpers(store), &passes[i].lane, &passes[i].job);
	}
	pthread_barrier_wait(&all);
	pthread_barrier_destroy(&all);
}

struct lost_batch {
	struct change change; /* first */
	struct settled *ended;
};

static int lose(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	db_rollback(db);
	return error_set(err, ERROR_IO, "the disk broke");
}

static void lost_done(struct change *change)
{
	settled_done(((struct lost_batch *)change)->ended);
}

struct lost_batch *lost_batch_submit(struct store *store)
{
	struct lost_batch *const lost = memory_new(sizeof *lost);
	lost->change = (struct change){.apply = lose, .done = lost_done};
	lost->ended = settled_new();
	committer_submit(store_committer(store), &lost->change);
	return lost;
}

void lost_batch_wait(struct lost_batch *lost)
{
	settled_wait(lost->ended);
	ck_assert(lost->change.failed);
	free(lost);
}
