#include "api/exchange/principal.h"

bool principal_allows(const struct principal *principal, struct span bucket, struct span owner,
	struct span key, unsigned permission)
{
	if (principal == NULL)
		return false;
	if (principal->is_root)
		return true;
	if (principal->grant_count == 0)
		return owner.len == 0 || span_equal(owner, principal->namespace);
	for (size_t i = 0; i < principal->grant_count; i++) {
		const struct grant *const grant = &principal->grants[i];
		if (span_equal(grant->bucket, bucket) && span_starts(key, grant->prefix) &&
			(grant->permissions & permission) == permission)
			return true;
	}
	return false;
}

bool principal_may_read_metrics(const struct principal *principal)
{
	ASSERT(principal != NULL);
	bool may = principal->is_root;
	for (size_t i = 0; i < principal->grant_count; i++)
		may = may || principal_is_metrics_grant(&principal->grants[i]);
	return may;
}

/* It is stored as a grant for the bucket "-", a name that no bucket can have. */
bool principal_is_metrics_grant(const struct grant *grant)
{
	return span_equal_text(grant->bucket, "-");
}
