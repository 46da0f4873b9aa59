/* What a struct deltabucket_watch is made of: the word to stop, and where progress and sentences of
 * a call go. */
#ifndef LIBRARY_WATCH_H
#define LIBRARY_WATCH_H

#include "client/work/output.h"
#include "client/work/progress.h"
#include "client/work/stop.h"
#include "library/deltabucket.h"

struct deltabucket_watch {
	struct deltabucket_watch_settings settings;
	struct stop *stop;
	struct progress_sink sink;
};

/* The three below take NULL for a call without a watch. */
struct stop *library_watch_stop(const struct deltabucket_watch *watch);
const struct progress_sink *library_watch_sink(const struct deltabucket_watch *watch);
/* Its sentences never go to a stream. */
struct output library_watch_output(struct deltabucket_watch *watch);

#endif
