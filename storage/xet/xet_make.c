#include "storage/xet/xet_make.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/xet/xet_making.h"

enum { MAKES_AT_ONCE = 3 /* others wait: helpers have clients' uploads to write too */ };

struct xet_make { /* who waits */
	void (*done)(void *owner);
	void *owner;
	struct xet_make *next;
	bool failed;
	struct error error;
};

struct under_way {
	struct xet_making making; /* first */
	struct under_way *next;
	struct xet_make *waiting;
	bool is_running;
	uint64_t bytes; /* reserved */
};

struct xet_makes {
	struct lock lock;
	struct under_way *first; /* guarded by lock, and what follows; in the order of asking */
	unsigned running;
	uint64_t reserved;
	bool quiescing;
};

struct touch {
	struct change change; /* first */
	struct chunk_id file;
	int64_t expires_ms;
};

static struct under_way **link_of(struct xet_makes *makes, int64_t version);
static struct under_way *under_way_new(
	struct store *store, struct xet_makes *makes, int64_t version);
static bool make_goes_on(struct xet_making *making);
static uint64_t make_reserve(struct xet_making *making, uint64_t bytes);
static void make_ended(struct xet_making *making);
static struct under_way *take_next(struct xet_makes *makes);
static bool unlink_waiting(struct under_way *under_way, const struct xet_make *make);
static bool is_half_over(struct store *store, const struct chunk_id *file, int64_t now_ms);
static int make_apply_touch(struct change *change, struct db *db, struct error *err);
static void make_touched(struct change *change);

struct xet_makes *xet_makes_new(void)
{
	struct xet_makes *const makes = memory_new(sizeof(*makes));
	lock_init(&makes->lock, LOCK_XET_MAKES);
	return makes;
}

void xet_makes_quiesce(struct xet_makes *makes)
{
	lock_enter(&makes->lock);
	makes->quiescing = true;
	lock_leave(&makes->lock);
}

void xet_makes_free(struct xet_makes *makes)
{
	if (makes == NULL)
		return;
	ASSERT(makes->first == NULL);
	lock_release(&makes->lock);
	free(makes);
}

struct xet_make *xet_make_start(
	struct store *store, int64_t version, void (*done)(void *owner), void *owner)
{
	struct xet_makes *const makes = store_parts(store)->xet_makes;
	struct xet_make *const make = memory_new(sizeof(*make));
	make->done = done;
	make->owner = owner;
	lock_enter(&makes->lock);
	const bool is_refused = makes->quiescing;
	struct under_way *next = NULL;
	if (!is_refused) {
		struct under_way **const link = link_of(makes, version);
		if (*link == NULL)
			*link = under_way_new(store, makes, version);
		make->next = (*link)->waiting;
		(*link)->waiting = make;
		next = take_next(makes);
	}
	lock_leave(&makes->lock);
	if (next != NULL)
		xet_making_run(&next->making);
	if (is_refused) {
		make->failed = true;
		error_set(&make->error, ERROR_BUSY, "The server is stopping.");
		done(owner);
	}
	return make;
}

void xet_make_give_up(struct store *store, struct xet_make *make)
{
	struct xet_makes *const makes = store_parts(store)->xet_makes;
	struct under_way *unwanted = NULL;
	lock_enter(&makes->lock);
	struct under_way **link = &makes->first;
	while (*link != NULL && !unlink_waiting(*link, make))
		link = &(*link)->next;
	const bool waited = *link != NULL;
	if (waited && (*link)->waiting == NULL && !(*link)->is_running) {
		unwanted = *link;
		*link = unwanted->next;
	}
	lock_leave(&makes->lock);
	free(unwanted);
	if (!waited)
		return;
	make->failed = true;
	error_set(&make->error, ERROR_BUSY, "Nobody waits for the records any more.");
	make->done(make->owner);
}

int xet_make_outcome(const struct xet_make *make, struct error *err)
{
	if (!make->failed)
		return 0;
	*err = make->error;
	return -1;
}

void xet_make_free(struct xet_make *make)
{
	free(make);
}

void xet_make_touch(struct store *store, const struct chunk_id *file)
{
	const int64_t now_ms = store_now_ms(store);
	if (!is_half_over(store, file, now_ms))
		return;
	struct touch *const touch = memory_new(sizeof(*touch));
	*touch = (struct touch){.change = {.apply = make_apply_touch, .done = make_touched},
		.file = *file,
		.expires_ms = now_ms + XET_MADE_MS};
	committer_submit(store_committer(store), &touch->change);
}

static struct under_way **link_of(struct xet_makes *makes, int64_t version)
{
	lock_assert_held(&makes->lock);
	struct under_way **link = &makes->first;
	while (*link != NULL && (*link)->making.sequence != version)
		link = &(*link)->next;
	return link;
}

static struct under_way *under_way_new(
	struct store *store, struct xet_makes *makes, int64_t version)
{
	struct under_way *const under_way = memory_new(sizeof(*under_way));
	under_way->making = (struct xet_making){.store = store,
		.sequence = version,
		.goes_on = make_goes_on,
		.reserve = make_reserve,
		.ended = make_ended,
		.owner = makes};
	return under_way;
}

static bool make_goes_on(struct xet_making *making)
{
	struct xet_makes *const makes = making->owner;
	lock_enter(&makes->lock);
	const bool result = !makes->quiescing;
	lock_leave(&makes->lock);
	return result;
}

static uint64_t make_reserve(struct xet_making *making, uint64_t bytes)
{
	struct xet_makes *const makes = making->owner;
	lock_enter(&makes->lock);
	((struct under_way *)making)->bytes = bytes;
	makes->reserved += bytes;
	const uint64_t reserved = makes->reserved;
	lock_leave(&makes->lock);
	return reserved;
}

static void make_ended(struct xet_making *making)
{
	struct under_way *const under_way = (struct under_way *)making;
	struct xet_makes *const makes = making->owner;
	lock_enter(&makes->lock);
	*link_of(makes, making->sequence) = under_way->next;
	makes->running--;
	makes->reserved -= under_way->bytes;
	struct under_way *const next = take_next(makes);
	lock_leave(&makes->lock);
	if (next != NULL)
		xet_making_run(&next->making);
	for (struct xet_make *make = under_way->waiting, *after; make != NULL; make = after) {
		after = make->next;
		make->failed = making->failed;
		make->error = making->error;
		make->done(make->owner); /* it may be gone */
	}
	xet_making_release(making);
	free(under_way);
}

/* The first that waits for its turn, if there is one. */
static struct under_way *take_next(struct xet_makes *makes)
{
	lock_assert_held(&makes->lock);
	struct under_way *next = makes->running < MAKES_AT_ONCE ? makes->first : NULL;
	while (next != NULL && next->is_running)
		next = next->next;
	if (next != NULL) {
		next->is_running = true;
		makes->running++;
	}
	return next;
}

/* Whether it waited. */
static bool unlink_waiting(struct under_way *under_way, const struct xet_make *make)
{
	struct xet_make **link = &under_way->waiting;
	while (*link != NULL && *link != make)
		link = &(*link)->next;
	if (*link == NULL)
		return false;
	*link = make->next;
	return true;
}

static bool is_half_over(struct store *store, const struct chunk_id *file, int64_t now_ms)
{
	struct error ignored;
	struct xet_file row;
	struct db *const db = store_reader_take(store, &ignored);
	const int found = db == NULL ? -1 : xet_file_row_find(db, file, &row, &ignored);
	store_reader_give(store, db);
	return found == 1 && row.is_made && row.expires_ms - now_ms < XET_MADE_MS / 2;
}

static int make_apply_touch(struct change *change, struct db *db, struct error *err)
{
	const struct touch *const touch = (const struct touch *)change;
	return xet_file_row_touch(db, &touch->file, true, touch->expires_ms, err);
}

static void make_touched(struct change *change)
{
	free(change); /* when it failed, the file goes earlier, and is made again */
}
