/* A chunk that is found in the store counts once its stored bytes were read since the start and
 * found right; otherwise a PUT could be acknowledged whose bytes cannot be read back. The stream
 * goes on meanwhile: a hit waits with its content while a helper reads the stored bytes. Hits that
 * are wrong go back to the writer, which stores their content.
 *
 *   find --> [hits gather] --> check lane: read, note --> wrong hits: stored at the next write, or at the end
 *   finish --> check lane, behind the last check: close
 *
 * After the commit, chunks that were stored again are offered for mending the damaged ones. */
#include "storage/ingest/ingest_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/pack_record.h"

_Static_assert((int)INGEST_CHECK_BYTES >= (int)PACK_RECORD_MAX_BYTES &&
		(int)INGEST_CHECK_BYTES >= (int)CHUNK_MAX_BYTES,
	"a check has room for each chunk");

static bool is_own(const struct ingest *ingest, const struct pack_id *pack);
static void submit(struct ingest *ingest);
static void ingest_check_run(struct helper_job *job);
static void give_back(struct ingest_check *check, bool has_wrong);
static bool check_all(struct ingest_check *check);
static size_t run_length(const struct ingest_check *check, size_t first);
static bool check_hits(struct ingest_check *check, size_t first, size_t count);
static bool is_right(struct ingest_check *check, size_t first, size_t count);
static struct ingest_check *take_check(struct ingest *ingest);
static struct ingest_check *take_wrong(struct ingest *ingest);
static int store_wrong(struct ingest *ingest, struct ingest_check *check, struct error *err);
static int store_hit(struct ingest *ingest, const struct ingest_check *check,
	const struct ingest_hit *hit, struct error *err);
static void ingest_check_close_run(struct helper_job *job);
static struct chunk_place final_place(const struct ingest *ingest, size_t index);
static void free_checks(struct ingest_check *check);

bool ingest_check_wants(struct ingest *ingest, const struct chunk_place *place)
{
	const struct pack_run run = {.pack = place->pack, .first = place->chunk, .chunks = 1};
	return !pack_store_is_checked(ingest->store, &run) && !is_own(ingest, &place->pack);
}

void ingest_check_add(struct ingest *ingest, const struct chunk_id *id,
	const struct chunk_place *place, struct span content)
{
	if (ingest->check != NULL &&
		(ingest->check->count == INGEST_CHECK_HITS ||
			content.len > INGEST_CHECK_BYTES - ingest->check->len))
		submit(ingest);
	if (ingest->check == NULL)
		ingest->check = take_check(ingest);
	struct ingest_check *check = ingest->check;
	ASSERT(check->count < INGEST_CHECK_HITS && content.len <= INGEST_CHECK_BYTES - check->len);
	check->hits[check->count++] = (struct ingest_hit){.index = ingest->part_builder.count,
		.id = *id,
		.place = *place,
		.offset = check->len,
		.len = content.len};
	memcpy(check->content + check->len, content.data, content.len);
	check->len += content.len;
}

void ingest_check_damaged(struct ingest *ingest, size_t index, const struct chunk_place *place)
{
	ingest->repairs = memory_make_room(ingest->repairs, ingest->repair_count,
		&ingest->repair_capacity, sizeof(*ingest->repairs));
	ingest->repairs[ingest->repair_count++] =
		(struct ingest_repair){.index = index, .damaged = *place};
}

int ingest_check_repair(struct ingest *ingest, struct error *err)
{
	struct ingest_check *check;
	int result = 0;
	if (!ingest->has_checks)
		return 0;
	struct pack_scratch *given = ingest->scratch;
	if (given == NULL)
		ingest->scratch = pack_store_take_scratch(ingest->store);
	while (result == 0 && (check = take_wrong(ingest)) != NULL)
		result = store_wrong(ingest, check, err);
	if (given == NULL)
		pack_store_give_scratch(ingest->store, ingest->scratch);
	ingest->scratch = given;
	return result;
}

bool ingest_check_end(struct ingest *ingest)
{
	if (ingest->check != NULL)
		submit(ingest);
	if (!ingest->has_checks)
		return false;
	ingest->close.run = ingest_check_close_run;
	helpers_submit(ingest->store->helpers, &ingest->check_lane, &ingest->close);
	return true;
}

void ingest_check_offer(struct ingest *ingest)
{
	if (ingest->repair_count == 0)
		return;
	struct chunk_repair *repairs = memory_new_array(ingest->repair_count, sizeof(*repairs));
	for (size_t i = 0; i < ingest->repair_count; i++)
		repairs[i] = (struct chunk_repair){
			ingest->repairs[i].damaged, final_place(ingest, ingest->repairs[i].index)};
	pack_damage_offer(ingest->store->damage, repairs, ingest->repair_count);
	free(repairs);
}

void ingest_check_release(struct ingest *ingest)
{
	ASSERT(ingest->checks_out == 0);
	free(ingest->check);
	free_checks(ingest->wrong);
	free_checks(ingest->idle_check);
	free(ingest->check_stored);
	free(ingest->repairs);
}

/* Whether the pack is one of this stream's own: the chunk is a repeat, whose first copy is being
 * written. */
static bool is_own(const struct ingest *ingest, const struct pack_id *pack)
{
	bool is_own = pack_id_equal(&ingest->pack, pack);
	for (size_t i = ingest->record_count; i > 0 && !is_own; i--)
		is_own = pack_id_equal(&ingest->records[i - 1].id, pack);
	return is_own;
}

static void submit(struct ingest *ingest)
{
	struct ingest_check *check = ingest->check;
	ingest->check = NULL;
	if (!ingest->has_checks)
		ingest->check_stored = memory_new(INGEST_CHECK_BYTES);
	ingest->has_checks = true;
	check->job.run = ingest_check_run;
	lock_enter(&ingest->lock);
	ingest->checks_out++;
	lock_leave(&ingest->lock);
	ingest_job_begins(ingest);
	helpers_submit(ingest->store->helpers, &ingest->check_lane, &check->job);
}

static void ingest_check_run(struct helper_job *job)
{
	struct ingest_check *check = (struct ingest_check *)job;
	struct ingest *ingest = check->ingest;
	bool is_wanted = !atomic_load(&ingest->abandoned) && !ingest_has_failed(ingest);
	give_back(check, is_wanted && check_all(check));
	ingest_job_ends(ingest);
}

static void give_back(struct ingest_check *check, bool has_wrong)
{
	struct ingest *ingest = check->ingest;
	struct ingest_check **to = has_wrong ? &ingest->wrong : &ingest->idle_check;
	lock_enter(&ingest->lock);
	check->next = *to;
	*to = check;
	ASSERT(ingest->checks_out > 0);
	ingest->checks_out--;
	ingest_offer_room(ingest);
	lock_leave(&ingest->lock);
}

static bool check_all(struct ingest_check *check)
{
	bool has_wrong = false;
	for (size_t at = 0, count; at < check->count; at += count) {
		count = run_length(check, at);
		has_wrong |= check_hits(check, at, count);
	}
	return has_wrong;
}

/* How many hits from `first` on are neighbours in one pack. */
static size_t run_length(const struct ingest_check *check, size_t first)
{
	size_t end = first + 1;
	while (end < check->count &&
		check->hits[end].place.chunk == check->hits[end - 1].place.chunk + 1 &&
		pack_id_equal(&check->hits[end].place.pack, &check->hits[first].place.pack))
		end++;
	return end - first;
}

/* Reads the run at once, and chunk by chunk when something is wrong. */
static bool check_hits(struct ingest_check *check, size_t first, size_t count)
{
	bool is_wrong = !is_right(check, first, count);
	for (size_t i = first; is_wrong && i < first + count; i++)
		check->hits[i].is_wrong = count == 1 || !is_right(check, i, 1);
	return is_wrong;
}

static bool is_right(struct ingest_check *check, size_t first, size_t count)
{
	const struct chunk_place *place = &check->hits[first].place;
	const struct pack_run run = {
		.pack = place->pack, .first = place->chunk, .chunks = (uint32_t)count};
	/* damage was noted; a chunk that cannot be read for another reason is stored again too */
	struct error ignored = {0};
	return pack_store_check_into(check->ingest->store, &run, check->ingest->check_stored,
		       INGEST_CHECK_BYTES, &ignored) == 0;
}

static struct ingest_check *take_check(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	struct ingest_check *check = ingest->idle_check;
	if (check != NULL)
		ingest->idle_check = check->next;
	lock_leave(&ingest->lock);
	if (check == NULL)
		check = memory_new(sizeof(*check));
	check->ingest = ingest;
	check->count = 0;
	check->len = 0;
	return check;
}

static struct ingest_check *take_wrong(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	struct ingest_check *check = ingest->wrong;
	if (check != NULL)
		ingest->wrong = check->next;
	lock_leave(&ingest->lock);
	return check;
}

static int store_wrong(struct ingest *ingest, struct ingest_check *check, struct error *err)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < check->count; i++)
		if (check->hits[i].is_wrong)
			result = store_hit(ingest, check, &check->hits[i], err);
	lock_enter(&ingest->lock);
	check->next = ingest->idle_check;
	ingest->idle_check = check;
	lock_leave(&ingest->lock);
	return result;
}

static int store_hit(struct ingest *ingest, const struct ingest_check *check,
	const struct ingest_hit *hit, struct error *err)
{
	struct chunk_place place;
	if (ingest_store_chunk(ingest, &hit->id, span_of(check->content + hit->offset, hit->len),
		    &place, err) != 0)
		return -1;
	part_builder_replace(&ingest->part_builder, hit->index, &place);
	ingest_check_damaged(ingest, hit->index, &hit->place);
	return 0;
}

static void ingest_check_close_run(struct helper_job *job)
{
	ingest_close((struct ingest *)((uint8_t *)job - offsetof(struct ingest, close)));
}

/* The place of the chunk after ingest_place. */
static struct chunk_place final_place(const struct ingest *ingest, size_t index)
{
	ASSERT(index < ingest->part_builder.count);
	struct chunk_place place = ingest->part_builder.places[index];
	if (!ingest->is_placed || !pack_id_equal(&place.pack, &ingest->pack))
		return place;
	return (struct chunk_place){
		.pack = ingest->placed.pack, .chunk = ingest->placed.chunk + place.chunk};
}

static void free_checks(struct ingest_check *check)
{
	while (check != NULL) {
		struct ingest_check *next = check->next;
		free(check);
		check = next;
	}
}
