/* Lifecycle rules of a bucket: what they say, and what they say of one object, version or upload at
 * a given moment. s3.md 3. Pure functions; any thread.
 *
 * A rule's days count from creation (or from when a version ceased to be current) and end at the
 * next midnight UTC; how long a day is can be set for tests. */
#ifndef STORAGE_BUCKETS_LIFECYCLE_H
#define STORAGE_BUCKETS_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "storage/buckets/tag_set.h"

enum { LIFECYCLE_RULES_MAX = 1000, LIFECYCLE_ID_MAX_BYTES = 255, LIFECYCLE_TAGS_MAX = 10 };
/* How the rule was written: told back as it came. Numbers are stored. */
enum lifecycle_form { LIFECYCLE_PREFIX = 0, LIFECYCLE_FILTER = 1, LIFECYCLE_FILTER_AND = 2 };

struct lifecycle_rule {
	struct span id;
	bool enabled;
	enum lifecycle_form form;
	/* What it applies to: all that is said must hold. */
	bool has_prefix;
	struct span prefix;
	const struct tag *tags;
	size_t tag_count;
	bool has_size_over; /* sizes above */
	uint64_t size_over;
	bool has_size_under; /* sizes below */
	uint64_t size_under;
	/* What it does; 0 and false: not that. */
	uint32_t expire_days;
	bool has_expire_date;
	int64_t expire_date_ms;
	bool expires_markers; /* ExpiredObjectDeleteMarker */
	uint32_t noncurrent_days;
	uint32_t noncurrent_newer; /* with noncurrent_days: this many of the newest stay */
	uint32_t abort_days;
};
struct lifecycle {
	const struct lifecycle_rule *rules;
	size_t count;
};
struct lifecycle_clock {
	int64_t now_ms;
	int64_t day_ms;
};
struct lifecycle_subject { /* an object's version */
	struct span key;
	uint64_t size;
	const struct tag *tags;
	size_t tag_count;
	int64_t since_ms; /* modified, or ceased to be current */
};

/* since + days, and on to the next midnight. */
int64_t lifecycle_due(int64_t since_ms, uint32_t days, int64_t day_ms);
/* Whether a current version that is no marker will expire by some rule; when first, and by
 * which. */
bool lifecycle_expires(const struct lifecycle *lifecycle, const struct lifecycle_subject *subject,
	int64_t day_ms, int64_t *out_due_ms, const struct lifecycle_rule **out_rule);
/* Whether a delete marker that is all that is left of its key is to go now: by
 * ExpiredObjectDeleteMarker, or old enough for an expiration. */
bool lifecycle_removes_marker(const struct lifecycle *lifecycle, struct span key,
	int64_t modified_ms, const struct lifecycle_clock *clock);
/* Whether a version that ceased to be current, with `newer` others of that kind above it, is to go
 * now. */
bool lifecycle_removes_noncurrent(const struct lifecycle *lifecycle,
	const struct lifecycle_subject *subject, uint32_t newer,
	const struct lifecycle_clock *clock);
bool lifecycle_aborts(const struct lifecycle *lifecycle, struct span key, int64_t created_ms,
	const struct lifecycle_clock *clock);

/* Which kinds of work its enabled rules can make at all. */
struct lifecycle_work {
	bool current;
	bool noncurrent;
	bool uploads;
};
struct lifecycle_work lifecycle_work_of(const struct lifecycle *lifecycle);

#endif
