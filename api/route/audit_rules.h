/* Which requests leave an entry in the audit trail, as one table over the routes. Sign-ins, their
 * ends and links are written in the change that makes them (storage/buckets/session.h), and AddKey
 * by its handler, because only that knows the new key. */
#ifndef API_ROUTE_AUDIT_RULES_H
#define API_ROUTE_AUDIT_RULES_H

#include "api/exchange/exchange.h"

/* To be called when the reply of a routed exchange is set: notes a request that succeeded and that
 * the table names. */
void audit_rules_note(struct exchange *exchange);

#endif
