/* One thing that fsck found: what it is about, what is wrong, and what that touches. Pure; any
 * thread. */
#ifndef STORAGE_FSCK_FINDING_H
#define STORAGE_FSCK_FINDING_H

#include "base/error.h"
#include "storage/reach/reach.h"

enum finding_severity {
	FINDING_NOTE,  /* nothing is wrong */
	FINDING_FAULT, /* everything reads right, and a repair makes it whole */
	FINDING_DAMAGE /* something is lost, or cannot be read */
};
enum finding_kind {
	FINDING_ACKNOWLEDGED,
	FINDING_UNACKNOWLEDGED,
	FINDING_LOG,
	FINDING_LOG_END,
	FINDING_PAGES,
	FINDING_TABLE,
	FINDING_INDEX,
	FINDING_STRUCTURE,
	FINDING_ROW,
	FINDING_RIGHTS,
	FINDING_LINK,
	FINDING_COUNT,
	FINDING_LEFTOVER,
	FINDING_REMOVAL,
	FINDING_PACK,
	FINDING_PACK_ASIDE,
	FINDING_DEAD_PACK,
	FINDING_PACK_COPY,
	FINDING_PACK_INDEX,
	FINDING_CHUNK,
	FINDING_DEAD_CHUNK,
	FINDING_XORB,
	FINDING_STEP,
	FINDING_CHUNK_INDEX,
	FINDING_JOURNAL,
	FINDING_NO_SNAPSHOT,
	FINDING_SNAPSHOT,
	FINDING_STRAY,
	FINDING_SET_ASIDE,
	FINDING_MASTER_KEY,
	FINDING_KINDS
};

enum { FINDING_SUBJECT_BYTES = 192 };

struct finding {
	enum finding_kind kind;
	char subject[FINDING_SUBJECT_BYTES]; /* "pack 3f...", "table versions" */
	const char *detail;                  /* a sentence, borrowed */
	int64_t number;            /* of the pack, or of the row that a repair corrects; else 0 */
	uint32_t chunk;            /* the first one, of a finding about chunks of the pack */
	uint32_t chunks;           /* how many; 0: it is not about single chunks */
	const struct reach *reach; /* keys and steps that it touches, borrowed; NULL: none */
};

const char *finding_kind_name(enum finding_kind kind); /* "pack_copy" */
enum finding_severity finding_severity_of(enum finding_kind kind);
const char *finding_severity_name(enum finding_severity severity); /* "note" */
/* What `fsck --repair` does about it, or what the operator must do; a phrase. Empty for a note. */
const char *finding_remedy(enum finding_kind kind);
/* Whether --repair does something about it. */
bool finding_is_repaired(enum finding_kind kind);

#endif
