/* The thread prints the facts under the lock, sends them without it, and sleeps until a report is
 * due (lease_news.h). It uses a connection of its own without retries, because it repeats the
 * report itself. */
#include "client/follow/lease.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"
#include "client/follow/chunk_gift.h"
#include "client/follow/lease_news.h"
#include "client/remote/remote_json.h"
#include "client/work/output.h"

enum { HOST_MAX_BYTES = 64 };

struct lease {
	struct lease_params params;
	struct remote_options quiet; /* no retries and no notes */
	struct remote *remote;       /* only for the thread */
	char *target;
	char host[HOST_MAX_BYTES + 1];
	atomic_bool is_in; /* the server lets this worker follow */
	bool told;         /* a failure has been noted; only for the thread */
	bool reported;     /* the server may know this worker; only for the thread until it ended */
	struct lock lock;
	struct lock_condition changed;
	/* guarded by lock: */
	struct lease_news news;
	struct proven_files files; /* of the held step */
	char *folder;              /* NULL: no files */
	int64_t asked_at_ms;       /* monotonic, of the report in progress; 0: there is none */
	bool stopping;
	bool ended; /* the thread does nothing more */
	pthread_t thread;
};

static bool wait_for_end(struct lease *lease);
static void take_files(struct lease *lease, const struct lease_facts *facts);
static void *lease_run(void *argument);
static void print(const struct lease *lease, struct buffer *out);
static bool report(struct lease *lease, struct span body, struct lease_news_answer *out);
static void read_answer(const struct json_node *answer, struct lease_news_answer *out);
static void give_chunks(struct lease *lease, const struct json_node *answer);
static void tell_once(struct lease *lease, const struct error *failure);
static void note_outcome(
	struct lease *lease, bool is_taken, const struct lease_news_answer *answer);
static bool is_due(struct lease *lease);
static void sign_off(const struct lease *lease);
static bool is_id_byte(char byte);

struct lease *lease_start(const struct lease_params *params)
{
	ASSERT(params->remote != NULL && params->run != NULL && params->id != NULL);
	ASSERT(params->goodbye_ms > 0 && params->goodbye_ms <= INT_MAX);
	struct lease *const lease = memory_new(sizeof(*lease));
	struct error ignored = {0};
	lease->params = *params;
	lease->quiet = *params->remote;
	lease->quiet.retries = 0;
	lease->quiet.output = NULL;
	lease->remote = remote_new(&lease->quiet, &ignored);
	if (lease->remote == NULL) {
		free(lease);
		return NULL;
	}
	lease->target = remote_json_target(params->run, "replicas", params->id);
	if (gethostname(lease->host, HOST_MAX_BYTES) != 0)
		lease->host[0] = '\0';
	lock_init(&lease->lock, LOCK_LEASE);
	lock_condition_init(&lease->changed);
	lease_news_init(&lease->news, clock_monotonic_ms());
	lock_thread_start(&lease->thread, "lease", lease_run, lease);
	return lease;
}

void lease_stop(struct lease *lease, bool signs_off)
{
	if (lease == NULL)
		return;
	lock_enter(&lease->lock);
	lease->stopping = true;
	lock_broadcast(&lease->changed);
	const bool is_heard = wait_for_end(lease);
	if (!is_heard)
		remote_cancel(lease->remote);
	lock_leave(&lease->lock);
	pthread_join(lease->thread, NULL);
	if (signs_off && lease->reported && is_heard)
		sign_off(lease);
	remote_free(lease->remote);
	lock_condition_release(&lease->changed);
	lock_release(&lease->lock);
	proven_files_release(&lease->files);
	free(lease->folder);
	free(lease->target);
	free(lease);
}

/* False when the thread has waited for the server for goodbye_ms. Called under the lock. */
static bool wait_for_end(struct lease *lease)
{
	lock_assert_held(&lease->lock);
	const int64_t began_ms = clock_monotonic_ms();
	while (!lease->ended) {
		const int64_t since_ms = lease->asked_at_ms != 0 ? lease->asked_at_ms : began_ms;
		const int64_t left_ms = since_ms + lease->params.goodbye_ms - clock_monotonic_ms();
		if (left_ms <= 0)
			break;
		lock_wait_for(&lease->lock, &lease->changed, left_ms);
	}
	return lease->ended;
}

void lease_say(struct lease *lease, const struct lease_facts *facts)
{
	ASSERT((facts->error != NULL) == (facts->state == REPLICA_ERROR));
	if (lease == NULL)
		return;
	struct lease_news_facts said = {.state = facts->state,
		.has_step = facts->has_step,
		.step = facts->step,
		.digest = facts->digest,
		.has_wanted = facts->has_wanted,
		.wanted = facts->wanted,
		.has_pause = facts->has_step && facts->has_pause,
		.pause_ms = facts->pause_ms};
	if (facts->error != NULL)
		snprintf(said.error, sizeof(said.error), "%s", facts->error);
	lock_enter(&lease->lock);
	lease_news_say(&lease->news, &said, clock_monotonic_ms());
	take_files(lease, facts);
	lock_broadcast(&lease->changed);
	lock_leave(&lease->lock);
}

/* Copies the files of the held step, unless it is the same one as before. Called under the
 * lock. */
static void take_files(struct lease *lease, const struct lease_facts *facts)
{
	lock_assert_held(&lease->lock);
	if (facts->folder != NULL && lease->folder != NULL &&
		strcmp(facts->folder, lease->folder) == 0)
		return;
	proven_files_release(&lease->files);
	free(lease->folder);
	lease->files = (struct proven_files){0};
	lease->folder = memory_copy_text(facts->folder);
	if (facts->files != NULL)
		proven_files_copy(facts->files->files, facts->files->count, &lease->files);
}

void lease_let_in(struct lease *lease)
{
	if (lease != NULL)
		atomic_store(&lease->is_in, true);
}

char *lease_default_id(const char *folder)
{
	char host[HOST_MAX_BYTES + 1] = "";
	char id[HOST_MAX_BYTES + 32];
	char *const absolute = realpath(folder, NULL);
	const struct digest128 hash = xxh3_128(span_text(absolute != NULL ? absolute : folder));
	if (gethostname(host, HOST_MAX_BYTES) != 0 || host[0] == '\0' || host[0] == '-' ||
		host[0] == '.')
		snprintf(host, sizeof(host), "worker");
	for (char *at = host; *at != '\0'; at++)
		if (!is_id_byte(*at))
			*at = '.';
	snprintf(id, sizeof(id), "%s-%02x%02x%02x%02x", host, hash.bytes[0], hash.bytes[1],
		hash.bytes[2], hash.bytes[3]);
	free(absolute);
	return memory_copy_text(id);
}

static void *lease_run(void *argument)
{
	struct lease *const lease = argument;
	struct buffer body;
	buffer_init(&body, REPLICA_MESSAGE_MAX_BYTES);
	lock_enter(&lease->lock);
	while (is_due(lease)) {
		struct lease_news_answer answer = {0};
		buffer_reset(&body);
		print(lease, &body);
		lease_news_begin(&lease->news);
		lease->asked_at_ms = clock_monotonic_ms();
		lock_leave(&lease->lock);
		const bool is_taken = report(lease, buffer_span(&body), &answer);
		lock_enter(&lease->lock);
		lease->asked_at_ms = 0;
		note_outcome(lease, is_taken, &answer);
	}
	lease->ended = true;
	lock_broadcast(&lease->changed);
	lock_leave(&lease->lock);
	buffer_release(&body);
	return NULL;
}

/* Prints the report. Called under the lock. */
static void print(const struct lease *lease, struct buffer *out)
{
	lock_assert_held(&lease->lock);
	const struct lease_news_facts *const facts = &lease->news.now;
	const struct span error = span_slice(span_text(facts->error), 0, REPLICA_ERROR_MAX_BYTES);
	const struct replica_message message = {
		.state = facts->state,
		.has_step = facts->has_step,
		.step = facts->step,
		.has_digest = facts->has_step,
		.digest = facts->digest,
		.has_wanted = facts->has_wanted,
		.wanted = facts->wanted,
		.error = error,
		.tensors =
			span_slice(span_text(lease->params.tensors), 0, REPLICA_TENSORS_MAX_BYTES),
		.host = span_text(lease->host),
		.has_pause = facts->has_pause,
		.pause_ms = facts->pause_ms,
	};
	replica_message_print_request(&message, out);
}

/* Sends the report. Returns whether the server took it. */
static bool report(struct lease *lease, struct span body, struct lease_news_answer *out)
{
	const struct remote_json_request request = {
		.method = "PUT", .target = lease->target, .body = body};
	struct error failure = {0};
	struct json_node *answer = NULL;
	lease->reported = true;
	if (remote_json_send(lease->remote, &request, &answer, &failure) != 0) {
		tell_once(lease, &failure);
		return false;
	}
	lease->told = false;
	read_answer(answer, out);
	give_chunks(lease, answer);
	json_node_free(answer);
	return true;
}

/* What is missing stays 0. */
static void read_answer(const struct json_node *answer, struct lease_news_answer *out)
{
	(void)json_node_u64(json_node_member(answer, "lease_s"), &out->lease_s);
	(void)json_node_u64(json_node_member(answer, "report_s"), &out->report_s);
	(void)json_node_u64(json_node_member(answer, "passing_s"), &out->passing_s);
}

/* Gives the server what it asks for of the held step. */
static void give_chunks(struct lease *lease, const struct json_node *answer)
{
	if (json_node_count(json_node_member(answer, "wants")) == 0)
		return;
	struct proven_files files = {0};
	lock_enter(&lease->lock);
	char *const folder = memory_copy_text(lease->folder);
	if (folder != NULL)
		proven_files_copy(lease->files.files, lease->files.count, &files);
	lock_leave(&lease->lock);
	const struct chunk_gift gift = {.remote = lease->remote,
		.run = lease->params.run,
		.files = &files,
		.folder = folder};
	const size_t given = folder != NULL ? chunk_gift_send(&gift, answer) : 0;
	if (given > 0 && lease->params.output != NULL)
		output_note(lease->params.output,
			"gave the server %zu chunks of this step that its disk had lost", given);
	proven_files_release(&files);
	free(folder);
}

static void tell_once(struct lease *lease, const struct error *failure)
{
	const bool is_early = failure->kind == ERROR_NO_RUN || failure->kind == ERROR_NO_BUCKET;
	if (is_early || !atomic_load(&lease->is_in)) /* the follower reports these itself */
		return;
	if (!lease->told && lease->params.output != NULL && stop_reason(lease->quiet.stop) == 0)
		output_note(lease->params.output,
			"the server does not accept this worker's report (following continues): %s",
			failure->text);
	lease->told = true;
}

/* Called under the lock. */
static void note_outcome(struct lease *lease, bool is_taken, const struct lease_news_answer *answer)
{
	uint32_t random;
	lock_assert_held(&lease->lock);
	random_bytes(&random, sizeof(random));
	if (is_taken)
		lease_news_taken(&lease->news, answer, random, clock_monotonic_ms());
	else
		lease_news_failed(&lease->news, random, clock_monotonic_ms());
}

/* Waits until a report is due. False when the worker ends and has told all. Called under the
 * lock. */
static bool is_due(struct lease *lease)
{
	int64_t pause_ms;
	lock_assert_held(&lease->lock);
	while (!lease->stopping &&
		(pause_ms = lease_news_pause_ms(&lease->news, clock_monotonic_ms())) > 0)
		lock_wait_for(&lease->lock, &lease->changed, pause_ms);
	return !lease->stopping || lease_news_is_left(&lease->news);
}

/* Tries once, even after a signal has cut short all other requests. Takes at most goodbye_ms. */
static void sign_off(const struct lease *lease)
{
	const struct remote_options *const options = lease->params.remote;
	const struct http_client_options client_options = {.endpoint = options->endpoint,
		.ca_file = options->ca,
		.token = options->token,
		.connect_timeout_ms = (int)lease->params.goodbye_ms,
		.total_timeout_ms = (int)lease->params.goodbye_ms};
	const struct http_request request = {.method = "DELETE", .target = lease->target};
	struct http_response response;
	struct error ignored = {0};
	struct http_client *const client = http_client_new(&client_options, &ignored);
	if (client == NULL)
		return;
	(void)http_client_send(client, &request, &response, &ignored);
	http_response_release(&response);
	http_client_free(client);
}

static bool is_id_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}
