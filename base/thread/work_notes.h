/* What the work behind the requests is doing at the moment, in words for people: each kind of work
 * leaves a note, and overviews read all of them. A note names no object, because not all that may
 * read it may know of each. One per server. Any thread; a note is copied under a lock that nothing
 * else is done under. */
#ifndef BASE_THREAD_WORK_NOTES_H
#define BASE_THREAD_WORK_NOTES_H

#include "base/error.h"

enum work_kind {
	WORK_GC,
	WORK_SCRUB,
	WORK_PROOF, /* all that the step worker does */
	WORK_DERIVE,
	WORK_LIFECYCLE,
	WORK_FILE_HASH,
	WORK_JOURNAL,
	WORK_CATALOG_CHECK,
	WORK_KINDS
};
enum work_state { WORK_OFF, WORK_RESTING, WORK_WORKING }; /* off: until something else is noted */

enum { WORK_DETAIL_BYTES = 160 };
struct work_note {
	enum work_state state;
	char detail[WORK_DETAIL_BYTES]; /* NUL-terminated; may be empty */
};

struct work_notes;
struct work_notes *work_notes_new(void);
void work_notes_free(struct work_notes *notes);     /* NULL is fine */
const char *work_kind_name(enum work_kind kind);    /* "gc", "catalog_check"; static */
const char *work_state_name(enum work_state state); /* "off", "resting", "working"; static */

/* A detail that is too long is cut. NULL notes: does nothing. */
void work_notes_set(struct work_notes *notes, enum work_kind kind, enum work_state state,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
void work_notes_look(struct work_notes *notes, struct work_note out[WORK_KINDS]);

#endif
