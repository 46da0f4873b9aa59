/* One HTTP connection to one endpoint, reused across requests; over libcurl (its one home).
 * Blocking; one thread per client. Retries are the caller's: this reports what happened. The bearer
 * token goes out only to the endpoint itself. */
#ifndef BASE_NET_HTTP_CLIENT_H
#define BASE_NET_HTTP_CLIENT_H

#include "base/buffer.h"
#include "base/stream.h"

struct http_client;

struct http_client_options {
	const char *endpoint; /* https://host:port, no trailing slash; copied */
	const char *ca_file;  /* PEM; NULL: the system's */
	/* whoever answers is believed: for what is checked otherwise. Goes with no token */
	bool unverified;
	/* path of the unix socket to speak through instead of TCP; NULL: none. The endpoint then
	 * only names the host */
	const char *unix_socket;
	const char *token;      /* bearer; NULL: none */
	int connect_timeout_ms; /* 0: 10 s */
	int total_timeout_ms;   /* a whole request takes no longer; 0: no bound */
	int stall_timeout_ms;   /* no byte either way for so long fails; 0: 60 s */
	/* Told once in each request when no byte has gone either way for so long (a second later at
	 * most), and wait_ms besides. NULL: nobody */
	void (*on_silence)(void *owner);
	void *silence_owner;
	int silence_ms;
};

struct http_request {
	const char *method; /* "GET", "PUT", ... */
	const char *
		target; /* "/v1/...", percent-encoded by the caller; invalid without the leading slash */
	const char *const *headers; /* "Name: value", NULL-ended; NULL: none */
	const char *
		bearer; /* token of this request in place of the client's; "": none; NULL: the client's. Borrowed */
	bool whole_errors;          /* an error's body may be as large as another's */
	struct span body;           /* used when source is NULL; empty: no body */
	struct body_source *source; /* streamed body; borrowed */
	uint64_t source_size;
	/* how much longer than the stall timeout the answer may take (long polls) */
	int64_t wait_ms;
	/* takes a 2xx body as it comes; NULL: it is kept in response->body. Borrowed, only write is
	 * called */
	struct body_sink *sink;
};

struct http_response {
	int status;
	/* capped at 16 MiB; error bodies always land here (capped at 64 KiB) */
	struct buffer body;
	char etag[128]; /* without quotes; "" when absent */
	char request_id[64];
	char digest[48];         /* x-deltabucket-digest, in its text form; "" when absent */
	char file_hash[72];      /* x-deltabucket-file-hash, the same way */
	bool is_derived;         /* x-deltabucket-derived */
	uint64_t content_length; /* of a HEAD or GET; UINT64_MAX when unknown */
	char location[512];
	char link[2048];   /* Link; "" when absent */
	int retry_after_s; /* -1 when absent */
};

struct http_client *http_client_new(const struct http_client_options *options, struct error *err);
void http_client_free(struct http_client *client);
/* 0 when any HTTP status came back whole (an error's body may be cut at its cap); -1 with untrusted
 * for a certificate, upstream (or the sink's or source's own error) otherwise, also when a server
 * of HTTPS was asked in plain HTTP and says so. A source that ends before source_size gives
 * incomplete_body. Redirects come back as they are. `response` must be released with
 * http_response_release in both cases. */
int http_client_send(struct http_client *client, const struct http_request *request,
	struct http_response *response, struct error *err);
/* Makes a blocked http_client_send (within about a second) and every later one return with busy.
 * From any thread or a signal-watching one. */
void http_client_cancel(struct http_client *client);
void http_response_release(struct http_response *response);

#endif
