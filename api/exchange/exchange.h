/* One request and its reply, as handlers see them: the only interface between the protocol faces
 * and HTTP. server/listener implements it over libmicrohttpd; tests/unit/fake_exchange fakes it.
 *
 * A handler has up to three steps, which its route names (api/exchange/route.h):
 *   begin   the headers are here: parse, authorise, check conditions. Gives a reply, a body sink or a wait.
 *   finish  the body is complete (the sink's finish gave 0).
 *   resume  the wait has ended.
 * A step returns what comes next. `begin` of a route with a body never waits; it accepts or
 * replies. State between steps lies in the arena (exchange->state), which ends with the exchange,
 * and in the call that the exchange waits for (exchange->call). `release` frees everything else.
 * The steps run on the exchange's reactor thread, except `finish` of a large body (body_work.h).
 * Other threads may call only exchange_wake and exchange_hang_up. */
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
	NEXT_WAIT   /* exchange_wake will be called once, then `resume` comes */
};
struct exchange;
struct exchange_ops { /* the transport */
	/* The value of a request header, repeats joined by ", "; {NULL,0} when absent. `name` is in
	 * lower case. */
	struct span (*header)(struct exchange *exchange, const char *name);
	/* Calls take for every header (name as sent). */
	void (*each_header)(struct exchange *exchange,
		void (*take)(void *taker, struct span name, struct span value), void *taker);
	void (*wake)(struct exchange *exchange);
	/* Ends the connection without a reply. From any thread, while the exchange exists. */
	void (*cut)(struct exchange *exchange);
	/* the client's address as text, in the arena; NULL when that is full */
	const char *(*client)(struct exchange *exchange);
};

enum {
	/* the most that an object can need: 2 KiB of metadata, whose headers came within 8 KiB, and
	 * the headers of every reply */
	EXCHANGE_REPLY_HEADERS_MAX = 640,
	EXCHANGE_ARENA_BYTES = 64 * 1024 * 1024,
	EXCHANGE_ERROR_FIELDS_MAX = 12,
	EXCHANGE_ERROR_FIELD_MAX_BYTES = 16 * 1024
};

/* A detail of a failure beside its sentence. On the S3 face it is a child of <Error>. */
struct error_field {
	const char *name; /* as S3 spells it; static */
	struct span value;
};

struct reply {
	int status;
	const char *content_type; /* NULL: none */
	struct span body;         /* arena, static or `bytes`; when source is NULL */
	/* owned, from exchange_reply_buffer; the transport releases it when the exchange ends */
	struct buffer bytes;
	struct body_source *source; /* streamed body; the transport closes it */
	uint64_t length;            /* of the streamed body, or announced by HEAD and 304 */
	bool length_known;          /* HEAD without body, 304: announce `length` */
	bool is_endless;            /* no length is known in advance */
	bool may_wait;              /* `source` may return SOURCE_WAIT */
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
	struct span target;      /* as sent, still encoded: path and query, or a whole URL */
	struct span path;        /* as sent, still encoded */
	struct span query;       /* as sent, without '?' */
	struct query_parameter { /* filled when the first one is asked for */
		/* decoded; a pair whose name is not valid percent-encoding is left out */
		struct span name;
		struct span value; /* as sent */
	} * query_parameters;
	size_t query_parameter_count;
	bool has_length;
	uint64_t length;        /* Content-Length, when has_length */
	bool chunked;           /* Transfer-Encoding: chunked */
	bool secure;            /* over TLS */
	bool differs_from_host; /* the request line has another host than Host, which is ignored */
	/* set by identify: the URL was presigned with V4, so its x-amz-* parameters stand for
	 * headers */
	bool hoists_headers;
	bool control;  /* came over DIR/control.sock from the server's own user, who is root */
	uint64_t peer; /* a hash of the client's address */
	const struct face *face;   /* of the matched route; never NULL */
	const struct route *route; /* NULL before routing */
	struct span parameters[4]; /* of the route's pattern, decoded */
	size_t parameter_count;
	/* of enum method: those of all routes of the path, when route is NULL after routing */
	int allowed_methods;
	/* the path with the bucket in front, also on a virtual host; set with the route */
	struct span resource;
	const struct principal *principal; /* the caller; NULL: anonymous */
	/* whose cookie named the caller (session_cookie.h); NULL: something else did */
	const struct session_record *session;
	/* the rights of the Xet token that came with the request (xet_token.h); NULL: none came */
	const struct xet_token *transfer;
	/* the bucket that the caller may use; 0: all (root), or the route names none */
	int64_t bucket_id;
	int64_t shared_until_s; /* the end of its shared URL (shared_url.h); 0: it has none */
	int64_t judged_version; /* row whose own ACL alone gives access; 0: something else does */
	int payload_rule; /* of enum payload_rule (payload.h), set by identify with what follows */
	uint8_t payload_sha256[32];
	bool has_body_length; /* the content's own length is known before it comes: */
	/* X-Amz-Decoded-Content-Length of an aws-chunked body, else Content-Length */
	uint64_t body_length;
	enum checksum_algorithm trailer_algorithm; /* announced in X-Amz-Trailer */
	/* the start of the chain of chunk signatures; NULL unless the rule is a signed one */
	struct chunk_signature *chunk_seed;
	/* the checksum in the trailer, from `finish` on; CHECKSUM_NONE: none came */
	struct checksum trailer;
	struct body_sink *sink;      /* set by exchange_accept */
	struct buffer small_body;    /* collected by exchange_accept_small */
	struct share_hold body_hold; /* the share for the bytes of small_body */
	struct long_wait *wait;      /* long_wait.h; NULL: none */
	/* `finish` runs or ran on the pool (body_work.h); NULL: it does not */
	struct body_job *body_job;
	struct error_field error_fields[EXCHANGE_ERROR_FIELDS_MAX]; /* exchange_error_field */
	size_t error_field_count;
	struct reply reply;
	/* the last call that the exchange waited for (exchange_await); NULL: none */
	struct call *call;
	void *state; /* the handler's */
	/* Frees what `state` owns outside the arena. Called once at the end, with or without a
	 * reply. Every wait has been woken by then, but `resume` may not have run, because the
	 * client may be gone. */
	void (*release)(struct exchange *exchange);
	void (*sent)(struct exchange *exchange); /* before `release`, if all was sent */
	/* the client has hung up during a long wait, so no reply is made */
	_Atomic bool is_gone;
	/* Called by exchange_hang_up: wakes the exchange soon. From any thread. Set by code that
	 * waits long; NULL: the wait ends by itself. */
	void (*hang_up)(struct exchange *exchange);
	/* State, resume and release of code that handlers share and that waits too
	 * (object_reply.c). While `resume` is set here, it replaces that of the route. */
	struct {
		void *state;
		enum next (*resume)(struct exchange *exchange);
		void (*release)(struct exchange *exchange);
	} shared;
};

/* The bucket of the route, the one that the caller was authorised for. */
struct bucket_ref exchange_bucket(const struct exchange *exchange);
/* Becomes the owner of the call, unless it is exchange->call already, and starts it. Returns
 * NEXT_WAIT; `resume` comes when the call has ended. The call is freed with the exchange, or when
 * another call replaces it. */
enum next exchange_await(struct exchange *exchange, struct call *call);
/* Frees exchange->call now: for sinks whose body is aborted. */
void exchange_drop_call(struct exchange *exchange);

/* The decoded value of a query parameter (the first of its name), which lives as long as the
 * exchange. False when absent. */
bool exchange_query(struct exchange *exchange, const char *name, struct span *out_value);
/* The same, for the name in any case of letters. */
bool exchange_query_nocase(struct exchange *exchange, const char *name, struct span *out_value);
/* All of them in the order in which they came, without empty pairs. */
const struct query_parameter *exchange_query_parameters(
	struct exchange *exchange, size_t *out_count);
/* A request header (name in lower case); with hoists_headers also from the query. */
struct span exchange_header(struct exchange *exchange, const char *name);
/* Calls take for every header (name as sent) and for every hoisted one that has no header. */
void exchange_each_header(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker);

/* Sends the body through a body filter (body_filter.h) to `sink`. A declared length over
 * put_max_bytes is refused here: the sink is aborted and NEXT_REPLY returned. The sink is finished
 * or aborted exactly once. */
enum next exchange_accept(struct exchange *exchange, struct body_sink *sink);
/* Collects a small body; too_large over the cap. Its bytes count against the caller's share of
 * context->shares.bodies; busy when there is no room. `finish` reads it with exchange_body. */
enum next exchange_accept_small(struct exchange *exchange, size_t cap_bytes);
struct span exchange_body(const struct exchange *exchange);

/* Replies. Values of headers must be arena or static text. A NULL or too long value is dropped, and
 * so is a header beyond EXCHANGE_REPLY_HEADERS_MAX. */
void exchange_add_header(struct exchange *exchange, const char *name, const char *value);
/* Whether one was added by this name, spelt in the same way. */
bool exchange_has_reply_header(const struct exchange *exchange, const char *name);
enum next exchange_reply_empty(struct exchange *exchange, int status);
enum next exchange_reply_body(
	struct exchange *exchange, int status, const char *content_type, struct span body);
/* Takes the bytes out of the buffer, which is empty afterwards. A buffer that has failed gives 503,
 * because the reply does not fit its memory. */
enum next exchange_reply_buffer(
	struct exchange *exchange, int status, const char *content_type, struct buffer *body);
enum next exchange_reply_source(struct exchange *exchange, int status, const char *content_type,
	struct body_source *source, uint64_t length);
/* A body of unknown length, sent as the source gives it; never for HEAD. Such a source may wait, as
 * may one of known length with let_wait: it then calls exchange_wake, as after NEXT_WAIT, and is
 * read again on the exchange's thread. It may be closed at any time except while it waits. */
enum next exchange_reply_stream(struct exchange *exchange, int status, const char *content_type,
	struct body_source *source);
/* Replies with `err` in the form of the face. This is the one place that logs a 5xx, with the
 * request id. Headers added before stay. Busy and upstream get a Retry-After. */
enum next exchange_fail(struct exchange *exchange, const struct error *err);
/* Seconds after which a refused caller should try again: 2 to 5, so that not all return at once. */
unsigned exchange_pause_seconds(const struct exchange *exchange);
/* For transports, when a sink failed: as exchange_fail. But if the error is untouched and a reply
 * is set, the handler set it, and that reply stays. */
enum next exchange_fail_body(struct exchange *exchange, const struct error *err);
/* Adds a detail to the failure, before exchange_fail. The value is copied; a value over 16 KiB is
 * left out. It must never be a secret or a correct signature. */
void exchange_error_field(struct exchange *exchange, const char *name, struct span value);
/* in hex, separated by spaces */
void exchange_error_bytes(struct exchange *exchange, const char *name, struct span value);
void exchange_error_number(struct exchange *exchange, const char *name, uint64_t value);

/* For transports, at the end: calls both `release`s, frees the call and gives back the shares. */
void exchange_release(struct exchange *exchange);
/* For transports: the client of a waiting exchange has hung up. From any thread, while the exchange
 * waits; to be repeated at its next wait. */
void exchange_hang_up(struct exchange *exchange);

/* From any thread, exactly once for each NEXT_WAIT or SOURCE_WAIT, before or after the step
 * returned it. */
void exchange_wake(struct exchange *exchange);
/* The same, as a callback with the exchange as owner. */
void exchange_wake_owner(void *exchange);

#endif
