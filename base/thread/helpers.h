/* A few threads that take what would hold up a reactor: digests and syncs of large uploads, reads
 * that publish needs. Jobs of one `lane` run in order and one at a time; lanes run side by side.
 * Internally locked; any thread may submit. */
#ifndef BASE_THREAD_HELPERS_H
#define BASE_THREAD_HELPERS_H

#include <stdbool.h>

struct helpers;

struct helper_job {
	void (*run)(struct helper_job *job); /* on a helper thread; may free the job */
	struct helper_job *next;             /* the queue's */
};
struct helper_lane { /* embed in whoever owns the jobs; zero it to begin */
	struct helper_job *first;
	struct helper_job *last;
	struct helper_lane *next;
	bool scheduled;
};

struct helpers *helpers_start(unsigned threads);
void helpers_stop(struct helpers *helpers); /* runs what is queued, then joins */
void helpers_submit(struct helpers *helpers, struct helper_lane *lane, struct helper_job *job);

#endif
