/* GET /-/audit: the audit trail, newest entries first. docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_AUDIT_H
#define API_ADMIN_ADMIN_AUDIT_H

#include "api/exchange/exchange.h"

enum next admin_audit_begin(struct exchange *exchange);

#endif
