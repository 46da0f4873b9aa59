/* Which steps the answers of `path` named in the last quarter of an hour: their readers may still
 * be fetching them. In memory, a few ranges for each minute of a run; where more would be needed,
 * ranges grow together, which holds more than was named, never less. After a start nobody knows
 * what was named before: retention rests for as long. Internally locked; any thread. Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_PATH_HOLD_H
#define STORAGE_RUN_TABLES_PATH_HOLD_H

#include "base/clock.h"
#include "storage/run_tables/step_range.h"

struct path_hold;

enum { PATH_HOLD_MS = 15 * 60 * 1000, PATH_HOLD_RANGES_MAX = 17 * 4 };

struct path_hold *path_hold_new(const struct clock_source *clock);
void path_hold_free(struct path_hold *hold); /* NULL is fine */
void path_hold_add(struct path_hold *hold, int64_t run, struct step_range range);
/* What is held of a run, joined, into `out`, which has room for PATH_HOLD_RANGES_MAX. */
size_t path_hold_ranges(struct path_hold *hold, int64_t run, struct step_range *out);
/* Lets go of what is over: now and then. */
void path_hold_tidy(struct path_hold *hold);

#endif
