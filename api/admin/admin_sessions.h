/* The console's sessions over HTTP: sign-in, the caller's own session, sign-out, the list, and
 * links that sign in once. docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_SESSIONS_H
#define API_ADMIN_ADMIN_SESSIONS_H

#include "api/exchange/exchange.h"

/* POST /-/sessions */
enum next admin_sign_in_begin(struct exchange *exchange);
enum next admin_sign_in_finish(struct exchange *exchange);
enum next admin_sign_in_resume(struct exchange *exchange);
/* GET and DELETE /-/session */
enum next admin_session_get_begin(struct exchange *exchange);
enum next admin_session_end_begin(struct exchange *exchange);
enum next admin_session_end_resume(struct exchange *exchange);
/* GET /-/sessions, DELETE /-/sessions/{id} */
enum next admin_sessions_list_begin(struct exchange *exchange);
enum next admin_sessions_end_begin(struct exchange *exchange);
enum next admin_sessions_end_resume(struct exchange *exchange);
/* POST /-/session-links */
enum next admin_session_link_begin(struct exchange *exchange);
enum next admin_session_link_finish(struct exchange *exchange);
enum next admin_session_link_resume(struct exchange *exchange);

/* The body of GET /-/session: who the caller is, and what it may do. */
void admin_session_print(struct exchange *exchange, struct buffer *out);

#endif
