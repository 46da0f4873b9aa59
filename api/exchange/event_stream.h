/* A reply that is a stream of server-sent events and ends when the server stops, when another
 * caller needs its place, or when its owner says so. The owner prints some at a time into `out`,
 * and more only when that is sent, so a slow reader takes no memory here. All on the exchange's
 * thread. */
#ifndef API_EXCHANGE_EVENT_STREAM_H
#define API_EXCHANGE_EVENT_STREAM_H

#include "api/exchange/long_wait.h"
#include "api/exchange/server_event.h"

struct event_stream;
struct event_stream_kind {
	/* With an empty `out`. True: it printed some, or has ended, or is to be called again.
	 * False: the exchange waits, and may have been woken already, so nothing of it is touched
	 * after that. */
	bool (*advance)(struct event_stream *stream);
	/* Prints the event that tells the client to connect again: the server stops, and it is to
	 * come to its successor, or another caller got the place of the stream. */
	void (*leave)(struct event_stream *stream);
};

struct event_stream { /* first in its owner, which lies in the exchange's arena */
	struct body_source source;
	const struct event_stream_kind *kind;
	struct exchange *exchange;
	struct long_wait wait; /* for all waits of the stream */
	struct buffer out;     /* printed and not sent */
	size_t out_at;
	bool has_ended;  /* the owner sets it; `out` is still sent */
	int64_t ping_ms; /* when the next ping is due, on the monotonic clock */
};

void event_stream_init(struct event_stream *stream, const struct event_stream_kind *kind,
	struct exchange *exchange);
/* Takes the place of the stream and replies with it. Fails with busy when there is none. */
enum next event_stream_reply(struct event_stream *stream);
/* Replies with the failure instead. */
enum next event_stream_fail(struct event_stream *stream, const struct error *err);

/* For `advance`: wait so long. The second lets others have their turn. Return false. */
bool event_stream_pause(struct event_stream *stream, int64_t ms);
bool event_stream_yield(struct event_stream *stream);
/* Prints a ping if one is due. */
void event_stream_ping(struct event_stream *stream);
int64_t event_stream_now_ms(const struct event_stream *stream);

/* While the scope is open the exchange has an arena of the scope, which is freed with it, and what
 * it learns of its caller is forgotten then. */
struct event_scope {
	struct arena *own_arena;
	const struct principal *own_principal;
	const struct session_record *own_session;
};
void event_scope_open(struct event_scope *scope, struct exchange *exchange);
void event_scope_close(const struct event_scope *scope, struct exchange *exchange);

#endif
