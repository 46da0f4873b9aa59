/* The folder that `follow --into DIR` keeps:
 *
 *   current                  symlink to generations/NAME; swapped by rename, so that it always
 *                            leads to one whole checkpoint
 *   generations/NAME/        a generation: a checkpoint that never changes once it is there
 *   generations/NAME.json    its sidecar: the run and step, and the size and digest of each file;
 *                            written last: a generation without it is a leftover
 *   incoming/                downloads
 *   .deltabucket             the state: endpoint and run, the current generation, and the command
 *                            that has succeeded and the generation it succeeded for
 *
 * One follower at a time: it holds a lock on the folder.
 *
 * The link `current` decides what is current. A kill -9 or a power cut between any two operations
 * leaves a folder that opening repairs, and a `current` that leads to a whole checkpoint. */
#ifndef CLIENT_FOLLOW_FOLLOW_FOLDER_H
#define CLIENT_FOLLOW_FOLLOW_FOLDER_H

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "client/local/proven_files.h"

struct follow_generation {
	char *name; /* "000007", or "000007.2" when the step had to be made again */
	uint64_t step;
	struct digest128 digest;
	char *label;               /* "" when the step has none */
	char *tensors;             /* the part of the step that is held, as subset.text; "": all */
	struct digest128 held;     /* of the tensors that are held; equals `digest` for all */
	struct proven_files files; /* empty when an older version made the generation */
	uint64_t order;            /* rises with each generation made in this folder */
	bool has_previous;
	uint64_t previous; /* the step that was current before it */
};

struct follow_swap;
struct follow_folder {
	const struct file_ops *files;
	char *path;
	int lock_fd;
	char *endpoint;
	char *run;
	bool is_made;  /* this open made the folder */
	bool is_begun; /* this open wrote the first state into it */
	bool has_current;
	struct follow_generation current;
	char *executed; /* the generation that a command of --exec succeeded for; NULL: none */
	bool has_command;
	struct digest128 command; /* of that command; older versions did not note it */
	bool has_taken;
	/* of the tensors that the engine has, as far as known: the command succeeded for them, and
	 * none was started for others since */
	struct digest128 taken;
};

/* Makes DIR if needed, locks, reads and repairs it. busy when another follower has it open; exists
 * when it holds files that a follower did not make (follow_leftovers.h), or follows another run;
 * corrupt when its state is unreadable. On failure the folder is closed. */
int follow_folder_open(struct follow_folder *folder, const struct file_ops *files, const char *path,
	const char *endpoint, const char *run, struct error *err);
/* False when somebody has removed the folder or the generations in it. The caller can then only
 * close it and open it again. Any thread. */
bool follow_folder_is_there(const struct follow_folder *folder);
/* Removes what this open made if nothing has been put into it since. The caller must close the
 * folder afterwards. */
void follow_folder_abandon(const struct follow_folder *folder);
void follow_folder_close(struct follow_folder *folder); /* a zeroed one is fine */

/* Finds a whole generation of that step and part beside the current one. False when there is none;
 * otherwise release *out. */
bool follow_folder_find(const struct follow_folder *folder, const struct follow_swap *wanted,
	struct follow_generation *out);
void follow_generation_release(struct follow_generation *generation);
/* The folder of a generation. Heap, the caller's. */
char *follow_folder_path(const struct follow_folder *folder, const char *name);
/* The folder of the current generation, not the link; only with has_current. Heap, the caller's. */
char *follow_folder_current(const struct follow_folder *folder);
/* The folder for downloads. Heap, the caller's. */
char *follow_folder_incoming(const struct follow_folder *folder);
/* A free name for a generation of `step`, and the path where the caller must make it. Both on the
 * heap, the caller's. */
void follow_folder_next(
	const struct follow_folder *folder, uint64_t step, char **out_name, char **out_path);

/* A generation that becomes current. follow_folder_swap copies what the members point to. */
struct follow_swap {
	const char *name;
	uint64_t step;
	struct digest128 digest;
	const char *label;
	const char *tensors; /* NULL or "": all */
	struct digest128 held;
	const struct proven_files *files; /* of the generation's folder */
};
/* Makes the generation current. The caller must have made it whole and synced it. */
int follow_folder_swap(
	struct follow_folder *folder, const struct follow_swap *swap, struct error *err);
/* Forgets the current generation as a base, because it turned out damaged. The link stays until the
 * next swap. */
void follow_folder_distrust(struct follow_folder *folder);
/* Whether this command has succeeded for the current generation. */
bool follow_folder_has_executed(const struct follow_folder *folder, const char *command);
/* Notes durably that it has. Only with has_current. */
int follow_folder_set_executed(
	struct follow_folder *folder, const char *command, struct error *err);
/* Whether the current generation has the tensors that this command last succeeded for, and no
 * command was started for others since. Only with has_current. */
bool follow_folder_has_taken(const struct follow_folder *folder, const char *command);
/* Notes durably that a command is started for other tensors: from then on, whatever its outcome, it
 * is not known what the engine has, and no command has succeeded for any generation. */
int follow_folder_forget_taken(struct follow_folder *folder, struct error *err);
/* Removes all but the current generation and the newest `keep` others. */
int follow_folder_trim(const struct follow_folder *folder, uint64_t keep, struct error *err);

#endif
