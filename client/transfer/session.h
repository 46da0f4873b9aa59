/* What every command works with: its options, where it prints, the stop signal, the server. Made by
 * main for one command. */
#ifndef CLIENT_TRANSFER_SESSION_H
#define CLIENT_TRANSFER_SESSION_H

#include "base/file.h"
#include "client/remote/remote.h"
#include "client/terminal/interrupt.h"
#include "client/terminal/options.h"
#include "client/terminal/output.h"
#include "client/transfer/transfer.h"

struct session {
	const struct options *options;
	struct output output;
	const struct file_ops *files;         /* what files are written through */
	struct interrupt *interrupt;          /* NULL for commands that only compute */
	struct remote_options remote_options; /* set for commands that talk to the server */
	bool usage;                           /* the failure is the command line's: exit code 2 */
};

/* -1 with invalid, and the exit code says usage. */
int session_usage(struct session *session, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct remote *session_connect(struct session *session, struct error *err);
/* `own` is the calling thread's connection, lent to the transfer. */
struct transfer_options session_transfer(
	struct session *session, struct remote *own, struct progress *progress);

unsigned session_parallel(const struct session *session); /* transfers at a time */
/* Whether a failure of the content-addressed half says that the server cannot do this there: plain
 * requests may. */
bool session_wants_plain(const struct error *failure);

/* BUCKET[/KEY] as given on the command line, also with s3:// before it, checked for size; spans
 * into `text`. */
struct object_name {
	struct span bucket;
	struct span key; /* may be empty */
};
int session_object_name(
	struct session *session, const char *text, struct object_name *out, struct error *err);

#endif
