/* The steps that answers of `path` named in the last 15 minutes. Retention keeps them, because
 * readers may still be fetching them. They are in memory, as a few ranges for each minute of a run;
 * when a minute needs more, ranges are joined, so that more steps are kept than were named, never
 * fewer. After a start it is unknown what was named before, and retention rests for 15 minutes.
 * Internally locked; any thread. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_PATH_HOLD_H
#define STORAGE_RUN_TABLES_PATH_HOLD_H

#include "base/clock.h"
#include "storage/run_tables/step_range.h"

struct path_hold;

enum { PATH_HOLD_MS = 15 * 60 * 1000, PATH_HOLD_RANGES_MAX = 17 * 4 };

struct path_hold *path_hold_new(const struct clock_source *clock);
void path_hold_free(struct path_hold *hold); /* NULL is fine */
void path_hold_add(struct path_hold *hold, int64_t run, struct step_range range);
/* Writes the ranges of a run, sorted and joined, into `out`, which has room for
 * PATH_HOLD_RANGES_MAX. Returns their number. */
size_t path_hold_ranges(struct path_hold *hold, int64_t run, struct step_range *out);
/* Forgets the runs whose ranges are all older than 15 minutes. To be called now and then. */
void path_hold_tidy(struct path_hold *hold);

#endif
