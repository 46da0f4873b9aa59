/* remote_try and remote_again share a small state: whether the last failure may pass, and how long
 * the server asked to wait. So callers that stream a body or resume a download can write their own
 * loop around the two, and remote_send is the simplest such loop. Notes about retries become rare
 * with the number of tries, so that a long outage does not fill the terminal. */
#include "client/remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/remote/remote_error.h"
#include "client/remote/spare_clients.h"
#include "client/work/output.h"

enum { SILENCE_MS = 5000 };

struct remote {
	const struct remote_options *options;
	struct http_client *client;
	bool may_pass;      /* the last failure may pass: another try may succeed */
	int retry_after_s;  /* the last failure's Retry-After, in seconds; -1: none */
	bool noted_silence; /* the user was told that no answer comes; reset by an answer */
};

static struct http_client *take_client(const struct remote_options *options, struct error *err);
static bool was_asked_in_plain(const struct remote *remote, const struct http_response *response);
static void remote_note_silence(void *owner);
static void add_advice(const struct remote *remote, struct error *err);
static const char *find_advice(const struct remote *remote, enum error_kind refusal);

struct remote *remote_new(const struct remote_options *options, struct error *err)
{
	ASSERT(options->endpoint != NULL);
	struct http_client *const client = take_client(options, err);
	if (client == NULL)
		return NULL;
	struct remote *const remote = memory_new(sizeof(*remote));
	remote->options = options;
	remote->client = client;
	http_client_tell_silence(client, remote_note_silence, remote, SILENCE_MS);
	stop_watch(options->stop, client);
	return remote;
}

void remote_free(struct remote *remote)
{
	if (remote == NULL)
		return;
	stop_forget(remote->options->stop, remote->client);
	http_client_tell_silence(remote->client, NULL, NULL, 0);
	if (remote->options->spares != NULL)
		spare_clients_give(remote->options->spares, remote->client);
	else
		http_client_free(remote->client);
	free(remote);
}

void remote_cancel(struct remote *remote)
{
	http_client_cancel(remote->client);
}

struct stop *remote_stop(const struct remote *remote)
{
	return remote->options->stop;
}

void remote_obey(struct remote *remote, const struct remote_options *options)
{
	ASSERT(strcmp(remote->options->endpoint, options->endpoint) == 0);
	stop_forget(remote->options->stop, remote->client);
	remote->options = options;
	stop_watch(options->stop, remote->client);
}

bool remote_may_pass(const struct remote *remote)
{
	return remote->may_pass;
}

int remote_try(struct remote *remote, const struct http_request *request,
	struct http_response *response, struct error *err)
{
	ASSERT(request->target != NULL && request->target[0] == '/');
	remote->may_pass = false;
	remote->retry_after_s = -1;
	if (stop_check(remote->options->stop, err) != 0)
		return -1;
	if (http_client_send(remote->client, request, response, err) != 0) {
		if (was_asked_in_plain(remote, response))
			err->kind = ERROR_UNTRUSTED;
		remote->may_pass = err->kind == ERROR_UPSTREAM;
		return -1;
	}
	remote->noted_silence = false;
	if (response->status >= 200 && response->status <= 299)
		return 0;
	remote->may_pass = retry_worth_status(response->status);
	remote->retry_after_s = response->retry_after_s;
	char what[ERROR_TEXT_BYTES];
	snprintf(what, sizeof(what), "%s %.*s", request->method, http_shown(request->target),
		request->target);
	remote_error_set(err, response->status, buffer_span(&response->body), what);
	snprintf(err->request_id, sizeof(err->request_id), "%s", response->request_id);
	add_advice(remote, err);
	return -1;
}

bool remote_again(struct remote *remote, struct retry *retry, struct error *err)
{
	const struct remote_options *const options = remote->options;
	ASSERT(err->kind != ERROR_NONE);
	if (stop_check(options->stop, err) != 0)
		return false;
	if (!remote->may_pass || retry->attempt >= retry->attempts)
		return false;
	if (options->output != NULL && (retry->attempt == 3 || retry->attempt % 20 == 19))
		output_note(options->output, "%s; still trying", err->text);
	if (retry_again(retry, remote->retry_after_s))
		return true;
	stop_check(options->stop, err);
	return false;
}

struct retry remote_retry(const struct remote *remote)
{
	struct retry retry;
	retry_init(&retry, remote->options->stop, remote->options->retries);
	return retry;
}

int remote_send(struct remote *remote, const struct http_request *request,
	struct http_response *response, struct error *err)
{
	struct retry retry = remote_retry(remote);
	struct error failure = {0};
	for (;;) {
		*response = (struct http_response){0};
		if (remote_try(remote, request, response, &failure) == 0)
			return 0;
		if (!remote_again(remote, &retry, &failure))
			break;
		http_response_release(response);
	}
	*err = failure;
	return -1;
}

static struct http_client *take_client(const struct remote_options *options, struct error *err)
{
	struct http_client *const spare =
		options->spares == NULL ? NULL : spare_clients_take(options->spares);
	if (spare != NULL)
		return spare;
	const struct http_client_options client_options = {
		.endpoint = options->endpoint, .ca_file = options->ca, .token = options->token};
	return http_client_new(&client_options, err);
}

/* Whether a server of HTTPS has said that it was asked in plain HTTP. Nothing but another endpoint
 * mends that, as with a certificate that is not trusted. Where TLS fails, it may pass. */
static bool was_asked_in_plain(const struct remote *remote, const struct http_response *response)
{
	return response->wrong_protocol &&
		span_starts(span_text(remote->options->endpoint), span_text("http://"));
}

/* Without this note, a person who waits for a listing sees nothing: only transfers show
 * progress. */
static void remote_note_silence(void *owner)
{
	struct remote *const remote = owner;
	if (remote->options->output != NULL && !remote->noted_silence)
		output_note(remote->options->output,
			"%s has not answered for %d seconds; still waiting",
			remote->options->endpoint, SILENCE_MS / 1000);
	remote->noted_silence = true;
}

static void add_advice(const struct remote *remote, struct error *err)
{
	const char *const advice = find_advice(remote, err->kind);
	if (advice != NULL)
		error_advise(err, "%s", advice);
}

/* Advice to append to the server's sentence; NULL when there is none. A new user has no token yet.
 * A disk that seems to hold little may be full of the remains of failed uploads. */
static const char *find_advice(const struct remote *remote, enum error_kind refusal)
{
	const bool has_token = remote->options->token != NULL && remote->options->token[0] != '\0';
	if (!has_token && (refusal == ERROR_NO_CREDENTIALS || refusal == ERROR_DENIED))
		return "no token was sent: DELTABUCKET_TOKEN sets one, and"
		       " `deltabucket login ENDPOINT` stores one";
	if (refusal == ERROR_NO_SPACE)
		return "remove objects or runs that nobody needs (`deltabucket rm`, `deltabucket"
		       " runs rm`); then, on the server's machine, `deltabucketd gc --end-promises`"
		       " frees their space and that of failed uploads";
	return NULL;
}
