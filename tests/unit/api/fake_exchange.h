/* An exchange without HTTP: tests give method, target, headers and body, and read the reply.
 * Handlers run exactly as under the listener; waits are real, so stores with threads work. One
 * thread per fake, but for wakes. */
#ifndef TESTS_UNIT_API_FAKE_EXCHANGE_H
#define TESTS_UNIT_API_FAKE_EXCHANGE_H

#include "api/exchange/exchange.h"
#include "api/route/router.h"
#include "base/thread/lock.h"

enum { FAKE_HEADERS_MAX = 512 };

struct fake_exchange {
	struct exchange exchange;
	struct {
		struct span name;
		struct span value;
	} headers[FAKE_HEADERS_MAX];
	size_t header_count;
	char *target;
	size_t piece_bytes;          /* the body comes in pieces of this size; 0: at once */
	void (*before_finish)(void); /* what happens while the body comes; NULL: nothing */
	/* a run does not read an endless reply: fake_exchange_read does, piece by piece */
	bool leaves_body;
	/* the endless reply came to a wait, or a test began a request that waits */
	bool is_waiting;
	bool is_routed;   /* fake_exchange_run */
	int waits;        /* how often a handler waited (NEXT_WAIT and SINK_WAIT) */
	struct lock lock; /* guards woken */
	struct lock_condition condition;
	int woken;
	struct buffer body;  /* of the reply, whatever its form; after a run */
	_Atomic bool is_cut; /* somebody ended the connection */
	bool body_failed;    /* the reply's source gave an error */
};

/* `target` is path and query as sent. `context` is borrowed; NULL: an empty one with a real clock,
 * no store and a limit of 5 GiB. The face is S3's until the router has chosen. */
struct fake_exchange *fake_exchange_new(
	const struct api_context *context, enum method method, const char *target);
/* as when the connection ends: waits out a wait, aborts the sink, closes the source, releases */
void fake_exchange_free(struct fake_exchange *fake);
/* a request header */
void fake_exchange_add(struct fake_exchange *fake, const char *name, const char *value);

/* The whole way: router_begin, the body (Content-Length set when has_length was not), finish,
 * waits, resume; then reads the reply's body. The status. */
int fake_exchange_run(struct fake_exchange *fake, struct span body);
/* The same for handlers without the router: the row's begin, finish and resume. */
int fake_exchange_run_route(
	struct fake_exchange *fake, const struct route *route, struct span body);
/* Adds to `body` what an endless reply has now; from the second time on waits first until there may
 * be more. False at its end. */
bool fake_exchange_read(struct fake_exchange *fake);
/* Begins through the router and sends `part` of a body of `length` bytes, then the connection is as
 * good as lost: free comes next. */
void fake_exchange_cut(struct fake_exchange *fake, struct span part, uint64_t length);

/* NULL when absent; name in any case */
const char *fake_exchange_reply_header(const struct fake_exchange *fake, const char *name);

#endif
