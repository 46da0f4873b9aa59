/* Each pack takes two changes, since only the committer may touch the list of shared packs: one
 * takes a closed pack, the other seals it and drops its rows. The upload between them is this
 * thread's alone. When it fails, the pack is given back and the pause grows. */
#include "storage/upkeep/pack_shipper.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/core/committer.h"
#include "storage/core/pack_staged_row.h"
#include "storage/packs/pack_store.h"

enum { LOOK_MS = 1000, OPEN_MS = 10 * 1000, PAUSE_MAX_MS = 30 * 1000 };

struct pack_shipper {
	struct store *store;
	int64_t open_ms;
	int64_t pause_ms; /* after the last failure; 0: none */
	struct worker_thread thread;
};

struct take {
	struct change change; /* first */
	struct pack_shipper *shipper;
	struct shared_pack *pack; /* the result; NULL: none */
};

struct give {
	struct change change; /* first */
	struct shared_pack *pack;
	struct pack_id id;
	bool is_stored;
};

static int64_t pack_shipper_round(void *owner);
static int ship_all(struct pack_shipper *shipper, struct error *err);
static int take(struct pack_shipper *shipper, struct shared_pack **out, struct error *err);
static int pack_shipper_place_take(struct change *change, struct error *err);
static int pack_shipper_apply_nothing(struct change *change, struct db *db, struct error *err);
static int ship(struct pack_shipper *shipper, struct shared_pack *pack, struct error *err);
static int pack_shipper_place_give(struct change *change, struct error *err);
static int pack_shipper_apply_give(struct change *change, struct db *db, struct error *err);
static int64_t pause_after(struct pack_shipper *shipper);

struct pack_shipper *pack_shipper_start(struct store *store, int64_t open_ms)
{
	static const struct worker_thread_plan plan = {
		.name = "pack-shipper", .first_ms = 0, .round = pack_shipper_round};
	if (!pack_store_is_far(store_packs(store)))
		return NULL;
	struct pack_shipper *const shipper = memory_new(sizeof(*shipper));
	shipper->store = store;
	shipper->open_ms = open_ms > 0 ? open_ms : OPEN_MS;
	worker_thread_start(&shipper->thread, &plan, shipper);
	return shipper;
}

void pack_shipper_stop(struct pack_shipper *shipper)
{
	if (shipper == NULL)
		return;
	worker_thread_stop(&shipper->thread);
	worker_thread_release(&shipper->thread);
	free(shipper);
}

static int64_t pack_shipper_round(void *owner)
{
	struct pack_shipper *const shipper = owner;
	struct error err = {0};
	if (ship_all(shipper, &err) == 0) {
		shipper->pause_ms = 0;
		return shipper->open_ms < LOOK_MS ? shipper->open_ms : LOOK_MS;
	}
	log_failure(store_log(shipper->store), LOG_WARNING, NULL, "pack_not_stored", &err);
	return pause_after(shipper);
}

static int ship_all(struct pack_shipper *shipper, struct error *err)
{
	struct pack_store *const packs = store_packs(shipper->store);
	while (pack_store_shared_waits(packs) && !worker_thread_is_stopping(&shipper->thread)) {
		struct shared_pack *pack;
		if (take(shipper, &pack, err) != 0)
			return -1;
		if (pack == NULL)
			return 0;
		if (ship(shipper, pack, err) != 0)
			return -1;
	}
	return 0;
}

/* The change writes nothing. So when its batch fails, what it took is taken all the same. */
static int take(struct pack_shipper *shipper, struct shared_pack **out, struct error *err)
{
	struct take taking = {
		.change = {.place = pack_shipper_place_take, .apply = pack_shipper_apply_nothing},
		.shipper = shipper};
	const int result = committer_run(store_committer(shipper->store), &taking.change, err);
	*out = taking.pack;
	return taking.pack != NULL ? 0 : result;
}

static int pack_shipper_place_take(struct change *change, struct error *err)
{
	struct take *const taking = (struct take *)change;
	struct store *const store = taking->shipper->store;
	(void)err;
	taking->pack = pack_store_shared_take(
		store_packs(store), store_now_ms(store) - taking->shipper->open_ms);
	return 0;
}

static int pack_shipper_apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

static int ship(struct pack_shipper *shipper, struct shared_pack *pack, struct error *err)
{
	struct error ignored = {0};
	struct give giving = {
		.change = {.place = pack_shipper_place_give, .apply = pack_shipper_apply_give},
		.pack = pack,
		.id = *pack_store_shared_id(pack),
		.is_stored = pack_store_shared_store(pack, err) == 0};
	const int result = committer_run(
		store_committer(shipper->store), &giving.change, giving.is_stored ? err : &ignored);
	return giving.is_stored ? result : -1;
}

static int pack_shipper_place_give(struct change *change, struct error *err)
{
	const struct give *const giving = (struct give *)change;
	(void)err;
	pack_store_shared_give(giving->pack, giving->is_stored);
	return 0;
}

static int pack_shipper_apply_give(struct change *change, struct db *db, struct error *err)
{
	const struct give *const giving = (struct give *)change;
	return giving->is_stored ? pack_staged_row_drop(db, &giving->id, err) : 0;
}

static int64_t pause_after(struct pack_shipper *shipper)
{
	shipper->pause_ms = shipper->pause_ms == 0 ? LOOK_MS : 2 * shipper->pause_ms;
	if (shipper->pause_ms > PAUSE_MAX_MS)
		shipper->pause_ms = PAUSE_MAX_MS;
	return shipper->pause_ms;
}
