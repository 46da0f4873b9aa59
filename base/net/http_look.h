/* What one request shows of the way to its server: the address that was connected to, how far the
 * request came and when, the certificate, and the server's clock. For programs that tell a person
 * what is wrong there. A request with a look makes a connection of its own. */
#ifndef BASE_NET_HTTP_LOOK_H
#define BASE_NET_HTTP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

enum http_reach {
	HTTP_REACH_NOTHING,  /* the host's name has no address */
	HTTP_REACH_ADDRESS,  /* nobody took the connection */
	HTTP_REACH_PEER,     /* connected; TLS, where there is one, failed */
	HTTP_REACH_SECURED,  /* no answer came */
	HTTP_REACH_ANSWERED, /* with any status */
};

struct http_look {
	enum http_reach reach;
	char address[64];   /* "127.0.0.1:9000", of a proxy where one was used; "" when unknown */
	bool through_proxy; /* to a server of HTTPS; of others it is not known */
	/* microseconds since the request began; 0: it did not come so far */
	int64_t named_us, connected_us, secured_us, answered_us;
	int64_t date_ms; /* the server's clock, whole seconds; -1 when absent */
	bool has_certificate;
	char subject[256];
	char issuer[256];
	int64_t ends_ms; /* of the certificate; -1 when unknown */
};

#endif
