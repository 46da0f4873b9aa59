#include "api/steps/publish_keys.h"

#include "api/auth/keyring.h"
#include "api/steps/steps_request.h"

int publish_keys_check(
	struct exchange *exchange, const struct step_message *step, struct error *err)
{
	/* With an empty owner, a key without grants may read everything. That is right because the
	 * access rule of the route let it in as a key of the bucket's owner. */
	static const struct span owner = {NULL, 0};
	const struct span bucket = exchange_bucket(exchange).name;
	const struct span run = steps_request_run(exchange).name;
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++) {
			const struct span key = step->forms[f].objects[i].key;
			const struct span rest = span_slice(key, run.len, key.len);
			if (span_starts(key, run) && span_starts(rest, span_text("/")))
				continue;
			if (!principal_allows(
				    exchange->principal, bucket, owner, key, PERMISSION_READ))
				return error_set(err, ERROR_DENIED,
					"The step names the key '%.*s', which is outside the run and which you may not read.",
					(int)span_slice(key, 0, 120).len, (const char *)key.data);
		}
	return 0;
}
