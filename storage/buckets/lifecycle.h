/* The lifecycle rules of a bucket, and what they do to one object, version or upload at a given
 * moment. docs/protocol/s3.md, "Settings of buckets". Pure functions; any thread.
 *
 * The days of a rule count from the creation, or from when a version ceased to be current, and end
 * at the next midnight UTC. Tests can set the length of a day. */
#ifndef STORAGE_BUCKETS_LIFECYCLE_H
#define STORAGE_BUCKETS_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "storage/buckets/tag_set.h"

enum { LIFECYCLE_RULES_MAX = 1000, LIFECYCLE_ID_MAX_BYTES = 255, LIFECYCLE_TAGS_MAX = 10 };
/* How the rule was written, so that it can be shown the same way. Numbers are stored. */
enum lifecycle_form { LIFECYCLE_PREFIX = 0, LIFECYCLE_FILTER = 1, LIFECYCLE_FILTER_AND = 2 };

struct lifecycle_rule {
	struct span id;
	bool enabled;
	enum lifecycle_form form;
	/* The filter: all conditions that are present must hold. */
	bool has_prefix;
	struct span prefix;
	const struct tag *tags;
	size_t tag_count;
	bool has_size_over; /* sizes above */
	uint64_t size_over;
	bool has_size_under; /* sizes below */
	uint64_t size_under;
	/* The actions; 0 and false: none of this kind. */
	uint32_t expire_days;
	bool has_expire_date;
	int64_t expire_date_ms;
	bool expires_markers; /* ExpiredObjectDeleteMarker */
	uint32_t noncurrent_days;
	uint32_t noncurrent_newer; /* with noncurrent_days: this number of the newest stay */
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

/* Returns since_ms plus the days, rounded up to midnight. day_ms is above 0. */
int64_t lifecycle_due(int64_t since_ms, uint32_t days, int64_t day_ms);
/* Whether a current version that is not a delete marker will expire; the earliest time, and its
 * rule. */
bool lifecycle_expires(const struct lifecycle *lifecycle, const struct lifecycle_subject *subject,
	int64_t day_ms, int64_t *out_due_ms, const struct lifecycle_rule **out_rule);
/* Whether a delete marker that is the only version of its key must be removed now: by
 * ExpiredObjectDeleteMarker, or because an expiration is due. */
bool lifecycle_removes_marker(const struct lifecycle *lifecycle, struct span key,
	int64_t modified_ms, const struct lifecycle_clock *clock);
/* Whether a noncurrent version with `newer` newer noncurrent versions of its key must be removed
 * now. */
bool lifecycle_removes_noncurrent(const struct lifecycle *lifecycle,
	const struct lifecycle_subject *subject, uint32_t newer,
	const struct lifecycle_clock *clock);
/* Whether an upload must be aborted now. */
bool lifecycle_aborts(const struct lifecycle *lifecycle, struct span key, int64_t created_ms,
	const struct lifecycle_clock *clock);

/* The kinds of work that the enabled rules can cause. */
struct lifecycle_work {
	bool current;
	bool noncurrent;
	bool uploads;
};
struct lifecycle_work lifecycle_work_of(const struct lifecycle *lifecycle);

#endif
