/* The audit trail: who did what that matters, from where. Rows are written and never changed; the
 * oldest go. Refused sign-ins have a bound of their own, because anybody can cause them, and so has
 * each key: none pushes out what the others did. */
#ifndef STORAGE_BUCKETS_AUDIT_H
#define STORAGE_BUCKETS_AUDIT_H

#include "storage/core/call.h"

enum {
	AUDIT_MAX = 10000,
	AUDIT_OF_KEY_MAX = 2000,
	AUDIT_REFUSED_MAX = 1000,
	AUDIT_PAGE_MAX = 1000,
	AUDIT_TEXT_MAX_BYTES = 1024 /* of each text; longer ones are cut */
};
#define AUDIT_SIGN_IN_REFUSED "sign_in_refused"

struct audit_entry {
	int64_t id;
	int64_t time_ms;
	struct span key_id; /* of the caller */
	struct span address;
	struct span action;
	struct span subject; /* what was changed */
	struct span detail;
	struct span request_id;
};
/* A copy with all texts cut and in the arena. */
struct audit_entry audit_copy(const struct audit_entry *entry, struct arena *arena);

/* Inside a change: adds the entry, whose id is not used, and drops what is over the bounds. */
int audit_add(struct db *db, const struct audit_entry *entry, struct error *err);
/* Adds the entry with a change of its own, behind the caller: nobody learns of a failure but the
 * log. Cheap; any thread. */
void audit_note(struct store *store, const struct audit_entry *entry);
/* The same as a call, for what has no other change and must not be faster than the disk. */
struct call *audit_call(struct store *store, const struct audit_entry *entry);

struct audit_page {
	struct audit_entry entries[AUDIT_PAGE_MAX];
	size_t count;
	bool has_more;
};
/* The newest entries with an id below `before` (0: all), newest first, at most `limit`. Texts lie
 * in the arena. */
int audit_list(struct store *store, int64_t before, size_t limit, struct arena *arena,
	struct audit_page *out, struct error *err);

#endif
