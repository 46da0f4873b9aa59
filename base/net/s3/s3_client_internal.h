/* What the files of the client share: the client, and how a request gets its answer (s3_sender.c).
 */
#ifndef BASE_NET_S3_S3_CLIENT_INTERNAL_H
#define BASE_NET_S3_S3_CLIENT_INTERNAL_H

#include "base/net/s3/s3_answer.h"
#include "base/net/s3/s3_client.h"
#include "base/thread/lock.h"

enum { S3_TARGET_MAX_BYTES = 16 * 1024 };

struct s3_connection {
	struct http_client *http;
	bool is_used;
};

struct s3_client {
	struct s3_client_options options; /* with the defaults filled in; its texts are not kept */
	char *endpoint;                   /* for messages */
	char *bucket_path;                /* "/BUCKET", encoded */
	char *prefix;                     /* not encoded */
	struct lock lock;                 /* guards all that follows */
	struct lock_condition freed;      /* a connection */
	struct lock_condition cancelled;
	struct s3_connection *connections; /* options.connections of them */
	bool is_cancelled;
	int64_t answered_ms; /* monotonic; when the last answer came; -1: none has */
	bool is_down;        /* a request had no answer, however often it was sent */
	bool is_probing;     /* while it is down: a request tries */
	int64_t probe_ms;    /* while it is down: no request tries before */
	struct error why;    /* it is down */
};

struct s3_request {
	const char *method;
	const char *target;
	struct span body;
	const char *header; /* one more; NULL: none */
	/* the body of a 200 may be an error */
	bool may_hide_error;
	struct body_sink *sink;                  /* of a 2xx; NULL: the body is kept */
	void (*restart)(struct body_sink *sink); /* before each try; not NULL with a sink */
};

/* Sends it, if need be again. Returns 0 for an answer of 2xx that hides no error; else -1 with the
 * error, and the answer as far as there is one. Release the answer in all cases. */
int s3_sender_send(struct s3_client *client, const struct s3_request *request,
	struct s3_answer *answer, struct error *err);

/* Puts the target of an object into `out`, which is initialised here; `query` may be "". */
int s3_client_target(const struct s3_client *client, const char *name, const char *query,
	struct buffer *out, struct error *err);

#endif
