/* GET /-/damage, only for root: the chunks that are known to be damaged, the keys and steps that
 * they touch, and how far scrub has come. docs/protocol/admin.md, "Damage". */
#ifndef API_ADMIN_ADMIN_DAMAGE_H
#define API_ADMIN_ADMIN_DAMAGE_H

#include "api/exchange/exchange.h"

enum next admin_damage_begin(struct exchange *exchange);
enum next admin_damage_resume(struct exchange *exchange);

/* Prints the member "scrub". */
struct json_writer;
void admin_damage_print_scrub(struct store *store, struct json_writer *json);

#endif
