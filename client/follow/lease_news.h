/* When a worker's next report is due, from what it last told the server and what is so now. States
 * that a worker rests in (idle, ready, error) are news at once, like a step whose weights retention
 * must know of; fetching and staging, in which it only passes, once they have lasted. Not locked:
 * the caller guards it. Times are of the monotonic clock. */
#ifndef CLIENT_FOLLOW_LEASE_NEWS_H
#define CLIENT_FOLLOW_LEASE_NEWS_H

#include "base/digest/xxh3.h"
#include "base/error.h"
#include "wire/replica_message.h"

/* What a report says that may change. */
struct lease_news_facts {
	enum replica_state state;
	bool has_step;
	uint64_t step;
	struct digest128 digest;
	bool has_wanted;
	uint64_t wanted;
	bool has_pause;
	uint64_t pause_ms;
	char error[ERROR_TEXT_BYTES]; /* with REPLICA_ERROR, else empty */
};

struct lease_news {
	struct lease_news_facts now;
	struct lease_news_facts sent; /* in the report under way */
	struct lease_news_facts told; /* in the last one that was taken */
	bool has_told;
	bool is_urgent;     /* news that no report has tried to tell yet */
	int64_t since_ms;   /* when the present state began */
	int64_t passing_ms; /* as the server's passing_s */
	int64_t repeat_ms;  /* as its report_s */
	int64_t next_ms;    /* when the next report is due, even without news */
	int64_t failed_ms;  /* the pause after a failure; 0: the last report was taken */
};

/* Nothing is told yet, so a report is due. */
void lease_news_init(struct lease_news *news, int64_t now_ms);
void lease_news_say(struct lease_news *news, const struct lease_news_facts *facts, int64_t now_ms);
/* For how many milliseconds no report is due; 0: one is. */
int64_t lease_news_pause_ms(const struct lease_news *news, int64_t now_ms);
/* Whether there is anything left to tell before the worker ends. */
bool lease_news_is_left(const struct lease_news *news);

/* A report of the present facts is under way; then whether the server took it. */
void lease_news_begin(struct lease_news *news);
/* `report_s` 0: an older server, which knows every change at once and each third of the lease.
 * `random` spreads the fleet's reports. */
struct lease_news_answer {
	uint64_t lease_s; /* 0: the server did not say */
	uint64_t report_s;
	uint64_t passing_s;
};
void lease_news_taken(struct lease_news *news, const struct lease_news_answer *answer,
	uint32_t random, int64_t now_ms);
/* It is tried again after 1 s, doubling up to 32 s or, where that is more, a quarter of
 * report_s. */
void lease_news_failed(struct lease_news *news, uint32_t random, int64_t now_ms);

#endif
