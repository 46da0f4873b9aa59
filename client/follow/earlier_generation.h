/* Makes a generation of a step that the folder still has, without the server: the way back of a
 * rollback. The files of the earlier generation are proven and get second names in a new one, so
 * that for all else it is a step like any other. */
#ifndef CLIENT_FOLLOW_EARLIER_GENERATION_H
#define CLIENT_FOLLOW_EARLIER_GENERATION_H

#include "client/follow/follow_report.h"
#include "client/work/progress.h"
#include "client/work/stop.h"

struct earlier_generation {
	const struct follow_folder *folder;
	const struct file_ops *ops; /* writes weights */
	/* where it is noted when it comes; `held` and `files` are set here */
	struct follow_swap *swap;
	const char *out;            /* the new generation's folder, of follow_folder_next */
	struct proven_files *files; /* of it; release them also after a failure */
	unsigned threads;
	const struct progress_sink *progress_sink; /* NULL: nobody looks */
	const struct stop *stop;
	struct follow_report *report; /* is told before the proof */
};
/* 1 when it is made and synced, for follow_folder_swap. 0 when the folder does not have the step,
 * or has it damaged. busy when the word to stop came. */
int earlier_generation_make(const struct earlier_generation *earlier, struct error *err);

#endif
