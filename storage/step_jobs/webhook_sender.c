/* free --webhook_sender_give--> deliver: find the URL, POST --> one change: remove or postpone
 *
 * The URL is read for each event, so that a setting that changed counts at once. Only its authority
 * gets into logs. A request that a stop breaks off leaves its event as it is. */
#include "storage/step_jobs/webhook_sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/memory.h"
#include "base/net/http_client.h"
#include "base/thread/worker_thread.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/run_tables/run_label.h"
#include "storage/run_tables/run_row.h"
#include "storage/runs/webhook.h"
#include "storage/runs/webhook_url.h"

enum {
	PAUSE_AFTER_FAULT_MS = 1000,
	ATTEMPTS_MOST = 12, /* over nearly six hours */
	PAUSE_FIRST_MS = 5 * 1000,
	PAUSE_MOST_MS = 60 * 60 * 1000,
	CONNECT_MS = 5 * 1000,
	STALL_MS = 10 * 1000,
	TOTAL_MS = 30 * 1000, /* even for a receiver that answers byte by byte */
	EVENT_ARENA_BYTES = 64 * 1024,
	HEADER_BYTES = 256,
	DELIVERY_BYTES = 16
};

struct webhook_sender {
	struct webhook_sender_plan plan;
	struct worker_thread thread;
	/* guarded by the thread's lock: the running request's, so that a stop can break it off */
	struct http_client *client;
	struct webhook_run run; /* guarded by the thread's lock; run 0: free */
	/* these two: the thread's own from the start of a delivery to its end */
	struct arena *arena;
	struct webhook_event event;
};

struct webhook_change {
	struct change change; /* first */
	const struct webhook_event *event;
	bool remove;
	int64_t due_ms;
};

static int64_t webhook_sender_round(void *owner);
static int deliver(struct webhook_sender *sender, const struct webhook_event *event,
	struct arena *arena, struct error *err);
static int webhook_apply(struct change *base, struct db *db, struct error *err);
static int find_url(struct store *store, int64_t run, struct arena *arena, struct webhook_url *out,
	struct error *err);
static int post(struct webhook_sender *sender, const struct webhook_event *event,
	const struct webhook_url *url, struct arena *arena, struct error *err);
static void sign(const struct store *store, const struct webhook_event *event, int64_t seconds,
	char out[HEADER_BYTES]);
static void name_delivery(
	const struct store *store, const struct webhook_event *event, char out[HEADER_BYTES]);
static bool set_client(struct webhook_sender *sender, struct http_client *client);
static int hide_target(const struct webhook_url *url, struct error *err);
static int64_t pause_after(uint64_t attempts);
static void log_failed_attempt(struct webhook_sender *sender, const struct webhook_event *event,
	bool dropped, struct error *failure);
static void release(struct webhook_sender *sender);

struct webhook_sender *webhook_sender_start(const struct webhook_sender_plan *plan)
{
	static const struct worker_thread_plan thread = {.name = "webhook",
		.first_ms = WORKER_THREAD_UNTIL_WOKEN,
		.round = webhook_sender_round};
	struct webhook_sender *const sender = memory_new(sizeof(*sender));
	ASSERT(plan->store != NULL && plan->freed != NULL);
	sender->plan = *plan;
	worker_thread_start(&sender->thread, &thread, sender);
	return sender;
}

bool webhook_sender_is_free(struct webhook_sender *sender, struct webhook_run *out_run)
{
	lock_enter(&sender->thread.lock);
	*out_run = sender->run;
	lock_leave(&sender->thread.lock);
	return out_run->run == 0;
}

void webhook_sender_give(struct webhook_sender *sender, const struct webhook_run *run,
	const struct webhook_event *event, struct arena *arena)
{
	lock_enter(&sender->thread.lock);
	ASSERT(sender->run.run == 0 && sender->arena == NULL);
	ASSERT(run->run != 0 && arena != NULL);
	sender->run = *run;
	sender->event = *event;
	sender->arena = arena;
	worker_thread_wake_held(&sender->thread);
	lock_leave(&sender->thread.lock);
}

void webhook_sender_quiesce(struct webhook_sender *sender)
{
	worker_thread_quiesce(&sender->thread);
	lock_enter(&sender->thread.lock);
	if (sender->client != NULL)
		http_client_cancel(sender->client);
	lock_leave(&sender->thread.lock);
}

void webhook_sender_stop(struct webhook_sender *sender)
{
	webhook_sender_quiesce(sender);
	worker_thread_stop(&sender->thread);
	worker_thread_release(&sender->thread);
	if (sender->arena != NULL) /* given, but not begun */
		arena_free(sender->arena);
	free(sender);
}

/* When the catalog accepts no change, the event is sent again, but not at once. */
static int64_t webhook_sender_round(void *owner)
{
	struct webhook_sender *const sender = owner;
	struct webhook_run run;
	struct error err = {0};
	if (webhook_sender_is_free(sender, &run))
		return WORKER_THREAD_UNTIL_WOKEN;
	if (deliver(sender, &sender->event, sender->arena, &err) != 0) {
		if (err.kind != ERROR_BUSY && store_log(sender->plan.store) != NULL)
			log_failure(
				store_log(sender->plan.store), LOG_WARNING, NULL, "webhooks", &err);
		worker_thread_pause(&sender->thread, PAUSE_AFTER_FAULT_MS);
	}
	release(sender);
	return WORKER_THREAD_UNTIL_WOKEN;
}

static int deliver(struct webhook_sender *sender, const struct webhook_event *event,
	struct arena *arena, struct error *err)
{
	struct webhook_change settle = {
		.change = {.apply = webhook_apply}, .event = event, .remove = true};
	struct webhook_url url;
	struct error failure = {0};
	ASSERT(event->run != 0 && arena != NULL);
	const int64_t begun_us = clock_monotonic_us();
	const int found = find_url(sender->plan.store, event->run, arena, &url, err);
	if (found < 0)
		return -1;
	if (found == 1 && post(sender, event, &url, arena, &failure) != 0) {
		if (worker_thread_is_stopping(&sender->thread))
			return 0;
		settle.remove = event->attempts + 1 >= ATTEMPTS_MOST;
		settle.due_ms = store_now_ms(sender->plan.store) + pause_after(event->attempts);
		log_failed_attempt(sender, event, settle.remove, &failure);
	} else if (found == 1) {
		metrics_add(store_metrics(sender->plan.store), METRIC_WEBHOOKS_SENT, 1);
		metrics_work(store_metrics(sender->plan.store), METRIC_WORK_WEBHOOK, begun_us);
	}
	return committer_run(store_committer(sender->plan.store), &settle.change, err);
}

static int webhook_apply(struct change *base, struct db *db, struct error *err)
{
	const struct webhook_change *const settle = (const struct webhook_change *)base;
	return settle->remove ? webhook_row_remove(db, settle->event->id, err)
			      : webhook_row_postpone(db, settle->event->id, settle->due_ms, err);
}

/* The run's URL as it is now, if the operator still allows it. 1; 0: there is none any more; -1. */
static int find_url(struct store *store, int64_t run, struct arena *arena, struct webhook_url *out,
	struct error *err)
{
	struct run_row row;
	struct db *const db = store_reader_take(store, err);
	const int found = db == NULL ? -1 : run_row_find_id(db, run, arena, &row, NULL, err);
	store_reader_give(store, db);
	if (found != 1 || row.settings.webhook[0] == '\0')
		return found < 0 ? -1 : 0;
	struct error refused = {0};
	if (webhook_check(store, row.settings.webhook, &refused) != 0)
		return 0;
	return webhook_url_parse(arena_copy(arena, span_text(row.settings.webhook)), out, err) == 0
		? 1
		: -1;
}

static int post(struct webhook_sender *sender, const struct webhook_event *event,
	const struct webhook_url *url, struct arena *arena, struct error *err)
{
	char signature[HEADER_BYTES];
	char delivery[HEADER_BYTES];
	sign(sender->plan.store, event, store_now_ms(sender->plan.store) / 1000, signature);
	name_delivery(sender->plan.store, event, delivery);
	const char *const headers[] = {"Content-Type: application/json", signature, delivery, NULL};
	const struct http_client_options options = {.endpoint = arena_text(arena, url->endpoint),
		.connect_timeout_ms = CONNECT_MS,
		.stall_timeout_ms = STALL_MS,
		.total_timeout_ms = TOTAL_MS};
	const struct http_request request = {.method = "POST",
		.target = url->target.len > 0 ? arena_text(arena, url->target) : "/",
		.headers = headers,
		.body = event->body};
	struct http_response response = {0};
	struct http_client *const client = http_client_new(&options, err);
	if (client == NULL)
		return -1;
	int result = set_client(sender, client)
		? http_client_send(client, &request, &response, err)
		: error_set(err, ERROR_BUSY, "The server is stopping.");
	if (result != 0)
		result = hide_target(url, err);
	else if (response.status < 200 || response.status > 299)
		result = error_set(err, ERROR_UPSTREAM, "'%.*s' answered with status %d.",
			(int)url->authority.len, (const char *)url->authority.data,
			response.status);
	http_response_release(&response);
	(void)set_client(sender, NULL);
	http_client_free(client);
	return result;
}

/* "t=<seconds>,v1=<hex of HMAC-SHA256 over seconds, a dot and the body>" */
static void sign(const struct store *store, const struct webhook_event *event, int64_t seconds,
	char out[HEADER_BYTES])
{
	char secret[WEBHOOK_SECRET_BYTES];
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct buffer message;
	buffer_init(&message, EVENT_ARENA_BYTES);
	buffer_format(&message, "%lld.", (long long)seconds);
	buffer_add_span(&message, event->body);
	webhook_secret(store, event->run, secret);
	hmac_sha256(span_text(secret), buffer_span(&message), digest);
	encode_hex(span_of(digest, sizeof(digest)), hex);
	snprintf(out, HEADER_BYTES, "X-Deltabucket-Signature: t=%lld,v1=%s", (long long)seconds,
		hex);
	buffer_release(&message);
}

/* The name of the event. Its number in the table would show how many events others have. */
static void name_delivery(
	const struct store *store, const struct webhook_event *event, char out[HEADER_BYTES])
{
	char secret[WEBHOOK_SECRET_BYTES];
	uint8_t digest[SHA256_BYTES];
	char text[64];
	char hex[2 * DELIVERY_BYTES + 1];
	const int len = snprintf(text, sizeof(text), "delivery %lld", (long long)event->id);
	ASSERT(len > 0 && (size_t)len < sizeof(text));
	webhook_secret(store, event->run, secret);
	hmac_sha256(span_text(secret), span_of(text, (size_t)len), digest);
	encode_hex(span_of(digest, DELIVERY_BYTES), hex);
	snprintf(out, HEADER_BYTES, "X-Deltabucket-Delivery: %s", hex);
}

static bool set_client(struct webhook_sender *sender, struct http_client *client)
{
	lock_enter(&sender->thread.lock);
	sender->client = client;
	lock_leave(&sender->thread.lock);
	return !worker_thread_is_stopping(&sender->thread);
}

/* The path of a webhook's URL is often its secret: logs get none of it. It has no blanks, so the
 * reason stands behind these words. */
static int hide_target(const struct webhook_url *url, struct error *err)
{
	static const char words[] = " failed: ";
	const struct error whole = *err;
	const char *const reason = strstr(whole.text, words);
	if (reason == NULL)
		return error_set(err, whole.kind, "The request to '%.*s' failed.",
			(int)url->authority.len, (const char *)url->authority.data);
	return error_set(err, whole.kind, "The request to '%.*s' failed: %s.",
		(int)url->authority.len, (const char *)url->authority.data, reason + strlen(words));
}

static int64_t pause_after(uint64_t attempts)
{
	const int64_t pause = attempts < 16 ? (int64_t)PAUSE_FIRST_MS << attempts : PAUSE_MOST_MS;
	return pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS;
}

static void log_failed_attempt(struct webhook_sender *sender, const struct webhook_event *event,
	bool dropped, struct error *failure)
{
	struct log *const log = store_log(sender->plan.store);
	if (dropped)
		metrics_add(store_metrics(sender->plan.store), METRIC_WEBHOOKS_DROPPED, 1);
	if (log == NULL ||
		(event->attempts > 0 &&
			!dropped)) /* logged at the first failure, and when it is given up */
		return;
	char run[RUN_LABEL_BYTES];
	run_label_format(sender->plan.store, event->run, run);
	error_wrap(failure, dropped ? "the webhook of run %s is given up" : "the webhook of run %s",
		run);
	log_failure(log, LOG_WARNING, NULL, "webhook_failed", failure);
}

static void release(struct webhook_sender *sender)
{
	arena_free(sender->arena);
	lock_enter(&sender->thread.lock);
	sender->arena = NULL;
	sender->run = (struct webhook_run){0};
	lock_leave(&sender->thread.lock);
	sender->plan.freed(sender->plan.owner);
}
