/* The cookie of the console: `deltabucket_session=KEYID.HEX`, where HEX are 32 random bytes; over
 * TLS with the prefix `__Host-`. The row of the session (storage/buckets/session.h) has their
 * HMAC-SHA256 with the secret of the key as its id. So nobody can make a cookie from the catalog,
 * and a session ends when its key is revoked or gets another secret.
 *
 * A browser sends a cookie also with requests that another site made it send. So a cookie counts
 * only beside the header `X-Deltabucket-Console: 1`, which another site cannot make a browser send:
 * it would ask first (CORS), and this server allows it to nobody. Any thread. */
#ifndef API_AUTH_SESSION_COOKIE_H
#define API_AUTH_SESSION_COOKIE_H

#include "api/exchange/exchange.h"
#include "storage/buckets/session.h"

enum { SESSION_COOKIE_BYTES = 32 };

struct session_cookie {
	struct span key_id;
	uint8_t bytes[SESSION_COOKIE_BYTES]; /* secret: wipe them */
};

/* Whether a cookie for the client of this request is Secure and has the prefix: the request came
 * over TLS, or the base URL begins with https (base_url.h). Only the one name counts then. */
bool session_cookie_is_secure(struct exchange *exchange);
/* Reads the value of the header Cookie, with texts in the arena. False when it has no session of
 * this kind, more than one, or one that is malformed. */
bool session_cookie_parse(
	struct span header, bool is_secure, struct arena *arena, struct session_cookie *out);
/* Appends the value of the header Set-Cookie. */
void session_cookie_print(const struct session_cookie *cookie, bool is_secure, struct buffer *out);
/* The same for a cookie that takes the session away from the browser. */
const char *session_cookie_none(bool is_secure);

/* The id of the session, from the key's secret. */
void session_cookie_id(
	const struct session_cookie *cookie, struct span secret, uint8_t out[SESSION_ID_BYTES]);

/* Whether the request has the header X-Deltabucket-Console. */
bool session_cookie_is_console(struct exchange *exchange);
/* Sets principal and session if the request has the cookie of a session that has not ended, beside
 * the header, on the admin and the steps face. With `is_use` the session's idle time begins again.
 * Without such a session it changes nothing and returns 0: the caller is anonymous. Fails when the
 * catalog cannot be read. */
int session_cookie_identify(struct exchange *exchange, bool is_use, struct error *err);

#endif
