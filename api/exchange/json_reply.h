/* JSON replies of the faces for Hub clients. Errors have the form {"error": text}. */
#ifndef API_EXCHANGE_JSON_REPLY_H
#define API_EXCHANGE_JSON_REPLY_H

#include "api/exchange/exchange.h"

/* Takes the bytes out of the buffer. */
enum next json_reply(struct exchange *exchange, int status, struct buffer *body);
/* Sets the body {"error": text} of a reply whose status is set already. `code` is added unless it
 * is NULL. */
void json_reply_error(struct exchange *exchange, struct span text, const char *code);
/* The text without the full stop at its end, for clients that add one. In the arena. */
const char *json_reply_without_stop(struct exchange *exchange, const char *text);
/* A copy of the text for a header, with '?' for all that is not printable ASCII. In the arena; NULL
 * when that is full. */
const char *json_reply_header_text(struct exchange *exchange, const char *text);

/* Adds the pause before the next try to a reply with the status JSON_REPLY_BUSY, in the headers
 * that Hub clients read: RateLimit, RateLimit-Policy and Retry-After. Does nothing for other
 * replies. */
enum { JSON_REPLY_BUSY = 429 };
void json_reply_pace(struct exchange *exchange);

/* `prepare` of faces: adds X-Request-Id to every reply. Clients show it beside an error. */
void json_reply_prepare(struct exchange *exchange);

#endif
