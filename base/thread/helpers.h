/* A few threads for work that would block a reactor: digests and syncs of large uploads, and reads
 * that wait for the disk. Jobs of one lane run in order and one at a time; lanes run side by side.
 * Internally locked; any thread may submit. */
#ifndef BASE_THREAD_HELPERS_H
#define BASE_THREAD_HELPERS_H

#include <stdbool.h>
#include <stddef.h>

struct helpers;

struct helper_job {
	void (*run)(struct helper_job *job); /* on a helper thread; may free the job */
	struct helper_job *next;             /* owned by the queue */
};
struct helper_lane { /* Embed it in the owner of the jobs, zeroed. */
	struct helper_job *first;
	struct helper_job *last;
	struct helper_lane *next;
	bool scheduled;
};

struct helpers *helpers_start(unsigned threads);
void helpers_stop(struct helpers *helpers); /* runs the queued jobs, then joins the threads */
void helpers_submit(struct helpers *helpers, struct helper_lane *lane, struct helper_job *job);
size_t helpers_waiting(struct helpers *helpers); /* jobs that no thread has taken yet */

#endif
