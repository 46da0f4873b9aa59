/* A small HTTP server on 127.0.0.1 that answers as the test says: what commands and the calls
 * below them must make of a server's answers. A thread per connection; one request at a time. */
#ifndef TESTS_UNIT_CLIENT_WEB_FIXTURE_H
#define TESTS_UNIT_CLIENT_WEB_FIXTURE_H

#include "base/buffer.h"

struct web_request {
	const char *method;
	const char *target;
	struct span body;
	const char *head; /* of the whole request, as it came */
};
struct web_reply {
	int status; /* 0: the connection is cut before an answer */
	struct buffer body;
	char headers[4096]; /* more lines, each ended by CRLF */
};
/* Fills the reply, which stands at status 404 with an empty body. */
typedef void web_answer_fn(void *owner, const struct web_request *request, struct web_reply *reply);

struct web;
struct web *web_start(web_answer_fn *answer, void *owner);
void web_stop(struct web *web);
/* Waits for the connections to end, once their clients have closed them. To be called before fork:
 * what a thread does in the allocator at that moment stays locked in the child. */
void web_settle(struct web *web);
const char *web_endpoint(const struct web *web);
/* All requests so far: "METHOD TARGET\n" each, and of those with a small body the body, too:
 * "METHOD TARGET BODY\n". Valid until the next request. */
const char *web_trace(const struct web *web);
void web_forget_trace(struct web *web);

#endif
