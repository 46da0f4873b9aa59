/* The folder that `follow --into DIR` keeps:
 *
 *   current                  symlink to generations/NAME: swapped by rename, so that it always leads to one whole checkpoint
 *   generations/NAME/        a checkpoint, never changed once it is there
 *   generations/NAME.json    which step of which run it is, and the size and digest of each file; written after the folder is whole: a folder without it
 *                            is a leftover
 *   incoming/                downloads
 *   .deltabucket             whose folder this is (endpoint, run), what current is, and for which generation which command
 *                            has succeeded
 *
 * One follower at a time: it holds a lock on the folder.
 *
 * What `current` leads to is the truth; kill -9 or a power cut between any two operations leaves a
 * folder that opening repairs, and a `current` that leads to a whole checkpoint. */
#ifndef CLIENT_FOLLOW_FOLLOW_FOLDER_H
#define CLIENT_FOLLOW_FOLLOW_FOLDER_H

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "client/local/proven_files.h"

struct follow_generation {
	char *name; /* "000007", or "000007.2" when the step had to be made again */
	uint64_t step;
	struct digest128 digest;
	char *label;           /* "" when the step has none */
	char *tensors;         /* which part of the step is held, as subset.text has it; "": all */
	struct digest128 held; /* of the tensors that are held: `digest` when these are all */
	struct proven_files files; /* none where an older version made it */
	uint64_t order;            /* rises with each one made here */
	bool has_previous;         /* what was current before it, if anything was */
	uint64_t previous;
};

struct follow_folder {
	const struct file_ops *files;
	char *path;
	int lock_fd;
	char *endpoint;
	char *run;
	bool is_made;  /* by this open: the folder itself */
	bool is_begun; /* by this open: what lies in it */
	bool has_current;
	struct follow_generation current;
	char *executed;   /* the generation that a command of --exec succeeded for; NULL: none */
	bool has_command; /* which command; older versions did not write that down */
	struct digest128 command;
	/* an engine has, for all that is known, these tensors: no command has been at work on
	 * others since */
	bool has_taken;
	struct digest128 taken;
};

/* Makes DIR where needed, locks, reads and repairs it. busy when another follower holds it; exists
 * when it holds files that are not a follower's (follow_leftovers.h), or follows another run;
 * corrupt when its state is unreadable. */
int follow_folder_open(struct follow_folder *folder, const struct file_ops *files, const char *path,
	const char *endpoint, const char *run, struct error *err);
/* False when somebody has removed the folder, or the generations in it: it can only be closed then,
 * and opened anew. Any thread. */
bool follow_folder_is_there(const struct follow_folder *folder);
/* Takes back what this open made, where nothing was brought into it: the folder is as it was
 * before. To be called before close. */
void follow_folder_abandon(const struct follow_folder *folder);
void follow_folder_close(struct follow_folder *folder); /* a zeroed one is fine */

/* Heap paths, the caller's. */
/* of the generation itself; only with has_current */
char *follow_folder_current(const struct follow_folder *folder);
char *follow_folder_incoming(const struct follow_folder *folder);
/* A free name for a generation of `step`, and where it has to be made. */
void follow_folder_next(
	const struct follow_folder *folder, uint64_t step, char **out_name, char **out_path);

/* The generation is whole and synced: makes it current. What it points to is copied. */
struct follow_swap {
	const char *name;
	uint64_t step;
	struct digest128 digest;
	const char *label;
	const char *tensors; /* NULL or "": all */
	struct digest128 held;
	const struct proven_files *files; /* of the generation's folder */
};
int follow_folder_swap(
	struct follow_folder *folder, const struct follow_swap *swap, struct error *err);
/* What is current turned out damaged: it is forgotten as a base, but stays in place until a new one
 * is made. */
void follow_folder_distrust(struct follow_folder *folder);
/* Whether this command has succeeded for what is current; set when it has, for good. */
bool follow_folder_has_executed(const struct follow_folder *folder, const char *command);
int follow_folder_set_executed(
	struct follow_folder *folder, const char *command, struct error *err);
/* Whether the tensors of what is current are those that this command last succeeded for, with no
 * attempt at others since. Only with has_current. */
bool follow_folder_has_taken(const struct follow_folder *folder, const char *command);
/* An attempt at other tensors begins: whatever becomes of it, what the engine then has is not
 * known. For good. */
int follow_folder_forget_taken(struct follow_folder *folder, struct error *err);
/* Removes all but the current generation and the newest `keep` others. */
int follow_folder_trim(const struct follow_folder *folder, uint64_t keep, struct error *err);

#endif
