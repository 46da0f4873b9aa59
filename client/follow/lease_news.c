#include "client/follow/lease_news.h"

#include <string.h>

enum {
	FIRST_LEASE_S = 30,
	LEASE_MOST_S = 7 * 24 * 3600,
	OLD_REPORTS_OF_LEASE = 3,
	FAILED_PAUSE_MS = 1000,
	FAILED_PAUSE_MOST_MS = 32 * 1000
};

static bool is_news(const struct lease_news *news);
static bool differs(const struct lease_news_facts *a, const struct lease_news_facts *b);
static bool rests(enum replica_state state);
static bool protects_other(const struct lease_news_facts *now, const struct lease_news_facts *told);
static bool is_same_work(const struct lease_news_facts *a, const struct lease_news_facts *b);
static int64_t bounded_ms(uint64_t seconds, int64_t most_ms);
static int64_t spread(int64_t pause_ms, uint32_t random);

void lease_news_init(struct lease_news *news, int64_t now_ms)
{
	*news = (struct lease_news){.now = {.state = REPLICA_IDLE},
		.is_urgent = true,
		.since_ms = now_ms,
		.next_ms = now_ms};
}

void lease_news_say(struct lease_news *news, const struct lease_news_facts *facts, int64_t now_ms)
{
	ASSERT((facts->error[0] == '\0') || facts->state == REPLICA_ERROR);
	if (!is_same_work(&news->now, facts))
		news->since_ms = now_ms;
	news->now = *facts;
	news->is_urgent = is_news(news);
}

int64_t lease_news_pause_ms(const struct lease_news *news, int64_t now_ms)
{
	int64_t due_ms = news->next_ms;
	if (news->is_urgent)
		return 0;
	if (news->failed_ms == 0 && differs(&news->now, &news->told) &&
		news->since_ms + news->passing_ms < due_ms)
		due_ms = news->since_ms + news->passing_ms;
	return due_ms > now_ms ? due_ms - now_ms : 0;
}

bool lease_news_is_left(const struct lease_news *news)
{
	return news->is_urgent || (news->failed_ms == 0 && differs(&news->now, &news->told));
}

void lease_news_begin(struct lease_news *news)
{
	news->sent = news->now;
	news->is_urgent = false;
}

/* Facts that came meanwhile were compared with older ones. */
void lease_news_taken(struct lease_news *news, const struct lease_news_answer *answer,
	uint32_t random, int64_t now_ms)
{
	const int64_t lease_ms = bounded_ms(answer->lease_s > 0 ? answer->lease_s : FIRST_LEASE_S,
		(int64_t)LEASE_MOST_S * 1000);
	news->told = news->sent;
	news->has_told = true;
	news->failed_ms = 0;
	news->repeat_ms = answer->report_s > 0 ? bounded_ms(answer->report_s, lease_ms / 2)
					       : lease_ms / OLD_REPORTS_OF_LEASE;
	news->passing_ms =
		answer->report_s > 0 ? bounded_ms(answer->passing_s, news->repeat_ms) : 0;
	news->next_ms = now_ms + spread(news->repeat_ms, random);
	news->is_urgent = is_news(news);
}

void lease_news_failed(struct lease_news *news, uint32_t random, int64_t now_ms)
{
	const int64_t most_ms = news->repeat_ms / 4 > FAILED_PAUSE_MOST_MS ? news->repeat_ms / 4
									   : FAILED_PAUSE_MOST_MS;
	news->failed_ms = news->failed_ms == 0 ? FAILED_PAUSE_MS : 2 * news->failed_ms;
	if (news->failed_ms > most_ms)
		news->failed_ms = most_ms;
	news->next_ms = now_ms + spread(news->failed_ms, random);
}

/* Whether the server must know at once. */
static bool is_news(const struct lease_news *news)
{
	const struct lease_news_facts *const now = &news->now;
	if (!news->has_told)
		return true;
	return differs(now, &news->told) && (rests(now->state) || protects_other(now, &news->told));
}

static bool differs(const struct lease_news_facts *a, const struct lease_news_facts *b)
{
	return !is_same_work(a, b) || a->has_pause != b->has_pause || a->pause_ms != b->pause_ms ||
		strcmp(a->error, b->error) != 0;
}

static bool rests(enum replica_state state)
{
	return state != REPLICA_FETCHING && state != REPLICA_STAGING;
}

/* Whether retention must keep other steps than it knows of: below those that are kept, or, for a
 * worker without a step, those on the way to the one that it wants. */
static bool protects_other(const struct lease_news_facts *now, const struct lease_news_facts *told)
{
	if (now->has_step != told->has_step)
		return true;
	if (now->has_step)
		return now->step < told->step;
	return now->has_wanted && (!told->has_wanted || now->wanted != told->wanted);
}

static bool is_same_work(const struct lease_news_facts *a, const struct lease_news_facts *b)
{
	return a->state == b->state && a->has_step == b->has_step && a->step == b->step &&
		memcmp(&a->digest, &b->digest, sizeof(a->digest)) == 0 &&
		a->has_wanted == b->has_wanted && a->wanted == b->wanted;
}

static int64_t bounded_ms(uint64_t seconds, int64_t most_ms)
{
	return seconds > (uint64_t)most_ms / 1000 ? most_ms : (int64_t)seconds * 1000;
}

/* Up to a quarter more. */
static int64_t spread(int64_t pause_ms, uint32_t random)
{
	return pause_ms + (int64_t)((uint64_t)pause_ms / 4 * random / UINT32_MAX);
}
