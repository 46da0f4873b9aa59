/* The things that every piece of work needs: the server, the word to stop, where notes and progress
 * go. main makes one for each command, the library one for each call. */
#ifndef CLIENT_TRANSFER_SESSION_H
#define CLIENT_TRANSFER_SESSION_H

#include "base/file.h"
#include "client/remote/remote.h"
#include "client/transfer/transfer.h"
#include "client/work/output.h"
#include "client/work/stop.h"

struct options;

struct session {
	struct output output;
	const struct progress_sink *progress; /* NULL: nobody looks */
	const struct file_ops *files;         /* all files are written through it */
	struct stop *stop;                    /* NULL for work that nobody can stop */
	struct remote_options remote_options; /* set for work that talks to the server */
	unsigned parallel;                    /* transfers at a time; 0: TRANSFER_PARALLEL */
	/* of the command line, for client/commands alone: */
	const struct options *options;
	bool usage; /* it is wrong: exit code 2 */
};

/* Returns -1 with invalid, and makes the exit code 2. */
int session_usage(struct session *session, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct remote *session_connect(struct session *session, struct error *err);
/* `own` is the calling thread's connection, which the transfer borrows. */
struct transfer_options session_transfer(
	struct session *session, struct remote *own, struct progress *progress);

unsigned session_parallel(const struct session *session); /* transfers at a time */
/* Whether this failure of the Xet face says that the server cannot do the work there. Then plain
 * requests may succeed. */
bool session_wants_plain(const struct error *failure);

/* BUCKET[/KEY] from the command line, perhaps with s3:// before it. The sizes are checked. The
 * spans borrow `text`. */
struct object_name {
	struct span bucket;
	struct span key; /* may be empty */
};
int session_object_name(
	struct session *session, const char *text, struct object_name *out, struct error *err);

#endif
