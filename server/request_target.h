/* The target of a request line (RFC 9112, 3.2): a path with its query, or a full URL (the absolute
 * form), which some clients send to every server as if it were a proxy. */
#ifndef SERVER_REQUEST_TARGET_H
#define SERVER_REQUEST_TARGET_H

#include "base/span.h"

struct request_target {
	/* the host, with the port if there is one, of an absolute form; otherwise empty */
	struct span authority;
	struct span path;  /* still encoded; "/" if an absolute form has none */
	struct span query; /* still encoded, without '?'; empty if there is none */
	const char *fault; /* the fault, as a sentence; NULL: none */
};

/* The spans point into `sent`. */
struct request_target request_target_parse(struct span sent);
/* Whether two authorities name the same host. The case of letters and the ports 80 and 443 are
 * ignored. */
bool request_target_is_same_host(struct span a, struct span b);

#endif
