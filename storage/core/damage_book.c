/* The book is the listener of pack_damage.h:
 *
 *   noted, forgotten --> a change that adds or drops rows; no thread waits for it
 *   offered --> [mend lane: for each pack, read the sound records and write the damaged pack again]
 *
 * The mend lane runs one mend at a time, so no two mends rewrite one pack. A pack that still grows
 * is sealed first, and the mend is tried again until its index is saved. */
#include "storage/core/damage_book.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/damage_row.h"
#include "storage/core/pack_mend.h"
#include "storage/core/store.h"
#include "storage/packs/pack_record.h"

enum {
	/* of records of one pack in memory; chunks beyond that stay damaged */
	MEND_BYTES_MAX = 64 * 1024 * 1024,
	MEND_REST_NS = 10 * 1000 * 1000,
	MEND_TRIES = 1000
};

struct damage_book {
	struct store *store;
	struct pack_store *packs;
	struct lock lock;
	struct lock_condition idle;
	bool is_closed; /* guarded by lock */
	unsigned mends; /* guarded by lock: submitted and not ended */
};

struct note {
	struct change change; /* first */
	bool is_right;
	struct chunk_place place;
	uint32_t count;
};

struct mend {
	struct helper_job job; /* first */
	struct damage_book *book;
	size_t count;
	/* in the order of the damaged places; each holds a reference to both packs */
	struct chunk_repair *repairs;
	size_t at; /* the first repair that is not done yet */
	unsigned tries;
};

/* A mend that its maker waits for. */
struct patching {
	struct helper_job job; /* first */
	struct damage_book *book;
	const struct pack_id *pack;
	const struct pack_patch *patch;
	struct lock lock;
	struct lock_condition ended;
	bool has_ended; /* guarded by lock, as the next two */
	int result;
	struct error err;
};

/* Sound records for the patch of one pack. */
struct gathering {
	uint32_t *numbers;
	struct pack_entry *entries;
	uint32_t count;
	uint8_t *bytes;
	size_t len;
	size_t capacity;
};

static void count_damage(const struct damage_book *book);
static void damage_book_take_row(void *taker, const struct chunk_place *place);
static void damage_book_noted(void *owner, const struct pack_id *pack, uint32_t chunk);
static void log_chunk(const struct damage_book *book, enum log_level level, const char *event,
	const struct chunk_place *place);
static void write_down(struct damage_book *book, bool is_right, const struct pack_id *pack,
	uint32_t chunk, uint32_t count);
static int damage_book_apply_note(struct change *change, struct db *db, struct error *err);
static void damage_book_free_note(struct change *change);
static void damage_book_forgotten(
	void *owner, const struct pack_id *pack, uint32_t first, uint32_t count);
static void damage_book_offered(void *owner, const struct chunk_repair *repairs, size_t count);
static int damage_book_mend(
	void *owner, const struct pack_id *pack, const struct pack_patch *patch, struct error *err);
static void damage_book_run_patching(struct helper_job *job);
static int apply_patch(struct damage_book *book, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err);
static void tell_mended(struct damage_book *book, const struct pack_id *pack,
	const uint32_t *numbers, size_t count);
static bool begin_mend(struct damage_book *book);
static void damage_book_run_mend(struct helper_job *job);
static size_t count_of_pack(const struct mend *mend, size_t from);
static bool mend_one(
	struct damage_book *book, const struct chunk_repair *repairs, size_t count, bool is_last);
static bool book_is_closed(struct damage_book *book);
static bool is_damaged(
	const struct damage_book *book, const struct chunk_repair *repairs, size_t count);
static int mend_pack(struct damage_book *book, const struct chunk_repair *repairs, size_t count,
	struct error *err);
static bool is_same_chunk(const struct chunk_repair *a, const struct chunk_repair *b);
static int gather(struct pack_store *packs, const struct chunk_repair *repair, struct gathering *to,
	struct error *err);
static int read_entry(struct pack_store *packs, const struct chunk_place *place,
	struct pack_entry *out, struct error *err);
static void try_again(struct mend *mend);
static void mend_free(struct mend *mend);
static void end_mend(struct damage_book *book);
static bool refer_both(struct pack_store *packs, const struct chunk_repair *repair);
static int damage_book_compare_repairs(const void *a, const void *b);

int damage_book_load(struct pack_store *packs, struct db *db, struct error *err)
{
	return damage_row_each(db, PACK_DAMAGE_MAX, damage_book_take_row, packs, err);
}

struct damage_book *damage_book_open(struct store *store)
{
	struct damage_book *book = memory_new(sizeof(*book));
	book->store = store;
	book->packs = store_packs(store);
	lock_init(&book->lock, LOCK_DAMAGE_BOOK);
	lock_condition_init(&book->idle);
	const struct pack_damage_listener listener = {.noted = damage_book_noted,
		.forgotten = damage_book_forgotten,
		.offered = damage_book_offered,
		.mend = damage_book_mend,
		.owner = book};
	pack_damage_listen(book->packs->damage, &listener);
	count_damage(book);
	return book;
}

void damage_book_close(struct damage_book *book)
{
	if (book == NULL)
		return;
	lock_enter(&book->lock);
	book->is_closed = true;
	while (book->mends > 0)
		lock_wait(&book->lock, &book->idle);
	lock_leave(&book->lock);
}

void damage_book_free(struct damage_book *book)
{
	if (book == NULL)
		return;
	ASSERT(book->is_closed && book->mends == 0);
	lock_condition_release(&book->idle);
	lock_release(&book->lock);
	free(book);
}

static void count_damage(const struct damage_book *book)
{
	metrics_set(store_metrics(book->store), METRIC_CHUNKS_DAMAGED_NOW,
		(int64_t)pack_damage_count(book->packs->damage));
}

static void damage_book_take_row(void *taker, const struct chunk_place *place)
{
	pack_damage_note(((struct pack_store *)taker)->damage, &place->pack, place->chunk);
}

static void damage_book_noted(void *owner, const struct pack_id *pack, uint32_t chunk)
{
	struct damage_book *book = owner;
	const struct chunk_place place = {.pack = *pack, .chunk = chunk};
	log_chunk(book, LOG_ERROR, "chunk_damaged", &place);
	metrics_add(store_metrics(book->store), METRIC_CHUNKS_DAMAGED, 1);
	count_damage(book);
	write_down(book, false, pack, chunk, 1);
}

static void log_chunk(const struct damage_book *book, enum log_level level, const char *event,
	const struct chunk_place *place)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(&place->pack, text);
	const struct log_field fields[] = {
		log_text("pack", text), log_number("chunk", place->chunk)};
	log_event(store_log(book->store), level, NULL, event, fields,
		sizeof(fields) / sizeof(*fields));
}

static void write_down(struct damage_book *book, bool is_right, const struct pack_id *pack,
	uint32_t chunk, uint32_t count)
{
	ASSERT(count > 0);
	struct note *note = memory_new(sizeof(*note));
	*note = (struct note){
		.change = {.apply = damage_book_apply_note, .done = damage_book_free_note},
		.is_right = is_right,
		.place = {.pack = *pack, .chunk = chunk},
		.count = count};
	lock_enter(&book->lock);
	if (book->is_closed)
		free(note);
	else
		committer_submit(store_committer(book->store), &note->change);
	lock_leave(&book->lock);
}

static int damage_book_apply_note(struct change *change, struct db *db, struct error *err)
{
	const struct note *note = (const struct note *)change;
	return note->is_right
		? damage_row_drop(db, &note->place.pack, note->place.chunk, note->count, err)
		: damage_row_add(db, &note->place, err);
}

static void damage_book_free_note(struct change *change)
{
	free(change);
}

static void damage_book_forgotten(
	void *owner, const struct pack_id *pack, uint32_t first, uint32_t count)
{
	count_damage(owner);
	write_down(owner, true, pack, first, count);
}

static void damage_book_offered(void *owner, const struct chunk_repair *repairs, size_t count)
{
	struct damage_book *book = owner;
	if (!begin_mend(book))
		return;
	struct mend *mend = memory_new(sizeof(*mend));
	mend->job.run = damage_book_run_mend;
	mend->book = book;
	mend->repairs = memory_new_array(count, sizeof(*repairs));
	for (size_t i = 0; i < count; i++)
		if (refer_both(book->packs, &repairs[i]))
			mend->repairs[mend->count++] = repairs[i];
	qsort(mend->repairs, mend->count, sizeof(*mend->repairs), damage_book_compare_repairs);
	helpers_submit(store_helpers(book->store), &book->packs->mend_lane, &mend->job);
}

static int damage_book_mend(
	void *owner, const struct pack_id *pack, const struct pack_patch *patch, struct error *err)
{
	struct damage_book *book = owner;
	struct patching patching = {.job = {.run = damage_book_run_patching},
		.book = book,
		.pack = pack,
		.patch = patch};
	if (!begin_mend(book))
		return error_set(err, ERROR_BUSY, "The store is closing.");
	lock_init(&patching.lock, LOCK_DAMAGE_BOOK);
	lock_condition_init(&patching.ended);
	helpers_submit(store_helpers(book->store), &book->packs->mend_lane, &patching.job);
	lock_enter(&patching.lock);
	while (!patching.has_ended)
		lock_wait(&patching.lock, &patching.ended);
	lock_leave(&patching.lock);
	lock_condition_release(&patching.ended);
	lock_release(&patching.lock);
	end_mend(book);
	if (patching.result != 0)
		*err = patching.err;
	return patching.result;
}

static void damage_book_run_patching(struct helper_job *job)
{
	struct patching *patching = (struct patching *)job;
	struct error err = {0};
	int result = apply_patch(patching->book, patching->pack, patching->patch, &err);
	lock_enter(&patching->lock);
	patching->result = result;
	patching->err = err;
	patching->has_ended = true;
	lock_signal(&patching->ended);
	lock_leave(&patching->lock); /* its maker may be gone from here on */
}

static int apply_patch(struct damage_book *book, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err)
{
	if (!pack_store_refer(book->packs, pack))
		return error_set(err, ERROR_BUSY, "gc works on the damaged pack.");
	int result = pack_mend(book->store, pack, patch, err);
	pack_store_unrefer(book->packs, pack);
	if (result == 0)
		tell_mended(book, pack, patch->numbers, patch->count);
	return result;
}

static void tell_mended(
	struct damage_book *book, const struct pack_id *pack, const uint32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct chunk_place place = {.pack = *pack, .chunk = numbers[i]};
		log_chunk(book, LOG_WARNING, "chunk_mended", &place);
	}
	metrics_add(store_metrics(book->store), METRIC_CHUNKS_MENDED, (int64_t)count);
}

static bool begin_mend(struct damage_book *book)
{
	lock_enter(&book->lock);
	bool may = !book->is_closed;
	book->mends += may;
	lock_leave(&book->lock);
	return may;
}

static void damage_book_run_mend(struct helper_job *job)
{
	struct mend *mend = (struct mend *)job;
	struct damage_book *book = mend->book;
	for (size_t count; mend->at < mend->count; mend->at += count) {
		count = count_of_pack(mend, mend->at);
		if (!mend_one(book, mend->repairs + mend->at, count, mend->tries >= MEND_TRIES)) {
			mend->tries++;
			try_again(mend);
			return;
		}
	}
	mend_free(mend);
	end_mend(book);
}

static size_t count_of_pack(const struct mend *mend, size_t from)
{
	ASSERT(from < mend->count);
	size_t end = from + 1;
	while (end < mend->count &&
		pack_id_equal(&mend->repairs[end].damaged.pack, &mend->repairs[from].damaged.pack))
		end++;
	return end - from;
}

/* False when the pack must be tried again, because pack_mend has just had it sealed. */
static bool mend_one(
	struct damage_book *book, const struct chunk_repair *repairs, size_t count, bool is_last)
{
	struct error err = {0};
	if (book_is_closed(book) || !is_damaged(book, repairs, count))
		return true;
	if (mend_pack(book, repairs, count, &err) != 0) {
		if (err.kind == ERROR_BUSY && !is_last)
			return false;
		log_failure(store_log(book->store), LOG_WARNING, NULL, "pack_mend", &err);
		return true;
	}
	for (size_t i = 0; i < count; i++)
		log_chunk(book, LOG_WARNING, "chunk_mended", &repairs[i].damaged);
	metrics_add(store_metrics(book->store), METRIC_CHUNKS_MENDED, (int64_t)count);
	return true;
}

static bool book_is_closed(struct damage_book *book)
{
	lock_enter(&book->lock);
	bool is_closed = book->is_closed;
	lock_leave(&book->lock);
	return is_closed;
}

/* Two uploads may have brought the same chunks: those that are mended by now are not written
 * again. */
static bool is_damaged(
	const struct damage_book *book, const struct chunk_repair *repairs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pack_damage_has(book->packs->damage, &repairs[i].damaged.pack,
			    repairs[i].damaged.chunk, 1))
			return true;
	return false;
}

/* Mends one pack. `repairs` are in order and may have a chunk more than once. */
static int mend_pack(struct damage_book *book, const struct chunk_repair *repairs, size_t count,
	struct error *err)
{
	struct gathering got = {0};
	int result = 0;
	ASSERT(count > 0);
	got.numbers = memory_new_array(count, sizeof(*got.numbers));
	got.entries = memory_new_array(count, sizeof(*got.entries));
	for (size_t i = 0; result == 0 && i < count && got.len < MEND_BYTES_MAX; i++)
		if (i == 0 || !is_same_chunk(&repairs[i], &repairs[i - 1]))
			result = gather(book->packs, &repairs[i], &got, err);
	const struct pack_patch patch = {.numbers = got.numbers,
		.count = got.count,
		.entries = got.entries,
		.bytes = span_of(got.bytes, got.len)};
	if (result == 0)
		result = pack_mend(book->store, &repairs->damaged.pack, &patch, err);
	free(got.numbers);
	free(got.entries);
	free(got.bytes);
	return result;
}

static bool is_same_chunk(const struct chunk_repair *a, const struct chunk_repair *b)
{
	return a->damaged.chunk == b->damaged.chunk &&
		pack_id_equal(&a->damaged.pack, &b->damaged.pack);
}

static int gather(struct pack_store *packs, const struct chunk_repair *repair, struct gathering *to,
	struct error *err)
{
	const struct pack_run run = {
		.pack = repair->sound.pack, .first = repair->sound.chunk, .chunks = 1};
	if (to->capacity - to->len < PACK_RECORD_MAX_BYTES) {
		to->capacity = 2 * to->capacity + PACK_RECORD_MAX_BYTES;
		to->bytes = memory_grow(to->bytes, to->capacity, 1);
	}
	struct pack_read read = {.into = to->bytes + to->len, .capacity = PACK_RECORD_MAX_BYTES};
	if (read_entry(packs, &repair->sound, &to->entries[to->count], err) != 0 ||
		pack_store_read_records(packs, &run, true, &read, err) != 0)
		return -1;
	to->entries[to->count].offset = (uint32_t)to->len;
	to->numbers[to->count++] = repair->damaged.chunk;
	to->len += read.len;
	return 0;
}

static int read_entry(struct pack_store *packs, const struct chunk_place *place,
	struct pack_entry *out, struct error *err)
{
	struct pack *pinned = pack_cache_pin(packs->cache, &place->pack, false, err);
	if (pinned == NULL)
		return -1;
	size_t found = pack_cache_copy_entries(packs->cache, pinned, place->chunk, out, 1);
	pack_cache_unpin(packs->cache, pinned);
	return found == 1 ? 0 : error_set(err, ERROR_CORRUPT, "The pack has no such chunk.");
}

/* Queues the mend again, so that other jobs run first: one of them saves the index that the pack
 * waits for. No later upload would try again, because it finds the sound chunks and not the damaged
 * ones. */
static void try_again(struct mend *mend)
{
	struct damage_book *book = mend->book;
	nanosleep(&(struct timespec){.tv_nsec = MEND_REST_NS}, NULL);
	helpers_submit(store_helpers(book->store), &book->packs->mend_lane, &mend->job);
}

static void mend_free(struct mend *mend)
{
	for (size_t i = 0; i < mend->count; i++) {
		pack_store_unrefer(mend->book->packs, &mend->repairs[i].damaged.pack);
		pack_store_unrefer(mend->book->packs, &mend->repairs[i].sound.pack);
	}
	free(mend->repairs);
	free(mend);
}

static void end_mend(struct damage_book *book)
{
	lock_enter(&book->lock);
	ASSERT(book->mends > 0);
	if (--book->mends == 0)
		lock_signal(&book->idle);
	lock_leave(&book->lock);
}

static bool refer_both(struct pack_store *packs, const struct chunk_repair *repair)
{
	if (!pack_store_refer(packs, &repair->damaged.pack))
		return false;
	if (pack_store_refer(packs, &repair->sound.pack))
		return true;
	pack_store_unrefer(packs, &repair->damaged.pack);
	return false;
}

static int damage_book_compare_repairs(const void *a, const void *b)
{
	const struct chunk_place *left = &((const struct chunk_repair *)a)->damaged;
	const struct chunk_place *right = &((const struct chunk_repair *)b)->damaged;
	int order = memcmp(left->pack.bytes, right->pack.bytes, PACK_ID_BYTES);
	return order != 0 ? order : (left->chunk > right->chunk) - (left->chunk < right->chunk);
}
