/* One request and its reply, as handlers see it: the only door between the protocol faces and
 * whatever speaks HTTP. server/listener implements it over libmicrohttpd, tests/unit/fake_exchange
 * fakes it.
 *
 * A handler is a row of up to three named steps, each read straight down (api/route/router.h):
 *   begin   headers are here: parse, authorise, preconditions. Gives a reply, a body sink or a wait.
 *   finish  the body is whole (the sink's finish gave 0).
 *   resume  what it waited for is here.
 * A route with a body (router.h) never waits in `begin`; it accepts or replies. A step returns what
 * comes next. State between steps lies in the arena (exchange->state), which dies with the
 * exchange, and in the call that it waits for (exchange->call). `release` frees what else there is.
 * All steps of one exchange run on its reactor thread; exchange_wake alone comes from elsewhere. */
#ifndef API_EXCHANGE_EXCHANGE_H
#define API_EXCHANGE_EXCHANGE_H

#include "api/exchange/context.h"
#include "api/exchange/error_map.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/digest/checksum.h"
#include "base/stream.h"
#include "storage/buckets/bucket.h"
#include "storage/core/call.h"

enum method {
	METHOD_GET = 1,
	METHOD_HEAD = 2,
	METHOD_PUT = 4,
	METHOD_POST = 8,
	METHOD_DELETE = 16,
	METHOD_OPTIONS = 32,
	METHOD_OTHER = 64
};

enum next {
	NEXT_REPLY, /* a reply was set */
	NEXT_BODY,  /* exchange_accept was called: the body comes, then `finish` */
	NEXT_WAIT   /* somebody will call exchange_wake once, then `resume` comes */
};
struct body_job;
struct chunk_signature;
struct xet_token;
struct long_wait;
struct exchange;
struct exchange_ops { /* the transport */
	/* Value of a request header, repeats joined by ", "; {NULL,0} when absent. Name in lower
	 * case. */
	struct span (*header)(struct exchange *exchange, const char *name);
	/* Calls take for every header (name as sent). */
	void (*each_header)(struct exchange *exchange,
		void (*take)(void *taker, struct span name, struct span value), void *taker);
	void (*wake)(struct exchange *exchange);
	/* Ends the connection without a reply. From any thread, while the exchange is there. */
	void (*cut)(struct exchange *exchange);
};

enum {
	/* the most an object can have: 2 KiB of metadata in headers that came within 8 KiB, and
	 * those of every reply */
	EXCHANGE_REPLY_HEADERS_MAX = 640,
	EXCHANGE_ARENA_BYTES = 64 * 1024 * 1024,
	EXCHANGE_ERROR_FIELDS_MAX = 12,
	EXCHANGE_ERROR_FIELD_MAX_BYTES = 16 * 1024
};

/* a detail of a failure beside its sentence: on the S3 face a child of <Error> */
struct error_field {
	const char *name; /* as S3 spells it; static */
	struct span value;
};

struct reply {
	int status;
	const char *content_type; /* NULL: none */
	struct span body;         /* arena, static or `bytes`; when source is NULL */
	/* what exchange_reply_buffer took over; the transport releases it when the exchange ends */
	struct buffer bytes;
	struct body_source *source; /* streamed body; the transport closes it */
	uint64_t length;            /* of the streamed body, or what HEAD and 304 announce */
	bool length_known;          /* HEAD without body, 304: announce `length` */
	bool is_endless;            /* `source` goes on until it says so, and may wait */
	struct reply_header {
		const char *name;
		const char *value;
	} * headers; /* in the arena */
	size_t header_count;
	size_t header_capacity;
};

struct exchange {
	const struct exchange_ops *ops;
	const struct api_context *context; /* store, keyring, settings, clock, log, metrics */
	struct arena *arena;
	char request_id[33];
	enum method method;
	/* as sent, still encoded: path and query, or a whole URL */
	struct span target;
	struct span path;        /* as sent, still encoded */
	struct span query;       /* as sent, without '?' */
	struct query_parameter { /* of the query, once somebody asked for one */
		/* decoded; a pair whose name cannot be is left out */
		struct span name;
		struct span value; /* as sent */
	} * query_parameters;
	size_t query_parameter_count;
	bool has_length;
	uint64_t length; /* Content-Length, when has_length */
	bool chunked;    /* Transfer-Encoding: chunked */
	bool secure;     /* over TLS */
	/* the request line names another host than the header Host, which is passed over */
	bool differs_from_host;
	/* set by identify: a URL presigned with V4, whose x-amz-* parameters are headers that its
	 * maker hoisted */
	bool hoists_headers;
	/* came over DIR/control.sock from the server's own user: is root */
	bool control;
	uint64_t peer;             /* a hash of the client's address */
	const struct face *face;   /* error shape of the matched route (never NULL) */
	const struct route *route; /* NULL before routing */
	struct span parameters[4]; /* of the route's pattern, decoded */
	size_t parameter_count;
	/* of enum method, of all routes of the path, when route is NULL after routing */
	int allowed_methods;
	/* the path with the bucket in front, also on a virtual host; set with the route */
	struct span resource;
	const struct principal *principal; /* who asks; NULL: anonymous */
	/* what a token of the Xet face was given for (xet_token.h); NULL: there is none */
	const struct xet_token *transfer;
	/* of the bucket that the caller was let into; 0: all of them (root), or the route names
	 * none */
	int64_t bucket_id;
	/* the row of the version whose own ACL alone let the caller in; 0: something else did */
	int64_t judged_version;
	int payload_rule; /* of enum payload_rule (payload.h), set by identify with what follows */
	uint8_t payload_sha256[32];
	bool has_body_length; /* the content's own length is known before it comes: */
	/* X-Amz-Decoded-Content-Length of an aws-chunked body, else Content-Length */
	uint64_t body_length;
	enum checksum_algorithm trailer_algorithm; /* announced in X-Amz-Trailer */
	/* where the chain of chunk signatures begins; NULL unless the rule is a signed one */
	struct chunk_signature *chunk_seed;
	/* from `finish` on: what the trailer brought; CHECKSUM_NONE: nothing */
	struct checksum trailer;
	struct body_sink *sink;      /* set by exchange_accept */
	struct buffer small_body;    /* what exchange_accept_small collected */
	struct share_hold body_hold; /* its bytes */
	struct long_wait *wait;      /* long_wait.h; NULL: none */
	/* body_work.h: `finish` runs elsewhere, or ran there; NULL: it does not */
	struct body_job *body_job;
	struct error_field error_fields[EXCHANGE_ERROR_FIELDS_MAX]; /* exchange_error_field */
	size_t error_field_count;
	struct reply reply;
	/* what it waits for, or has waited for (exchange_await); NULL: nothing */
	struct call *call;
	void *state; /* the handler's */
	/* Frees what `state` holds outside the arena; called once at the end, replied or not. Every
	 * wait has been woken by then, but `resume` need not have run: the client may be gone. */
	void (*release)(struct exchange *exchange);
	/* the client has hung up during a long wait: nothing is told any more */
	_Atomic bool is_gone;
	/* The client has hung up while the exchange waits (exchange_hang_up): sees to it that the
	 * wait ends soon, by its wake. From any thread; set by what waits long, NULL: the wait ends
	 * by itself. */
	void (*hang_up)(struct exchange *exchange);
	/* The same three of what handlers share and what waits as well (object_reply.c). While
	 * `resume` is set here, it is called in place of the route's. */
	struct {
		void *state;
		enum next (*resume)(struct exchange *exchange);
		void (*release)(struct exchange *exchange);
	} shared;
};

/* The bucket of the route, the one that the caller was let into. */
struct bucket_ref exchange_bucket(const struct exchange *exchange);
/* Takes a call over, unless exchange->call is it already, and starts it. NEXT_WAIT: `resume` comes
 * when it has ended. It is freed with the exchange, or when another call takes its place. */
enum next exchange_await(struct exchange *exchange, struct call *call);
/* Frees exchange->call now: for sinks whose body is aborted. */
void exchange_drop_call(struct exchange *exchange);

/* Decoded value of a query parameter (first of its name), which lives as long as the exchange;
 * false when absent. */
bool exchange_query(struct exchange *exchange, const char *name, struct span *out_value);
/* the name in any case */
bool exchange_query_nocase(struct exchange *exchange, const char *name, struct span *out_value);
/* All of them, in the order that they were sent in; empty pairs are left out. */
const struct query_parameter *exchange_query_parameters(
	struct exchange *exchange, size_t *out_count);
/* A request header (name in lower case); with hoists_headers also from the query. */
struct span exchange_header(struct exchange *exchange, const char *name);
/* Calls take for every header (name as sent), and for every hoisted one that is no header too. */
void exchange_each_header(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker);

/* `sink` gets the body behind a body filter (body_filter.h): handlers add none. A declared length
 * over put_max_bytes is refused here: the sink is aborted and NEXT_REPLY comes back. The sink is
 * finished or aborted exactly once. */
enum next exchange_accept(struct exchange *exchange, struct body_sink *sink);
/* Collects a small body (cap in bytes, over it too_large), which counts as the caller's share of
 * context->shares.bodies (busy when there is no room); `finish` finds it with exchange_body. */
enum next exchange_accept_small(struct exchange *exchange, size_t cap_bytes);
struct span exchange_body(const struct exchange *exchange);

/* Replies. Values of headers must be arena or static text; a NULL or over-long value is dropped,
 * and so is a header beyond EXCHANGE_REPLY_HEADERS_MAX. */
void exchange_add_header(struct exchange *exchange, const char *name, const char *value);
enum next exchange_reply_empty(struct exchange *exchange, int status);
enum next exchange_reply_body(
	struct exchange *exchange, int status, const char *content_type, struct span body);
/* Takes over a buffer's bytes; the buffer is empty behind it. One that has failed gives 503: the
 * reply does not fit its memory. */
enum next exchange_reply_buffer(
	struct exchange *exchange, int status, const char *content_type, struct buffer *body);
enum next exchange_reply_source(struct exchange *exchange, int status, const char *content_type,
	struct body_source *source, uint64_t length);
/* A body whose length nobody knows: sent as it comes. The source may give SOURCE_WAIT; then
 * exchange_wake is due, as after NEXT_WAIT, and it is read again on the exchange's thread. Closed
 * at any time but while it waits. Never for HEAD. */
enum next exchange_reply_stream(struct exchange *exchange, int status, const char *content_type,
	struct body_source *source);
/* The face's own error shape for `err`; 5xx are logged here, once, with the request id. Headers
 * added before stay. Busy gets a Retry-After when there is none. */
enum next exchange_fail(struct exchange *exchange, const struct error *err);
/* When a caller that finds the server busy shall come again: two to five seconds, so that those who
 * were sent away together do not come back together. */
unsigned exchange_pause_seconds(const struct exchange *exchange);
/* For transports, when a sink failed: the same, but a handler that has set the reply itself has
 * left the error untouched; that reply stays. */
enum next exchange_fail_body(struct exchange *exchange, const struct error *err);
/* Whoever fails may say more than a sentence, before exchange_fail. The value is copied; one over
 * 16 KiB is left out. Never a secret, nor a signature that would have been right. */
void exchange_error_field(struct exchange *exchange, const char *name, struct span value);
/* in hex, separated by spaces */
void exchange_error_bytes(struct exchange *exchange, const char *name, struct span value);
void exchange_error_number(struct exchange *exchange, const char *name, uint64_t value);

/* For transports, at the end: calls both releases, and gives back what the exchange holds. */
void exchange_release(struct exchange *exchange);
/* For transports: the client of a waiting exchange has hung up. From any thread, while it waits;
 * again at its next wait. */
void exchange_hang_up(struct exchange *exchange);

/* From any thread, exactly once per NEXT_WAIT or SOURCE_WAIT (before or after the step returned
 * it). */
void exchange_wake(struct exchange *exchange);
/* The same, as a callback with the exchange as owner. */
void exchange_wake_owner(void *exchange);

#endif
