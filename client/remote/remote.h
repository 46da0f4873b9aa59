/* One connection to the server with what every call needs around it: the retry rule, the stop
 * signal, answers turned into errors. The typed calls are in remote_run.h and remote_object.h. One
 * thread at a time; a thread that wants to talk makes its own. */
#ifndef CLIENT_REMOTE_REMOTE_H
#define CLIENT_REMOTE_REMOTE_H

#include "base/net/http_client.h"
#include "client/remote/retry.h"

struct output;

struct remote_options { /* borrowed, and must outlive every remote made from it */
	const char *endpoint;
	const char *token;           /* NULL: none */
	const char *ca;              /* NULL: the system's */
	unsigned retries;            /* tries after the first */
	struct interrupt *interrupt; /* may be NULL */
	const struct output *output; /* where retries are noted; may be NULL */
};

struct remote;

struct remote *remote_new(const struct remote_options *options, struct error *err);
void remote_free(struct remote *remote); /* NULL is fine */
/* From any thread: the call that is under way, and all later ones, end with busy. */
void remote_cancel(struct remote *remote);
struct interrupt *remote_interrupt(const struct remote *remote);

/* One try. 0 with a 2xx answer; else the server's refusal or the transport's failure as an error,
 * and remote_again knows whether to repeat it. `response` is released by the caller in every
 * case. */
int remote_try(struct remote *remote, const struct http_request *request,
	struct http_response *response, struct error *err);
/* After a failed try: waits and gives true when it is worth another. On false the error stands
 * (busy when a signal came). */
bool remote_again(struct remote *remote, struct retry *retry, struct error *err);
struct retry remote_retry(const struct remote *remote);

/* Tries until it is answered or the retries are used up; for requests whose body is in memory and
 * whose answer fits there. */
int remote_send(struct remote *remote, const struct http_request *request,
	struct http_response *response, struct error *err);

#endif
