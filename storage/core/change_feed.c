/* Changes have numbers that rise by one; number n lies in slot n modulo the ring's size.
 *
 *   oldest ... shown ... next        [oldest, shown) readers see; [shown, next) is of the running transaction
 *
 * A reader whose number has left the ring is placed again by its moment (seek): the first later
 * change of the bucket must begin at that moment, else changes between the two are lost. Only the
 * committer's thread writes the ring, so it reads there without the lock. */
#include "storage/core/change_feed.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"

enum { CHANGES_MAX = 65536, KEY_BYTES_MAX = 8 * 1024 * 1024, DETAIL_AGE_MAX_MS = 15 * 60 * 1000 };
static const char TOPIC[] = "changes";
static const char PAUSE_TOPIC[] = "pause"; /* is never published */

struct noted {
	int64_t bucket;
	uint8_t *key;
	size_t key_len;
	bool existed;
	bool is_first;     /* the first of its bucket in its transaction */
	int64_t before_ms; /* the bucket's updated_ms before the transaction */
	int64_t moment_ms; /* updated_ms after this change */
};

struct change_feed {
	struct change_feed_options options;
	uint64_t life;
	struct lock lock;
	struct noted *ring; /* guarded by lock, as all below */
	uint64_t oldest;
	uint64_t shown;
	uint64_t next;
	size_t key_bytes;
};

static void clear_slot(struct change_feed *feed, uint64_t number);
static struct noted *slot_of(const struct change_feed *feed, uint64_t number);
static const struct noted *find_in_transaction(const struct change_feed *feed, int64_t bucket);
static int64_t choose_moment(const struct change_feed *feed, const struct change_note *note);
static void add(struct change_feed *feed, const struct change_note *note, struct noted noted);
static void forget_oldest(struct change_feed *feed);
static void wake(struct change_feed *feed, uint64_t from, uint64_t to);
static struct span topic_of(const int64_t *bucket);
static bool seek(struct change_feed *feed, int64_t bucket, int64_t since_ms, int64_t updated_ms,
	struct change_position *out);
static uint64_t find_after(const struct change_feed *feed, int64_t bucket, int64_t since_ms);
static void collect(const struct change_feed *feed, int64_t bucket, struct change_position *at,
	struct arena *arena, struct change_page *out);

struct change_feed *change_feed_new(const struct change_feed_options *options)
{
	ASSERT(options->clock != NULL);
	struct change_feed *const feed = memory_new(sizeof(*feed));
	feed->options = *options;
	if (feed->options.changes_max == 0)
		feed->options.changes_max = CHANGES_MAX;
	if (feed->options.key_bytes_max == 0)
		feed->options.key_bytes_max = KEY_BYTES_MAX;
	feed->ring = memory_new_array(feed->options.changes_max, sizeof(*feed->ring));
	feed->oldest = feed->shown = feed->next = 1; /* so that number 0 is always too old */
	random_bytes(&feed->life, sizeof(feed->life));
	lock_init(&feed->lock, LOCK_CHANGE_FEED);
	return feed;
}

void change_feed_free(struct change_feed *feed)
{
	if (feed == NULL)
		return;
	for (uint64_t number = feed->oldest; number < feed->next; number++)
		clear_slot(feed, number);
	lock_release(&feed->lock);
	free(feed->ring);
	free(feed);
}

uint64_t change_feed_id(const struct change_feed *feed)
{
	return feed->life;
}

int64_t change_feed_note(struct change_feed *feed, const struct change_note *note)
{
	const struct noted *const earlier = find_in_transaction(feed, note->bucket);
	const bool is_first = earlier == NULL || earlier->moment_ms == earlier->before_ms;
	const int64_t before_ms = earlier == NULL ? note->updated_ms : earlier->before_ms;
	int64_t moment_ms = is_first ? choose_moment(feed, note) : earlier->moment_ms;
	if (note->now_ms > moment_ms)
		moment_ms = note->now_ms;
	add(feed, note,
		(struct noted){
			.is_first = is_first, .before_ms = before_ms, .moment_ms = moment_ms});
	return moment_ms;
}

void change_feed_note_detail(struct change_feed *feed, const struct change_note *note)
{
	const struct noted *const earlier = find_in_transaction(feed, note->bucket);
	if (note->now_ms < feed->options.clock->wall_ms(feed->options.clock) - DETAIL_AGE_MAX_MS)
		return;
	if (earlier == NULL)
		add(feed, note,
			(struct noted){
				.before_ms = note->updated_ms, .moment_ms = note->updated_ms});
	else
		add(feed, note,
			(struct noted){
				.before_ms = earlier->before_ms, .moment_ms = earlier->moment_ms});
}

uint64_t change_feed_mark(const struct change_feed *feed)
{
	return feed->next;
}

void change_feed_take_back(struct change_feed *feed, uint64_t mark)
{
	lock_enter(&feed->lock);
	while (feed->next > mark && feed->next > feed->shown)
		clear_slot(feed, --feed->next);
	lock_leave(&feed->lock);
}

void change_feed_take_back_all(struct change_feed *feed)
{
	change_feed_take_back(feed, 0);
}

void change_feed_show(struct change_feed *feed)
{
	lock_enter(&feed->lock);
	const uint64_t from = feed->shown;
	feed->shown = feed->next;
	lock_leave(&feed->lock);
	if (feed->options.watch != NULL)
		wake(feed, from, feed->next);
}

bool change_feed_seek(struct change_feed *feed, int64_t bucket, int64_t since_ms,
	int64_t updated_ms, struct change_position *out)
{
	lock_enter(&feed->lock);
	const bool found = seek(feed, bucket, since_ms, updated_ms, out);
	lock_leave(&feed->lock);
	return found;
}

bool change_feed_read(struct change_feed *feed, int64_t bucket, int64_t updated_ms,
	struct change_position *position, struct arena *arena, struct change_page *out)
{
	ASSERT(out->limit > 0);
	out->count = 0;
	out->has_more = false;
	lock_enter(&feed->lock);
	const bool is_in_ring = position->number >= feed->oldest && position->number <= feed->shown;
	const bool found =
		is_in_ring || seek(feed, bucket, position->moment_ms, updated_ms, position);
	if (found)
		collect(feed, bucket, position, arena, out);
	lock_leave(&feed->lock);
	return found;
}

uint64_t change_feed_generation(struct change_feed *feed, int64_t bucket)
{
	ASSERT(feed->options.watch != NULL);
	return step_watch_generation(feed->options.watch, span_text(TOPIC), topic_of(&bucket));
}

void change_feed_wait(struct change_feed *feed, int64_t bucket, uint64_t generation,
	int64_t wait_ms, struct step_waiter *waiter)
{
	ASSERT(feed->options.watch != NULL);
	step_watch_wait(feed->options.watch, span_text(TOPIC), topic_of(&bucket), generation,
		wait_ms, waiter);
}

void change_feed_pause(struct change_feed *feed, int64_t wait_ms, struct step_waiter *waiter)
{
	const struct span topic = span_text(PAUSE_TOPIC);
	ASSERT(feed->options.watch != NULL);
	step_watch_wait(feed->options.watch, topic, topic,
		step_watch_generation(feed->options.watch, topic, topic), wait_ms, waiter);
}

static void clear_slot(struct change_feed *feed, uint64_t number)
{
	struct noted *const noted = slot_of(feed, number);
	ASSERT(feed->key_bytes >= noted->key_len);
	feed->key_bytes -= noted->key_len;
	free(noted->key);
	*noted = (struct noted){0};
}

static struct noted *slot_of(const struct change_feed *feed, uint64_t number)
{
	return &feed->ring[number % feed->options.changes_max];
}

/* The bucket's last change in the running transaction, or NULL. */
static const struct noted *find_in_transaction(const struct change_feed *feed, int64_t bucket)
{
	for (uint64_t number = feed->next; number > feed->shown; number--)
		if (slot_of(feed, number - 1)->bucket == bucket)
			return slot_of(feed, number - 1);
	return NULL;
}

/* The moment of a new transaction. It is above all moments that readers have seen, even when a
 * clock went back. */
static int64_t choose_moment(const struct change_feed *feed, const struct change_note *note)
{
	const int64_t wall_ms = feed->options.clock->wall_ms(feed->options.clock);
	if (note->now_ms > note->updated_ms)
		return note->now_ms;
	return wall_ms > note->updated_ms ? wall_ms : note->updated_ms + 1;
}

static void add(struct change_feed *feed, const struct change_note *note, struct noted noted)
{
	noted.bucket = note->bucket;
	noted.key = memory_copy(note->key.data, note->key.len);
	noted.key_len = note->key.len;
	noted.existed = note->existed;
	lock_enter(&feed->lock);
	while (feed->next > feed->oldest &&
		(feed->next - feed->oldest == feed->options.changes_max ||
			feed->key_bytes + note->key.len > feed->options.key_bytes_max))
		forget_oldest(feed);
	*slot_of(feed, feed->next++) = noted;
	feed->key_bytes += note->key.len;
	lock_leave(&feed->lock);
}

/* A transaction with more changes than the ring has slots pushes out its own first ones, before any
 * reader has seen them. */
static void forget_oldest(struct change_feed *feed)
{
	lock_assert_held(&feed->lock);
	ASSERT(feed->oldest < feed->next);
	clear_slot(feed, feed->oldest++);
	if (feed->shown < feed->oldest)
		feed->shown = feed->oldest;
}

/* Called without the lock, because a waiter that is woken may take it at once. */
static void wake(struct change_feed *feed, uint64_t from, uint64_t to)
{
	int64_t last = 0;
	for (uint64_t number = from; number < to; number++) {
		const int64_t bucket = slot_of(feed, number)->bucket;
		if (bucket != last)
			step_watch_published(
				feed->options.watch, span_text(TOPIC), topic_of(&bucket));
		last = bucket;
	}
}

static struct span topic_of(const int64_t *bucket)
{
	return span_of(bucket, sizeof(*bucket));
}

static bool seek(struct change_feed *feed, int64_t bucket, int64_t since_ms, int64_t updated_ms,
	struct change_position *out)
{
	lock_assert_held(&feed->lock);
	const uint64_t number = find_after(feed, bucket, since_ms);
	const struct noted *const first = number < feed->next ? slot_of(feed, number) : NULL;
	const int64_t moment_ms = first != NULL ? first->before_ms : updated_ms;
	if (moment_ms > since_ms || (first != NULL && !first->is_first))
		return false; /* the ring lacks changes between the two */
	*out = (struct change_position){
		.number = number < feed->shown ? number : feed->shown, .moment_ms = moment_ms};
	return true;
}

/* Returns the number of the bucket's first change after a moment, or `next`. This includes the
 * running transaction, because the catalog may show it already. */
static uint64_t find_after(const struct change_feed *feed, int64_t bucket, int64_t since_ms)
{
	uint64_t number = feed->oldest;
	while (number < feed->next &&
		(slot_of(feed, number)->bucket != bucket ||
			slot_of(feed, number)->moment_ms <= since_ms))
		number++;
	return number;
}

/* Collects from `at`, which lies in the ring, and moves it. */
static void collect(const struct change_feed *feed, int64_t bucket, struct change_position *at,
	struct arena *arena, struct change_page *out)
{
	lock_assert_held(&feed->lock);
	ASSERT(at->number >= feed->oldest && at->number <= feed->shown);
	for (; at->number < feed->shown; at->number++) {
		const struct noted *const noted = slot_of(feed, at->number);
		if (noted->bucket != bucket)
			continue;
		out->has_more = out->count == out->limit;
		at->moment_ms = out->has_more ? noted->before_ms : noted->moment_ms;
		if (out->has_more)
			break;
		out->changes[out->count++] = (struct change_seen){
			arena_copy(arena, span_of(noted->key, noted->key_len)), noted->existed};
	}
}
