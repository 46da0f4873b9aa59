/* Entries of the audit trail (storage/buckets/audit.h) about a request. */
#ifndef API_AUTH_AUDIT_NOTE_H
#define API_AUTH_AUDIT_NOTE_H

#include "api/exchange/exchange.h"
#include "storage/buckets/audit.h"

/* An entry with the caller, the address, the time and the id of the request. Texts are borrowed
 * from the exchange and the arguments. */
struct audit_entry audit_note_entry(
	struct exchange *exchange, const char *action, struct span subject, struct span detail);

#endif
