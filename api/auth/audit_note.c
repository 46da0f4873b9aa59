#include "api/auth/audit_note.h"

#include "api/exchange/caller.h"
#include "api/exchange/principal.h"

struct audit_entry audit_note_entry(
	struct exchange *exchange, const char *action, struct span subject, struct span detail)
{
	const struct clock_source *const clock = exchange->context->clock;
	return (struct audit_entry){.time_ms = clock->wall_ms(clock),
		.key_id = exchange->principal != NULL ? exchange->principal->key_id
						      : (struct span){NULL, 0},
		.address = span_text(caller_address(exchange)),
		.action = span_text(action),
		.subject = subject,
		.detail = detail,
		.request_id = span_text(exchange->request_id)};
}
