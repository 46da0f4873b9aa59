/* What is known to be damaged at present, and what it touches: the chunks by pack, the keys and the
 * steps that lead to them (storage/reach/reach.h). Any thread. */
#ifndef STORAGE_SCRUB_DAMAGE_REPORT_H
#define STORAGE_SCRUB_DAMAGE_REPORT_H

#include "storage/core/call.h"
#include "storage/packs/chunk_index.h"
#include "storage/reach/reach.h"

struct damage_report {
	struct chunk_place *places; /* by pack and chunk */
	size_t count;
	struct reach *reach; /* settled; its catalog must not be asked any more */
};

/* Waits for the catalog: the first shared part set costs a pass over all versions. */
int damage_report_make(struct store *store, struct damage_report *out, struct error *err);
void damage_report_release(struct damage_report *report); /* zeros are fine */
/* Logs each key and step that damage touches, up to the limit of reach. */
void damage_report_log(struct store *store, const struct damage_report *report);

/* A call (storage/core/call.h) that makes one on a helper. */
struct call *damage_report_call(struct store *store);
/* After its success; lives as long as the call. */
const struct damage_report *damage_report_result(const struct call *call);

#endif
