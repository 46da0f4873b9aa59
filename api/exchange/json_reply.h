/* Replies and errors of the faces that Hub clients speak to: JSON, errors as {"error": text}. */
#ifndef API_EXCHANGE_JSON_REPLY_H
#define API_EXCHANGE_JSON_REPLY_H

#include "api/exchange/exchange.h"

/* Takes over the buffer's bytes. */
enum next json_reply(struct exchange *exchange, int status, struct buffer *body);
/* Sets the body {"error": text} of a reply whose status is set; with `code` where that is not
 * NULL. */
void json_reply_error(struct exchange *exchange, struct span text, const char *code);
/* The text as a header may hold it: printable ASCII alone. Arena. */
const char *json_reply_header_text(struct exchange *exchange, const char *text);

/* 429, and when to come again, as the clients of a Hub read it: RateLimit, RateLimit-Policy and
 * Retry-After. For errors whose status is JSON_REPLY_BUSY; nothing for others. */
enum { JSON_REPLY_BUSY = 429 };
void json_reply_pace(struct exchange *exchange);

/* For faces: X-Request-Id on every reply, which the clients show with what went wrong. */
void json_reply_prepare(struct exchange *exchange);

#endif
