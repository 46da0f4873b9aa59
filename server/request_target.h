/* The target of a request line (RFC 9112, 3.2): a path with its query, or the absolute form, a
 * whole URL, which some clients send to every server as if it were a proxy. */
#ifndef SERVER_REQUEST_TARGET_H
#define SERVER_REQUEST_TARGET_H

#include "base/span.h"

struct request_target {
	/* the host, and the port if there is one, of an absolute form; else empty */
	struct span authority;
	struct span path;  /* still encoded; "/" where an absolute form has none */
	struct span query; /* still encoded, without '?'; empty where there is none */
	const char *fault; /* what is wrong, as a sentence; NULL: nothing */
};

/* The parts lie in `sent`. */
struct request_target request_target_parse(struct span sent);
/* Whether two authorities name the same: case does not count, nor does a port of 80 or 443. */
bool request_target_is_same_host(struct span a, struct span b);

#endif
