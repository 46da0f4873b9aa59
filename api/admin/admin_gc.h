/* POST /-/gc, for root alone: gives space back now and tells how much. docs/protocol/admin.md,
 * "Gc". The same route serves `deltabucketd gc` over DIR/control.sock. A round may take minutes:
 * gc's thread works, the exchange waits. */
#ifndef API_ADMIN_ADMIN_GC_H
#define API_ADMIN_ADMIN_GC_H

#include "api/exchange/exchange.h"
#include "storage/upkeep/gc.h"

enum next admin_gc_begin(struct exchange *exchange);
enum next admin_gc_finish(struct exchange *exchange);
enum next admin_gc_resume(struct exchange *exchange);

/* The bodies, shared with the command line. {"dry_run"?: bool, "live_percent"?: 1..100}; invalid
 * when it is anything else. */
int admin_gc_parse(struct span json, struct gc_request *out, struct error *err);
void admin_gc_print(const struct gc_request *request, struct buffer *out);

#endif
