/* POST /-/gc, only for root: frees space now and reports how much. docs/protocol/admin.md, "Gc".
 * `deltabucketd gc` uses the same route over DIR/control.sock. A round may take minutes: it runs on
 * gc's thread while the exchange waits. */
#ifndef API_ADMIN_ADMIN_GC_H
#define API_ADMIN_ADMIN_GC_H

#include "api/exchange/exchange.h"
#include "storage/upkeep/gc.h"

enum next admin_gc_begin(struct exchange *exchange);
enum next admin_gc_finish(struct exchange *exchange);
enum next admin_gc_resume(struct exchange *exchange);

/* The bodies, which the command line uses too. The request is {"dry_run"?: bool, "ends_promises"?:
 * bool, "live_percent"?: 1..100}; parsing fails with invalid for other types and values. */
int admin_gc_parse(struct span json, struct gc_request *out, struct error *err);
void admin_gc_print(const struct gc_request *request, struct buffer *out);
/* The same without the braces. */
struct json_writer;
void admin_gc_print_members(const struct gc_request *request, struct json_writer *json);

#endif
