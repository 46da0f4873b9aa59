/* One HTTP connection to one endpoint, reused across requests; over libcurl (its one home). It
 * blocks; one thread per client. Callers decide about retries. The bearer token goes only to the
 * endpoint itself. */
#ifndef BASE_NET_HTTP_CLIENT_H
#define BASE_NET_HTTP_CLIENT_H

#include "base/buffer.h"
#include "base/stream.h"

struct http_client;
struct http_look;

struct http_client_options {
	const char *endpoint; /* https://host:port without a trailing slash; copied */
	const char *ca_file;  /* PEM, trusted alone; NULL: the system's CAs */
	/* The server's certificate is not checked: for answers that are verified otherwise. Not
	 * together with a token. */
	bool unverified;
	/* Path of a Unix socket to use instead of TCP; NULL: none. The endpoint then only names the
	 * host. */
	const char *unix_socket;
	const char *token; /* bearer token; NULL: none */
	/* Signs each request for an S3 service (AWS Signature Version 4); key_id NULL: not. Copied.
	 * Not together with a token. */
	struct http_signing {
		const char *key_id;
		const char *secret;
		const char *session; /* of temporary credentials; NULL: none */
		const char *region;
	} signing;
	int connect_timeout_ms; /* 0: 10 s */
	int total_timeout_ms;   /* limit for a whole request; 0: none */
	int stall_timeout_ms;   /* limit without a byte in either direction; 0: 60 s */
	/* Called once in each request when no byte has moved in either direction for silence_ms and
	 * the request's wait_ms (up to a second late). NULL: nobody is told. */
	void (*on_silence)(void *owner);
	void *silence_owner;
	int silence_ms;
};

struct http_request {
	const char *method; /* "GET" or "PUT", for example */
	/* "/v1/...", percent-encoded by the caller; invalid without the leading slash */
	const char *target;
	const char *const *headers; /* lines "Name: value" with a NULL at the end; NULL: none */
	/* Token of this request in place of the client's; "": none; NULL: the client's.
	 * Borrowed. */
	const char *bearer;
	bool whole_errors;          /* an error's body may be as large as any other */
	struct span body;           /* used when `source` is NULL; empty: no body */
	struct body_source *source; /* a streamed body; borrowed */
	uint64_t source_size;
	/* how much longer than the stall timeout the answer may take (long polls) */
	int64_t wait_ms;
	/* Receives a 2xx body piece by piece; NULL: the body is kept in response->body. Borrowed;
	 * only write is called. */
	struct body_sink *sink;
	struct http_look *look; /* is filled in, also when the request fails; NULL: none */
};

struct http_response {
	int status;
	/* At most 16 MiB. Bodies of errors always come here (at most 64 KiB without
	 * whole_errors). */
	struct buffer body;
	char etag[128]; /* without quotes; "" when absent */
	char request_id[64];
	char digest[48];         /* x-deltabucket-digest, in its text form; "" when absent */
	char file_hash[72];      /* x-deltabucket-file-hash; "" when absent */
	bool is_derived;         /* x-deltabucket-derived */
	uint64_t content_length; /* of a HEAD or GET; UINT64_MAX when unknown */
	struct http_range {      /* Content-Range in bytes; UINT64_MAX for what it does not tell */
		uint64_t first;
		uint64_t last;
		uint64_t total; /* of the whole body */
	} range;
	char location[512];
	/* the header Link, which has a key percent-encoded; "" when absent */
	char link[8192];
	int64_t modified_ms; /* Last-Modified, wall clock; -1 when absent */
	int64_t date_ms;     /* Date, the server's clock; -1 when absent */
	int retry_after_s;   /* -1 when absent */
	/* Set with the error upstream: the two sides did not agree on TLS, or the server wants TLS
	 * and the endpoint says http. */
	bool wrong_protocol;
};

struct http_client *http_client_new(const struct http_client_options *options, struct error *err);
void http_client_free(struct http_client *client);
/* Returns 0 when an answer with any HTTP status came back whole (an error's body may be cut at its
 * cap). Returns -1 with untrusted when the certificate is not accepted, incomplete_body when the
 * source ended before source_size, busy after a cancel, the sink's or source's own error, and else
 * upstream, also when a server of HTTPS was asked in plain HTTP. Redirects are not followed.
 * Release `response` with http_response_release in all cases. */
int http_client_send(struct http_client *client, const struct http_request *request,
	struct http_response *response, struct error *err);
/* How many bytes of a target messages show, for "%.*s": without the query, which may have a
 * signature. */
int http_shown(const char *target);
/* Makes a blocked http_client_send (within about a second) and every later one return with busy.
 * Any thread. */
void http_client_cancel(struct http_client *client);
bool http_client_is_cancelled(const struct http_client *client);
/* From now on another one is told of silence; not during a request. */
void http_client_tell_silence(
	struct http_client *client, void (*on_silence)(void *owner), void *owner, int silence_ms);
void http_response_release(struct http_response *response);

#endif
