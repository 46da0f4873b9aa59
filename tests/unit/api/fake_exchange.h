/* An exchange without HTTP. Tests give method, target, headers and body, and read the reply.
 * Handlers run as under the listener, and waits are real, so stores with threads work. One thread
 * for each fake, except wakes. */
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
	void (*before_finish)(void); /* called while the body arrives; NULL: nothing */
	/* a run leaves a reply that may wait to fake_exchange_read, which reads it piece by piece */
	bool leaves_body;
	/* the reply waits, or a test began a request that waits */
	bool is_waiting;
	bool is_routed;   /* by fake_exchange_run */
	int waits;        /* how often a handler waited (NEXT_WAIT and SINK_WAIT) */
	struct lock lock; /* guards woken */
	struct lock_condition condition;
	int woken;
	struct buffer body;  /* of the reply in any form, after a run */
	_Atomic bool is_cut; /* the connection was ended by `cut` */
	bool body_failed;    /* the reply's source gave an error */
};

/* `target` is path and query as sent. `context` is borrowed; NULL: an empty one with a real clock,
 * without a store and with a limit of 5 GiB. The face is that of S3 until the router has chosen. */
struct fake_exchange *fake_exchange_new(
	const struct api_context *context, enum method method, const char *target);
/* As at the end of the connection: waits for the end of a wait, aborts the sink, closes the source,
 * and releases. */
void fake_exchange_free(struct fake_exchange *fake);
/* Adds a request header. */
void fake_exchange_add(struct fake_exchange *fake, const char *name, const char *value);

/* Runs the whole request: router_begin, the body (with Content-Length unless has_length is set),
 * finish, waits, resume. Then reads the body of the reply. Returns the status. */
int fake_exchange_run(struct fake_exchange *fake, struct span body);
/* The same without the router: calls begin, finish and resume of the route. */
int fake_exchange_run_route(
	struct fake_exchange *fake, const struct route *route, struct span body);
/* Adds the current bytes of a reply that may wait to `body`. From the second call on, waits first until
 * there may be more. False at the end. */
bool fake_exchange_read(struct fake_exchange *fake);
/* Begins through the router and sends `part` of a body of `length` bytes. Only fake_exchange_free
 * may follow, as after a lost connection. */
void fake_exchange_cut(struct fake_exchange *fake, struct span part, uint64_t length);

/* NULL when absent. `name` in any case. */
const char *fake_exchange_reply_header(const struct fake_exchange *fake, const char *name);

#endif
