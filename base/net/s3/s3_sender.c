/* How a request gets its answer: it takes a connection for each try and gives it back for the
 * pauses, so that those who wait do not keep others from a service that is well.
 *
 * A service is down when a request had no answer in all its tries, and no other request had one
 * since it began. Then one request at a time tries, once, at most each second, and the others fail
 * at once; the first answer, whatever it says, ends that. */
#include <string.h>

#include "base/clock.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/net/s3/s3_client_internal.h"
#include "base/random.h"

enum { PROBE_MS = 1000, PAUSE_MAX_MS = 10 * 1000, MS_PER_SECOND = 1000 };

struct s3_try {
	const struct s3_request *request;
	struct s3_answer *answer;
	bool is_probe;
	bool is_silent;    /* there was no answer, not even the beginning of one */
	bool is_temporary; /* the failure is of a kind that passes */
};

static int try_once(struct s3_client *client, struct s3_try *this_try, struct error *err);
static struct s3_connection *take_connection(
	struct s3_client *client, struct s3_try *this_try, struct error *err);
static int check_state(const struct s3_client *client, struct error *err);
static struct s3_connection *find_free(const struct s3_client *client);
static void give_connection(
	struct s3_client *client, struct s3_connection *connection, const struct s3_try *this_try);
static int send_signed(struct s3_connection *connection, const struct s3_request *request,
	struct http_response *response, struct error *err);
static int judge(struct s3_client *client, struct s3_try *this_try, int sent, struct error *err);
static bool was_answered(struct s3_client *client);
static int64_t pause_before(const struct s3_client *client, unsigned tried, int retry_after_s);
static bool is_down_by_now(struct s3_client *client);
static void note_silence(struct s3_client *client, int64_t begun_ms, const struct error *why);
static bool sleep_unless_cancelled(struct s3_client *client, int64_t ms);

int s3_sender_send(struct s3_client *client, const struct s3_request *request,
	struct s3_answer *answer, struct error *err)
{
	const int64_t begun_ms = clock_monotonic_ms();
	struct s3_try this_try = {.request = request, .answer = answer};
	struct error why;
	*answer = (struct s3_answer){.response.status = 0};
	for (unsigned tried = 1;; tried++) {
		http_response_release(&answer->response);
		if (try_once(client, &this_try, &why) == 0)
			return 0;
		const int64_t pause_ms =
			pause_before(client, tried, answer->response.retry_after_s);
		const bool is_last = tried == client->options.tries || is_down_by_now(client) ||
			clock_monotonic_ms() + pause_ms > begun_ms + client->options.give_up_ms;
		if (this_try.is_temporary && is_last && this_try.is_silent)
			note_silence(client, begun_ms, &why);
		if (!this_try.is_temporary || is_last)
			break;
		if (client->options.on_retry != NULL)
			client->options.on_retry(client->options.owner, &why);
		if (!sleep_unless_cancelled(client, pause_ms))
			break;
	}
	*err = why;
	return -1;
}

static int try_once(struct s3_client *client, struct s3_try *this_try, struct error *err)
{
	const struct s3_request *request = this_try->request;
	*this_try = (struct s3_try){.request = request, .answer = this_try->answer};
	*this_try->answer = (struct s3_answer){.response.status = 0};
	struct s3_connection *connection = take_connection(client, this_try, err);
	if (connection == NULL)
		return -1;
	if (request->restart != NULL)
		request->restart(request->sink);
	const int sent = send_signed(connection, request, &this_try->answer->response, err);
	const int result = judge(client, this_try, sent, err);
	give_connection(client, connection, this_try);
	return result;
}

/* NULL with busy: the service is down, or the client was cancelled. */
static struct s3_connection *take_connection(
	struct s3_client *client, struct s3_try *this_try, struct error *err)
{
	struct s3_connection *connection = NULL;
	lock_enter(&client->lock);
	while (check_state(client, err) == 0 && (connection = find_free(client)) == NULL)
		lock_wait(&client->lock, &client->freed);
	if (connection != NULL) {
		connection->is_used = true;
		this_try->is_probe = client->is_down;
		client->is_probing = client->is_down;
	}
	lock_leave(&client->lock);
	return connection;
}

static int check_state(const struct s3_client *client, struct error *err)
{
	if (client->is_cancelled)
		return error_set(err, ERROR_BUSY, "The work with the S3 service at %s has ended.",
			client->endpoint);
	if (client->is_down && (client->is_probing || clock_monotonic_ms() < client->probe_ms))
		return error_set(err, ERROR_BUSY, "The S3 service at %s does not answer: %s",
			client->endpoint, client->why.text);
	return 0;
}

static struct s3_connection *find_free(const struct s3_client *client)
{
	for (size_t i = 0; i < client->options.connections; i++)
		if (!client->connections[i].is_used)
			return &client->connections[i];
	return NULL;
}

static void give_connection(
	struct s3_client *client, struct s3_connection *connection, const struct s3_try *this_try)
{
	const int64_t now_ms = clock_monotonic_ms();
	lock_enter(&client->lock);
	connection->is_used = false;
	if (!this_try->is_silent) {
		client->answered_ms = now_ms;
		client->is_down = false;
	}
	if (this_try->is_probe) {
		client->is_probing = false;
		client->probe_ms = now_ms + PROBE_MS;
	}
	lock_broadcast(&client->freed);
	lock_leave(&client->lock);
}

static int send_signed(struct s3_connection *connection, const struct s3_request *request,
	struct http_response *response, struct error *err)
{
	static const char name[] = "x-amz-content-sha256: ";
	char hash[sizeof(name) + 2 * SHA256_BYTES];
	uint8_t digest[SHA256_BYTES];
	memcpy(hash, name, sizeof(name));
	sha256(request->body, digest);
	encode_hex(span_of(digest, sizeof(digest)), hash + sizeof(name) - 1);
	const char *const headers[] = {
		hash, "Content-Type: application/octet-stream", request->header, NULL};
	const struct http_request sent = {.method = request->method,
		.target = request->target,
		.headers = headers,
		.body = request->body,
		.sink = request->sink};
	return http_client_send(connection->http, &sent, response, err);
}

/* TLS that was never agreed on will not be. */
static int judge(struct s3_client *client, struct s3_try *this_try, int sent, struct error *err)
{
	struct s3_answer *answer = this_try->answer;
	const struct s3_request *request = this_try->request;
	const bool is_good = answer->response.status >= 200 && answer->response.status <= 299;
	if (sent == 0 && is_good && !request->may_hide_error)
		return 0;
	if (sent == 0) {
		s3_answer_parse(answer);
		if (is_good && !answer->is_error)
			return 0;
		this_try->is_temporary = s3_answer_is_temporary(answer);
		return s3_answer_refuse(answer, request->method, request->target, err);
	}
	this_try->is_silent = answer->response.status == 0;
	if (err->kind == ERROR_TOO_LARGE && request->sink == NULL)
		return error_reword(err, ERROR_UPSTREAM,
			"The answer of the S3 service to %s %.300s is too large.", request->method,
			request->target);
	if (err->kind != ERROR_UPSTREAM ||
		(answer->response.wrong_protocol && !was_answered(client)))
		return -1;
	this_try->is_temporary = true;
	err->kind = ERROR_BUSY;
	return -1;
}

static bool was_answered(struct s3_client *client)
{
	lock_enter(&client->lock);
	const bool is_known = client->answered_ms >= 0;
	lock_leave(&client->lock);
	return is_known;
}

/* Half of a pause is by chance, so that many clients do not come back together. */
static int64_t pause_before(const struct s3_client *client, unsigned tried, int retry_after_s)
{
	int64_t pause_ms = client->options.pause_ms;
	uint32_t chance;
	for (unsigned i = 1; i < tried && pause_ms < PAUSE_MAX_MS; i++)
		pause_ms *= 2;
	if (pause_ms > PAUSE_MAX_MS)
		pause_ms = PAUSE_MAX_MS;
	random_bytes(&chance, sizeof(chance));
	pause_ms = pause_ms / 2 + chance % (pause_ms / 2 + 1);
	const int64_t asked_ms = (int64_t)retry_after_s * MS_PER_SECOND;
	return asked_ms > pause_ms ? asked_ms : pause_ms;
}

static bool is_down_by_now(struct s3_client *client)
{
	lock_enter(&client->lock);
	const bool is_down = client->is_down;
	lock_leave(&client->lock);
	return is_down;
}

static void note_silence(struct s3_client *client, int64_t begun_ms, const struct error *why)
{
	lock_enter(&client->lock);
	if (!client->is_down && client->answered_ms < begun_ms) {
		client->is_down = true;
		client->why = *why;
		client->probe_ms = clock_monotonic_ms() + PROBE_MS;
		lock_broadcast(&client->freed); /* those who wait need not */
	}
	lock_leave(&client->lock);
}

static bool sleep_unless_cancelled(struct s3_client *client, int64_t ms)
{
	const int64_t until_ms = clock_monotonic_ms() + ms;
	lock_enter(&client->lock);
	for (int64_t left_ms = ms; left_ms > 0 && !client->is_cancelled;
		left_ms = until_ms - clock_monotonic_ms())
		(void)lock_wait_for(&client->lock, &client->cancelled, left_ms);
	const bool goes_on = !client->is_cancelled;
	lock_leave(&client->lock);
	return goes_on;
}
