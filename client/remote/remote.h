/* One connection to the server, with the things that every call needs: the retry rule, the stop
 * signal, and the conversion of answers into errors. The typed calls are in remote_run.h,
 * remote_object.h and remote_hub.h. One thread at a time; each thread that talks to the server
 * makes its own. */
#ifndef CLIENT_REMOTE_REMOTE_H
#define CLIENT_REMOTE_REMOTE_H

#include "base/net/http_client.h"
#include "client/remote/retry.h"

struct output;
struct spare_clients;

struct remote_options { /* borrowed: must outlive every remote made from it */
	const char *endpoint;
	const char *token;           /* NULL: none */
	const char *ca;              /* path of a PEM file; NULL: the system's CAs */
	unsigned retries;            /* tries after the first */
	struct stop *stop;           /* may be NULL */
	const struct output *output; /* where notes about retries go; may be NULL */
	/* of this very endpoint, token and CA; NULL: each remote connects for itself */
	struct spare_clients *spares;
};

struct remote;

struct remote *remote_new(const struct remote_options *options, struct error *err);
void remote_free(struct remote *remote); /* NULL is fine */
/* From any thread: makes the call in progress and all later ones fail with busy. */
void remote_cancel(struct remote *remote);
struct stop *remote_stop(const struct remote *remote);
/* From now on these options count, except endpoint, token and CA, which must be the same. For a
 * connection that outlives the work it was made for. No call may be in progress. */
void remote_obey(struct remote *remote, const struct remote_options *options);
/* Whether the last failure of a try was one that may pass: the server is away or overloaded. */
bool remote_may_pass(const struct remote *remote);

/* Makes one try. 0 with a 2xx answer; otherwise -1 with the server's refusal or the transport's
 * failure (untrusted when a server of HTTPS was asked in plain HTTP), and remote_again knows if a
 * repetition may help. The caller must release `response` in every case. */
int remote_try(struct remote *remote, const struct http_request *request,
	struct http_response *response, struct error *err);
/* To be called after a failed try, with its error. Waits and returns true when another try may
 * help. On false *err is the error to report: unchanged, or busy when a signal has come. */
bool remote_again(struct remote *remote, struct retry *retry, struct error *err);
struct retry remote_retry(const struct remote *remote);

/* Tries until the server answers or the retries are used up. For requests whose body and answer are
 * held in memory. The caller must release `response` in every case. */
int remote_send(struct remote *remote, const struct http_request *request,
	struct http_response *response, struct error *err);

#endif
