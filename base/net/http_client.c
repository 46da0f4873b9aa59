/* Each client has one easy handle, because libcurl then keeps the connection between requests.
 * Every request sets all options again. Answers arrive in http_answer.c. */
#include "base/net/http_client_internal.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/net/pipe_signal.h"
#include "base/net/trust_file.h"

enum {
	CONNECT_TIMEOUT_MS = 10 * 1000,
	STALL_TIMEOUT_MS = 60 * 1000,
	TRANSFER_BUFFER_BYTES = 256 * 1024,
	MS_PER_SECOND = 1000
};

struct http_client {
	CURL *easy;
	char *endpoint;
	char *ca_file;
	const char *system_cas; /* in place of those that libcurl knows; NULL: those. Static. */
	char *unix_socket;
	bool unverified;
	char *authorization; /* the whole header line; NULL: none */
	char *signing;       /* for CURLOPT_AWS_SIGV4; NULL: requests are not signed */
	char *key_id;
	char *secret;
	char *session; /* the whole header line; NULL: none */
	int connect_timeout_ms;
	int total_timeout_ms;
	int stall_timeout_ms;
	void (*on_silence)(void *owner); /* NULL: nobody is told */
	void *silence_owner;
	int silence_ms;
	_Atomic bool cancelled;
};

/* The silence of the other side during one request. */
struct silence {
	struct http_client *client;
	curl_off_t moved; /* bytes in both directions so far */
	int64_t since_ms; /* when `moved` last changed */
	bool is_told;
};

static int check_options(const struct http_client_options *options, struct error *err);
static int check_endpoint(const char *endpoint, struct error *err);
static void http_client_start_library(void);
static char *copy_endpoint(const char *endpoint);
static const char *find_system_cas(void);
static char *make_line(const char *prefix, const char *text);
static void take_signing(struct http_client *client, const struct http_signing *signing);
static void free_secret(char *text);
static void response_init(struct http_response *response);
static int make_headers(const struct http_client *client, const struct http_request *request,
	struct curl_slist **out, struct error *err);
static int add_header(struct curl_slist **list, const char *line);
static bool has_header(const struct http_request *request, const char *name);
static int add_bearer(struct curl_slist **list, const char *token);
static void set_trust(const struct http_client *client);
static void set_connection(struct http_client *client, int64_t wait_ms);
static curl_socket_t http_client_open_socket(
	void *argument, curlsocktype purpose, struct curl_sockaddr *address);
static void set_body(struct http_client *client, struct http_transfer *transfer);
static size_t http_client_read_source(char *into, size_t size, size_t count, void *argument);
static int perform(struct http_client *client, struct http_transfer *transfer, struct error *err);
static int http_client_watch_progress(
	void *argument, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up);
static void watch_silence(struct silence *silence, curl_off_t moved);
static int check_scheme(
	const struct http_client *client, const struct http_transfer *transfer, struct error *err);
static bool is_plain_http(const struct http_client *client);
static const char *hint_of(const struct http_client *client, CURLcode code, const char *reason);

struct http_client *http_client_new(const struct http_client_options *options, struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	ASSERT(options->endpoint != NULL);
	if (check_options(options, err) != 0)
		return NULL;
	pthread_once(&once, http_client_start_library);
	CURL *const easy = curl_easy_init();
	if (easy == NULL) {
		error_set(err, ERROR_NO_MEMORY, "cannot set up an HTTP client for %s",
			options->endpoint);
		return NULL;
	}
	struct http_client *const client = memory_new(sizeof(*client));
	client->easy = easy;
	client->endpoint = copy_endpoint(options->endpoint);
	client->ca_file = memory_copy_text(options->ca_file);
	client->system_cas = find_system_cas();
	client->unix_socket = memory_copy_text(options->unix_socket);
	client->unverified = options->unverified;
	client->authorization = make_line("Authorization: Bearer ", options->token);
	take_signing(client, &options->signing);
	client->connect_timeout_ms =
		options->connect_timeout_ms > 0 ? options->connect_timeout_ms : CONNECT_TIMEOUT_MS;
	client->total_timeout_ms = options->total_timeout_ms;
	client->stall_timeout_ms =
		options->stall_timeout_ms > 0 ? options->stall_timeout_ms : STALL_TIMEOUT_MS;
	client->on_silence = options->on_silence;
	client->silence_owner = options->silence_owner;
	client->silence_ms = options->silence_ms;
	atomic_init(&client->cancelled, false);
	return client;
}

void http_client_free(struct http_client *client)
{
	if (client == NULL)
		return;
	struct pipe_signal pipe_signal;
	pipe_signal_hold(&pipe_signal); /* TLS says goodbye */
	curl_easy_cleanup(client->easy);
	pipe_signal_let_go(&pipe_signal);
	free_secret(client->authorization);
	free_secret(client->secret);
	free_secret(client->session);
	free(client->signing);
	free(client->key_id);
	free(client->unix_socket);
	free(client->ca_file);
	free(client->endpoint);
	free(client);
}

int http_shown(const char *target)
{
	return (int)strcspn(target, "?");
}

void http_client_cancel(struct http_client *client)
{
	atomic_store(&client->cancelled, true);
}

bool http_client_is_cancelled(const struct http_client *client)
{
	return atomic_load(&client->cancelled);
}

void http_client_tell_silence(
	struct http_client *client, void (*on_silence)(void *owner), void *owner, int silence_ms)
{
	client->on_silence = on_silence;
	client->silence_owner = owner;
	client->silence_ms = silence_ms;
}

void http_response_release(struct http_response *response)
{
	buffer_release(&response->body);
}

int http_client_send(struct http_client *client, const struct http_request *request,
	struct http_response *response, struct error *err)
{
	struct http_transfer transfer = {
		.easy = client->easy, .request = request, .response = response};
	struct curl_slist *headers = NULL;
	struct buffer url;
	int result = -1;
	ASSERT(request->method != NULL && request->target != NULL);
	response_init(response);
	buffer_init(&url, HTTP_URL_MAX_BYTES);
	if (atomic_load(&client->cancelled))
		return error_set(err, ERROR_BUSY, "%s %s%.*s was cancelled", request->method,
			client->endpoint, http_shown(request->target), request->target);
	if (request->target[0] != '/')
		return error_set(err, ERROR_INVALID,
			"the target \"%.80s\" of a %s does not begin with a slash", request->target,
			request->method);
	buffer_add_text(&url, client->endpoint);
	buffer_add_text(&url, request->target);
	if (buffer_check(&url, "the URL of a request", err) != 0 ||
		make_headers(client, request, &headers, err) != 0)
		goto out;
	curl_easy_reset(client->easy); /* options only: the connection stays */
	curl_easy_setopt(client->easy, CURLOPT_URL, buffer_text(&url));
	curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, headers);
	set_connection(client, request->wait_ms);
	set_body(client, &transfer);
	http_answer_watch(&transfer);
	http_look_begin(&transfer);
	result = perform(client, &transfer, err);
out:
	curl_easy_reset(client->easy); /* so that no option points to this call's memory any more */
	curl_slist_free_all(headers);
	buffer_release(&url);
	return result;
}

static int check_options(const struct http_client_options *options, struct error *err)
{
	if (check_endpoint(options->endpoint, err) != 0)
		return -1;
	if (options->ca_file != NULL && access(options->ca_file, R_OK) != 0)
		return error_set_errno(err, "cannot read the CA file %s", options->ca_file);
	if (options->unverified && options->token != NULL)
		return error_set(err, ERROR_INVALID,
			"a token must not go to a server whose certificate is not checked");
	const struct span token = span_text(options->token);
	for (size_t i = 0; i < token.len; i++)
		if (token.data[i] <= ' ' || token.data[i] >= 0x7f)
			return error_set(err, ERROR_INVALID,
				"the token contains blanks, line ends or other characters that a token cannot have");
	return 0;
}

/* Refuses characters that would let endpoint and target together name another host than the
 * endpoint. */
static int check_endpoint(const char *endpoint, struct error *err)
{
	const struct span text = span_text(endpoint);
	const bool tls = span_starts(text, span_text("https://"));
	if (!tls && !span_starts(text, span_text("http://")))
		return error_set(err, ERROR_INVALID,
			"the endpoint \"%s\" begins with neither https:// nor http://", endpoint);
	const struct span host = span_slice(text, tls ? 8 : 7, text.len);
	for (size_t i = 0; i < host.len; i++)
		if (host.data[i] <= ' ' || host.data[i] >= 0x7f ||
			memchr("@?#\\", host.data[i], 4) != NULL)
			return error_set(err, ERROR_INVALID,
				"the endpoint \"%s\" contains more than a scheme, a host and a port",
				endpoint);
	if (host.len == 0 || host.data[0] == '/' || host.data[0] == ':')
		return error_set(err, ERROR_INVALID, "the endpoint \"%s\" names no host", endpoint);
	return 0;
}

static void http_client_start_library(void)
{
	const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
	ASSERT(code == CURLE_OK);
}

static char *copy_endpoint(const char *endpoint)
{
	char *const copy = memory_copy_text(endpoint);
	for (size_t len = strlen(copy); len > 0 && copy[len - 1] == '/'; len--)
		copy[len - 1] = '\0';
	return copy;
}

static const char *find_system_cas(void)
{
	const curl_version_info_data *const made = curl_version_info(CURLVERSION_NOW);
	return trust_file_instead(
		made->cainfo != NULL ? made->cainfo : made->capath, TRUST_FILE_PLACES);
}

/* NULL for NULL. */
static char *make_line(const char *prefix, const char *text)
{
	if (text == NULL)
		return NULL;
	const size_t len = strlen(prefix) + strlen(text) + 1;
	char *const line = memory_new(len);
	snprintf(line, len, "%s%s", prefix, text);
	return line;
}

static void take_signing(struct http_client *client, const struct http_signing *signing)
{
	struct buffer scope;
	if (signing->key_id == NULL)
		return;
	ASSERT(signing->secret != NULL && signing->region != NULL);
	buffer_init(&scope, HTTP_URL_MAX_BYTES);
	buffer_format(&scope, "aws:amz:%s:s3", signing->region);
	client->signing = memory_copy_text(buffer_text(&scope));
	client->key_id = memory_copy_text(signing->key_id);
	client->secret = memory_copy_text(signing->secret);
	client->session = make_line("x-amz-security-token: ", signing->session);
	buffer_release(&scope);
}

static void free_secret(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void response_init(struct http_response *response)
{
	*response = (struct http_response){.content_length = UINT64_MAX,
		.range = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
		.modified_ms = -1,
		.date_ms = -1,
		.retry_after_s = -1};
	buffer_init(&response->body, HTTP_BODY_MAX_BYTES);
}

/* libcurl leaves out a header of its own when it gets "Name:" without a value. It would sign such a
 * line all the same: a request that is signed keeps Expect, and has its own Content-Type. */
static int make_headers(const struct http_client *client, const struct http_request *request,
	struct curl_slist **out, struct error *err)
{
	int result = client->signing != NULL ? 0 : add_header(out, "Expect:");
	if (client->signing == NULL && !has_header(request, "Content-Type"))
		result |= add_header(out, "Content-Type:");
	if (request->bearer != NULL)
		result |= add_bearer(out, request->bearer);
	else if (client->authorization != NULL)
		result |= add_header(out, client->authorization);
	if (client->session != NULL)
		result |= add_header(out, client->session);
	for (const char *const *header = request->headers; header != NULL && *header != NULL;
		header++)
		result |= add_header(out, *header);
	return result == 0 ? 0
			   : error_set(err, ERROR_NO_MEMORY, "no memory for the headers of %s %.*s",
				     request->method, http_shown(request->target), request->target);
}

static int add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *const longer = curl_slist_append(*list, line);
	if (longer == NULL)
		return -1;
	*list = longer;
	return 0;
}

static bool has_header(const struct http_request *request, const char *name)
{
	for (const char *const *header = request->headers; header != NULL && *header != NULL;
		header++) {
		const struct span line = span_text(*header);
		const ptrdiff_t colon = span_find(line, ':');
		if (colon >= 0 && span_equal_nocase(span_slice(line, 0, (size_t)colon), name))
			return true;
	}
	return false;
}

static int add_bearer(struct curl_slist **list, const char *token)
{
	if (token[0] == '\0')
		return 0;
	char *const header = make_line("Authorization: Bearer ", token);
	const int result = add_header(list, header);
	free_secret(header);
	return result;
}

static void set_connection(struct http_client *client, int64_t wait_ms)
{
	const int64_t longest_ms = (int64_t)INT_MAX * MS_PER_SECOND;
	const int64_t extra_ms = wait_ms < 0 ? 0
		: wait_ms < longest_ms / 2   ? wait_ms
					     : longest_ms / 2;
	const int64_t stall_s =
		(client->stall_timeout_ms + extra_ms + MS_PER_SECOND - 1) / MS_PER_SECOND;
	curl_easy_setopt(client->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(client->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* object keys may contain dot segments */
	curl_easy_setopt(client->easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(client->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(client->easy, CURLOPT_OPENSOCKETFUNCTION, http_client_open_socket);
	curl_easy_setopt(client->easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(client->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(client->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)client->connect_timeout_ms);
	curl_easy_setopt(client->easy, CURLOPT_TIMEOUT_MS, (long)client->total_timeout_ms);
	curl_easy_setopt(client->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(client->easy, CURLOPT_LOW_SPEED_TIME, (long)stall_s);
	curl_easy_setopt(client->easy, CURLOPT_BUFFERSIZE, (long)TRANSFER_BUFFER_BYTES);
	curl_easy_setopt(client->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)TRANSFER_BUFFER_BYTES);
	curl_easy_setopt(client->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(client->easy, CURLOPT_USERAGENT, "deltabucket/" PACKAGE_VERSION);
	curl_easy_setopt(client->easy, CURLOPT_SSL_VERIFYPEER, client->unverified ? 0L : 1L);
	curl_easy_setopt(client->easy, CURLOPT_SSL_VERIFYHOST, client->unverified ? 0L : 2L);
	curl_easy_setopt(client->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	set_trust(client);
	if (client->signing != NULL) {
		curl_easy_setopt(client->easy, CURLOPT_AWS_SIGV4, client->signing);
		curl_easy_setopt(client->easy, CURLOPT_USERNAME, client->key_id);
		curl_easy_setopt(client->easy, CURLOPT_PASSWORD, client->secret);
	}
	if (client->unix_socket != NULL) {
		curl_easy_setopt(client->easy, CURLOPT_UNIX_SOCKET_PATH, client->unix_socket);
		curl_easy_setopt(client->easy, CURLOPT_NOPROXY, "*");
	}
}

/* A CA that is given is trusted alone. Without CAPATH set the system's folder of CAs would be too,
 * and GnuTLS would read all of it into each connection: 4 MB of memory. */
static void set_trust(const struct http_client *client)
{
	const char *const cas = client->ca_file != NULL ? client->ca_file : client->system_cas;
	if (cas != NULL)
		curl_easy_setopt(client->easy, CURLOPT_CAINFO, cas);
	if (client->ca_file != NULL)
		curl_easy_setopt(client->easy, CURLOPT_CAPATH, NULL);
}

/* A program that the process starts has no part in the connection. */
static curl_socket_t http_client_open_socket(
	void *argument, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)argument;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Chooses the kind of libcurl request that gives the right framing, then names the method
 * itself. */
static void set_body(struct http_client *client, struct http_transfer *transfer)
{
	const struct http_request *const request = transfer->request;
	const bool wants_length =
		strcmp(request->method, "PUT") == 0 || strcmp(request->method, "POST") == 0;
	if (request->source != NULL) {
		curl_easy_setopt(client->easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(
			client->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->source_size);
		curl_easy_setopt(client->easy, CURLOPT_READFUNCTION, http_client_read_source);
		curl_easy_setopt(client->easy, CURLOPT_READDATA, transfer);
	} else if (request->body.len > 0 || wants_length) {
		curl_easy_setopt(client->easy, CURLOPT_POST, 1L);
		curl_easy_setopt(
			client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
		curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS,
			request->body.len > 0 ? (const char *)request->body.data : "");
	} else if (strcmp(request->method, "HEAD") == 0) {
		curl_easy_setopt(client->easy, CURLOPT_NOBODY, 1L);
	} else {
		curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(client->easy, CURLOPT_CUSTOMREQUEST, request->method);
}

/* Gives at most the declared bytes, even if the source has more: otherwise the connection would be
 * out of step. */
static size_t http_client_read_source(char *into, size_t size, size_t count, void *argument)
{
	struct http_transfer *const transfer = argument;
	ASSERT(transfer->sent <= transfer->request->source_size);
	const uint64_t left = transfer->request->source_size - transfer->sent;
	const size_t room = size * count < left ? size * count : (size_t)left;
	if (room == 0)
		return 0;
	const ptrdiff_t got = transfer->request->source->read(
		transfer->request->source, (uint8_t *)into, room, &transfer->err);
	if (got < 0)
		return CURL_READFUNC_ABORT;
	if (got == 0) {
		error_set(&transfer->err, ERROR_INCOMPLETE_BODY,
			"the body of %s %.*s ends after %llu of %llu bytes",
			transfer->request->method, http_shown(transfer->request->target),
			transfer->request->target, (unsigned long long)transfer->sent,
			(unsigned long long)transfer->request->source_size);
		return CURL_READFUNC_ABORT;
	}
	ASSERT((size_t)got <= room);
	transfer->sent += (uint64_t)got;
	return (size_t)got;
}

static int perform(struct http_client *client, struct http_transfer *transfer, struct error *err)
{
	char reason[CURL_ERROR_SIZE] = "";
	const struct http_request *const request = transfer->request;
	struct silence silence = {
		.client = client, .since_ms = clock_monotonic_ms() + request->wait_ms};
	curl_easy_setopt(client->easy, CURLOPT_ERRORBUFFER, reason);
	curl_easy_setopt(client->easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(client->easy, CURLOPT_XFERINFOFUNCTION, http_client_watch_progress);
	curl_easy_setopt(client->easy, CURLOPT_XFERINFODATA, &silence);
	struct pipe_signal pipe_signal;
	pipe_signal_hold(&pipe_signal);
	const CURLcode code = curl_easy_perform(client->easy);
	pipe_signal_let_go(&pipe_signal);
	http_look_end(transfer, (int)code);
	long status = 0;
	curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
	transfer->response->status = (int)status;
	if (transfer->err.kind != ERROR_NONE) {
		*err = transfer->err;
		return -1;
	}
	if (code == CURLE_OK || transfer->cut)
		return check_scheme(client, transfer, err);
	if (atomic_load(&client->cancelled))
		return error_set(err, ERROR_BUSY, "%s %s%.*s was cancelled", request->method,
			client->endpoint, http_shown(request->target), request->target);
	transfer->response->wrong_protocol = code == CURLE_SSL_CONNECT_ERROR;
	const enum error_kind kind =
		code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE
		? ERROR_UNTRUSTED
		: ERROR_UPSTREAM;
	return error_set(err, kind, "%s %s%.*s failed: %s%s", request->method, client->endpoint,
		http_shown(request->target), request->target,
		reason[0] != '\0' ? reason : curl_easy_strerror(code),
		hint_of(client, code, reason));
}

static int http_client_watch_progress(
	void *argument, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct silence *const silence = argument;
	(void)down_total;
	(void)up_total;
	watch_silence(silence, down + up);
	return atomic_load(&silence->client->cancelled) ? 1 : 0;
}

static void watch_silence(struct silence *silence, curl_off_t moved)
{
	const struct http_client *const client = silence->client;
	const int64_t now = clock_monotonic_ms();
	if (moved != silence->moved) {
		silence->moved = moved;
		silence->since_ms = now;
	}
	if (client->on_silence == NULL || silence->is_told ||
		now - silence->since_ms < client->silence_ms)
		return;
	silence->is_told = true;
	client->on_silence(client->silence_owner);
}

/* A server of HTTPS answers plain HTTP in these words, deltabucketd among others. That is not an
 * answer to the request. */
static int check_scheme(
	const struct http_client *client, const struct http_transfer *transfer, struct error *err)
{
	static const char words[] = "Client sent an HTTP request to an HTTPS server";
	const struct http_response *const response = transfer->response;
	if (response->status != 400 || !is_plain_http(client) ||
		!span_starts(buffer_span(&response->body), span_text(words)))
		return 0;
	transfer->response->wrong_protocol = true;
	return error_set(err, ERROR_UPSTREAM,
		"%s %s%.*s failed: the server speaks HTTPS, not plain HTTP: use https:// in the endpoint",
		transfer->request->method, client->endpoint, http_shown(transfer->request->target),
		transfer->request->target);
}

static bool is_plain_http(const struct http_client *client)
{
	return span_starts(span_text(client->endpoint), span_text("http://"));
}

/* Names the usual cause of a failure, where libcurl's own words do not lead there. */
static const char *hint_of(const struct http_client *client, CURLcode code, const char *reason)
{
	const bool is_plain = is_plain_http(client);
	if (code == CURLE_PEER_FAILED_VERIFICATION && strstr(reason, "subject name") != NULL)
		return " (the server's certificate does not name this host: deltabucketd --tls-name HOST adds a name)";
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return client->ca_file != NULL
			? " (is this the CA of that server?)"
			: " (no CA was given: a server with a CA of its own needs its tls/ca.pem as the CA)";
	if (code == CURLE_GOT_NOTHING && is_plain)
		return " (does the server speak HTTPS?)";
	/* A server of plain HTTP answers or hangs up; one that is stopped hangs up, too. */
	if (code == CURLE_SSL_CONNECT_ERROR && !is_plain)
		return strstr(reason, "terminated") == NULL
			? " (does the server speak plain HTTP?)"
			: " (was the server stopped, or does it speak plain HTTP?)";
	return "";
}
