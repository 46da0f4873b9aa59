/* The checkpoint that is being published. Where the file system can share bytes between files
 * (reflink), publish copies it into the state folder, which costs nothing. Otherwise it is read
 * where it lies: nobody may change it until publish has ended, and publish_source_check finds out
 * whether somebody did. Where it lay, and the facts of its files, are noted beside the committed
 * step, so that the next publish can use it again if the trainer left it alone. */
#ifndef CLIENT_PUBLISH_PUBLISH_SOURCE_H
#define CLIENT_PUBLISH_PUBLISH_SOURCE_H

#include "client/local/file_chunks.h"
#include "client/publish/publish_state.h"
#include "weights/model/checkpoint.h"

struct publish_source {
	char *path; /* of the checkpoint: file or folder */
	/* it lies in the state folder: at publish_state_new_path, later in the pending step */
	bool is_copy;
	char **names;             /* of its files, as checkpoint_file has them */
	struct file_facts *facts; /* of its files, when it was taken */
	size_t count;
};

/* Takes the checkpoint, by copy or by reference. `choice` says which files are published; NULL:
 * all. */
int publish_source_take(struct publish_source *source, const struct publish_state *state,
	const char *checkpoint, const struct checkpoint_choice *choice, struct error *err);
/* Takes the copy that lies at publish_state_new_path already. */
int publish_source_take_copy(
	struct publish_source *source, const struct publish_state *state, struct error *err);
/* Chooses the files that were taken, and no others: to open the checkpoint again. Lives as long as
 * the source. */
struct checkpoint_choice publish_source_choice(struct publish_source *source);
void publish_source_release(struct publish_source *source); /* a zeroed one is fine */
/* Tells the source that its copy has been moved into the pending step. */
void publish_source_moved(struct publish_source *source, const struct publish_state *state);
/* The path of a file of the checkpoint; heap, the caller's. */
char *publish_source_file(const struct publish_source *source, const char *name);
uint64_t publish_source_bytes(const struct publish_source *source); /* of all files */
/* invalid when a file has changed since it was taken. */
int publish_source_check(const struct publish_source *source, struct error *err);
/* Sets that failure for the file or folder at `path`. Returns -1. */
int publish_source_refuse(const char *path, struct error *err);

/* Notes where the committed step came from. The note is a hint that may be lost; a copy has none.
 * The state must have a committed step. */
void publish_source_note(const struct publish_source *source, const struct publish_state *state);
/* Opens the trainer's own checkpoint of the committed step, or gives NULL if it is gone or has
 * changed. The caller must prove its digest, and the state must have a committed step. */
struct checkpoint *publish_source_find(const struct publish_state *state);

#endif
