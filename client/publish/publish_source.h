/* The checkpoint that is being published. Where the file system shares bytes between files
 * (reflink), a copy in the state folder is taken of it, which costs nothing. Otherwise it is read
 * where it lies: nobody may change it until publish has ended, and publish_source_check tells
 * whether somebody did. What it was is written down beside the committed step, so that the next
 * publish finds it by reference where the trainer has left it alone. */
#ifndef CLIENT_PUBLISH_PUBLISH_SOURCE_H
#define CLIENT_PUBLISH_PUBLISH_SOURCE_H

#include "client/local/file_chunks.h"
#include "client/publish/publish_state.h"
#include "weights/model/checkpoint.h"

struct publish_source {
	char *path; /* of the checkpoint: file or folder */
	/* it lies in the state folder: publish_state_new_path, later the pending step's */
	bool is_copy;
	/* of the files, as checkpoint_file has them; and what they were when it was taken */
	char **names;
	struct file_facts *facts;
	size_t count;
};

/* `choice` (NULL: all files) says what is published of it. */
int publish_source_take(struct publish_source *source, const struct publish_state *state,
	const char *checkpoint, const struct checkpoint_choice *choice, struct error *err);
/* The files that were taken, and no others: to open it again. Lives as long as the source. */
struct checkpoint_choice publish_source_choice(struct publish_source *source);
void publish_source_release(struct publish_source *source); /* a zeroed one is fine */
/* The copy has become the pending step's. */
void publish_source_moved(struct publish_source *source, const struct publish_state *state);
/* Path of a file of the checkpoint; heap, the caller's. */
char *publish_source_file(const struct publish_source *source, const char *name);
uint64_t publish_source_bytes(const struct publish_source *source); /* of all files */
/* invalid when a file is not what it was when it was taken. */
int publish_source_check(const struct publish_source *source, struct error *err);
/* Gives -1 with that failure. */
int publish_source_refuse(const char *path, struct error *err);

/* Writes down where the committed step came from; a hint, which may be lost. Nothing of a copy. */
void publish_source_note(const struct publish_source *source, const struct publish_state *state);
/* The trainer's own checkpoint of the committed step, if it still lies there as it was. Its digest
 * is for the caller to prove. NULL: it does not. */
struct checkpoint *publish_source_find(const struct publish_state *state);

#endif
