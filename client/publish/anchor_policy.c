#include "client/publish/anchor_policy.h"

#include <string.h>

int anchor_policy_parse(const char *text, struct anchor_policy *out, struct error *err)
{
	*out = (struct anchor_policy){.when = ANCHOR_AUTO};
	if (text == NULL || strcmp(text, "auto") == 0)
		return 0;
	if (strcmp(text, "always") == 0)
		out->when = ANCHOR_ALWAYS;
	else if (strcmp(text, "never") == 0)
		out->when = ANCHOR_NEVER;
	else if (span_parse_u64(span_text(text), &out->every) && out->every > 0)
		out->when = ANCHOR_EVERY;
	else
		return error_set(err, ERROR_INVALID,
			"--anchor wants auto, always, never or a number of steps, not \"%s\"",
			text);
	return 0;
}

bool anchor_policy_wants(const struct anchor_policy *policy, uint64_t step, bool due)
{
	switch (policy->when) {
	case ANCHOR_ALWAYS:
		return true;
	case ANCHOR_NEVER:
		return false;
	case ANCHOR_EVERY:
		ASSERT(policy->every > 0);
		return due || step % policy->every == 0;
	case ANCHOR_AUTO:
		return due;
	}
	return false;
}
