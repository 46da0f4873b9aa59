/* libdeltabucket: model weights from trainers to workers, and objects of a bucket, from C.
 * docs/LIBRARY.md has an example and the rules at more length.
 *
 * Values. Texts are UTF-8 and end in a zero byte. What the library returns belongs to the caller
 * and is freed with the function of its kind, unless the comment says borrowed. What the caller
 * passes in is borrowed until the call returns, unless the comment says otherwise. NULL is fine for
 * a watch, an error, and where a comment says so. Otherwise a function that takes an error fails
 * with invalid, and the others must not get it. Tensors are row-major and without gaps; numbers are
 * little-endian.
 *
 * Failures. A function that can fail takes a `struct deltabucket_error *` last, which may be NULL.
 * It returns 0 (or a positive number, or a pointer) on success, and -1 (or NULL) on failure, with
 * the error set. The library prints nothing and installs no signal handler. It ends the process
 * only when memory is out, or when it finds a fault of its own; then it says so on stderr. A file
 * that somebody shortens while a call reads it raises SIGBUS, as for everybody that maps it.
 *
 * Threads. There is no global state. A client and a watch may be used by any number of threads at
 * once. A publisher and a follower are used by one thread at a time. A step may be read by any
 * number of threads at once; in memory none may do so while deltabucket_follower_next runs. A
 * device and a delta of it are for any number of threads. Whatever it is, one thread frees it, and
 * the others no longer use it. After fork, the child must not use or free anything that the parent
 * made.
 *
 * Versions. A struct with a size is set with the macro of the same name in capitals before it is
 * passed, also one that the library fills; that makes every member its default. The macro is an
 * initializer in C and a value in C++. Later versions only add members at the end, functions and
 * kinds of errors. */
#ifndef DELTABUCKET_H
#define DELTABUCKET_H

#include <stddef.h>
#include <stdint.h>

/* What the macros of structs are made of: a value in C++, an initializer in C. */
#ifdef __cplusplus
template <typename Struct> inline Struct deltabucket_sized()
{
	Struct made = Struct();
	made.size = sizeof(made);
	return made;
}
template <typename Struct, typename Member>
inline Struct deltabucket_sized(Member Struct::*member, int value)
{
	Struct made = deltabucket_sized<Struct>();
	made.*member = value;
	return made;
}
#define DELTABUCKET_SIZED(name)                    deltabucket_sized<struct name>()
#define DELTABUCKET_SIZED_BUT(name, member, value) deltabucket_sized(&name::member, value)
extern "C" {
#else
#define DELTABUCKET_SIZED(name)             \
	{                                   \
		.size = sizeof(struct name) \
	}
#define DELTABUCKET_SIZED_BUT(name, member, value)           \
	{                                                    \
		.size = sizeof(struct name), .member = value \
	}
#endif

#define DELTABUCKET_API __attribute__((visibility("default")))

/* The version of the library that runs, "0.1.0" for example. Static text. */
DELTABUCKET_API const char *deltabucket_version(void);

/* --- errors --- */

enum { DELTABUCKET_ERROR_TEXT_BYTES = 512, DELTABUCKET_NAME_BYTES = 64 };

struct deltabucket_error {
	int number;   /* 0: none; a kind's number never changes: docs/LIBRARY.md lists them */
	int os_errno; /* 0 when the operating system had no part in it */
	/* the kind's name, "not_found", "head_moved" or "wrong_base" for example */
	char kind[DELTABUCKET_NAME_BYTES];
	/* of the request that the server refused, as its log has it; "" when none was refused */
	char request_id[DELTABUCKET_NAME_BYTES];
	/* a sentence that names the object and what was wrong with it */
	char text[DELTABUCKET_ERROR_TEXT_BYTES];
};

/* --- watching and cancelling a call --- */

/* What a call reports while it works. The functions are called from threads of the library, and a
 * slow one is called again by another thread before it has returned; NULL: not called. They must
 * call nothing of the library but deltabucket_watch_cancel. */
struct deltabucket_watch_settings {
	size_t size;
	/* a few times a second: `done` of `total` bytes (0: not known) of the work `what` */
	void (*progress)(void *owner, const char *what, uint64_t done, uint64_t total);
	/* a sentence that a person should read, like "fetching step 7 as the baseline" */
	void (*note)(void *owner, const char *sentence);
	void *owner;
	/* a sentence about what a person may have to mend, like "there is no run m/polcy yet; follow
	 * waits for it"; NULL: `note` gets it */
	void (*warn)(void *owner, const char *sentence);
};
#define DELTABUCKET_WATCH_SETTINGS DELTABUCKET_SIZED(deltabucket_watch_settings)

struct deltabucket_watch;
/* `settings` NULL: a watch that can only cancel. So is one whose size is not set. Never fails. */
DELTABUCKET_API struct deltabucket_watch *deltabucket_watch_new(
	const struct deltabucket_watch_settings *settings);
/* From any thread, also from a signal handler's thread but not from the handler: every call that
 * has this watch fails with `busy` within about a second, and every later one at once. */
DELTABUCKET_API void deltabucket_watch_cancel(struct deltabucket_watch *watch);
/* No call may use it any more. NULL is fine. */
DELTABUCKET_API void deltabucket_watch_free(struct deltabucket_watch *watch);

/* --- the server --- */

struct deltabucket_client_settings {
	size_t size;
	/* NULL: from DELTABUCKET_ENDPOINT, DELTABUCKET_TOKEN and DELTABUCKET_CA, then from the
	 * config file that `deltabucket login` writes, like the command line */
	const char *endpoint; /* "https://host:port" */
	const char *token;
	const char *ca; /* path of a PEM file; without one the system's CAs count */
	/* in the config file; NULL: DELTABUCKET_PROFILE, then "default". With one that is named
	 * here, the environment does not count, as with --profile. */
	const char *profile;
	int retries;       /* tries after the first; below 0: none; 0: 4 */
	unsigned parallel; /* transfers at a time; 0: 4 */
	unsigned threads;  /* for encoding and decoding; 0: one per core */
	unsigned reserved; /* 0 */
};
#define DELTABUCKET_CLIENT_SETTINGS DELTABUCKET_SIZED(deltabucket_client_settings)

struct deltabucket_client;
/* Reads the settings, which are copied; sends nothing. invalid when there is no endpoint. */
DELTABUCKET_API struct deltabucket_client *deltabucket_client_new(
	const struct deltabucket_client_settings *settings, struct deltabucket_error *err);
/* Nothing made from it may be in use any more. NULL is fine. */
DELTABUCKET_API void deltabucket_client_free(struct deltabucket_client *client);
/* Borrowed from the client. */
DELTABUCKET_API const char *deltabucket_client_endpoint(const struct deltabucket_client *client);

/* --- objects --- */

struct deltabucket_object {
	size_t size;
	const char *key;
	uint64_t bytes;
	int64_t modified_ms; /* since 1970 */
	const char *etag;    /* without quotes */
};

/* Uploads the file at `path`. Chunks that the server has are not sent. no_bucket when there is no
 * such bucket. */
DELTABUCKET_API int deltabucket_put_file(struct deltabucket_client *client, const char *bucket,
	const char *key, const char *path, struct deltabucket_watch *watch,
	struct deltabucket_error *err);
/* The same for bytes in memory, in one request. */
DELTABUCKET_API int deltabucket_put(struct deltabucket_client *client, const char *bucket,
	const char *key, const void *bytes, size_t len, struct deltabucket_watch *watch,
	struct deltabucket_error *err);
/* Downloads to `path`, which appears whole and proven or not at all. The same call continues where
 * an earlier one stopped. */
DELTABUCKET_API int deltabucket_get_file(struct deltabucket_client *client, const char *bucket,
	const char *key, const char *path, struct deltabucket_watch *watch,
	struct deltabucket_error *err);
/* Reads up to `len` bytes from byte `from` on into `into`. *out_len: how many came, 0 behind the
 * end. *out_bytes, which may be NULL: the object's size. */
DELTABUCKET_API int deltabucket_get(struct deltabucket_client *client, const char *bucket,
	const char *key, uint64_t from, void *into, size_t len, size_t *out_len,
	uint64_t *out_bytes, struct deltabucket_watch *watch, struct deltabucket_error *err);
/* Calls `found` once with the facts of one object, without its bytes. The texts are valid until
 * `found` returns; what it returns counts in a listing only. */
typedef int deltabucket_found_fn(void *owner, const struct deltabucket_object *object);
DELTABUCKET_API int deltabucket_head(struct deltabucket_client *client, const char *bucket,
	const char *key, deltabucket_found_fn *found, void *owner, struct deltabucket_watch *watch,
	struct deltabucket_error *err);
/* Calls `found` for each object whose key begins with `prefix`, in order of the keys, on the
 * calling thread. `delimiter` NULL or "": every key; otherwise keys that go on behind the next
 * delimiter are reported once, cut behind it, with the size 0 and the etag "". The listing ends,
 * successfully, when `found` returns anything but 0. */
DELTABUCKET_API int deltabucket_list(struct deltabucket_client *client, const char *bucket,
	const char *prefix, const char *delimiter, deltabucket_found_fn *found, void *owner,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
/* Removes the object; one that does not exist counts as removed. */
DELTABUCKET_API int deltabucket_remove(struct deltabucket_client *client, const char *bucket,
	const char *key, struct deltabucket_watch *watch, struct deltabucket_error *err);
/* Makes the bucket. bucket_owned when the caller has it already. */
DELTABUCKET_API int deltabucket_make_bucket(struct deltabucket_client *client, const char *bucket,
	struct deltabucket_watch *watch, struct deltabucket_error *err);

/* --- folders --- */

struct deltabucket_sync_settings {
	size_t size;
	const char *bucket;
	const char *prefix; /* NULL or "": the whole bucket; else it counts as a folder's name */
	const char *folder;
	const char *direction; /* "up": the prefix becomes like the folder; "down": the reverse */
	int deletes;           /* 1: what the source lacks is removed from the target, at the end */
	int dry_run;           /* 1: nothing is changed; what would be done is told and counted */
	int create_bucket;     /* 1: on the way up, make the bucket if there is none */
	/* `what` happened to the file `name`: "uploaded", "downloaded", "removed", or "refused",
	 * when the server does not let a removal happen. From any thread, one call at a time; it
	 * calls nothing of the library but deltabucket_watch_cancel. NULL: not called. */
	void (*told)(void *owner, const char *what, const char *name, uint64_t bytes);
	void *owner;
};
#define DELTABUCKET_SYNC_SETTINGS DELTABUCKET_SIZED(deltabucket_sync_settings)

struct deltabucket_synced {
	size_t size;
	uint64_t files;         /* at the source */
	uint64_t moved;         /* those that differed */
	uint64_t moved_bytes;   /* of them */
	uint64_t traffic_bytes; /* that went over the network for them */
	uint64_t removed;
	uint64_t refused;
};
#define DELTABUCKET_SYNCED DELTABUCKET_SIZED(deltabucket_synced)

/* Makes a prefix of a bucket like a folder, or a folder like a prefix, as `deltabucket sync` does:
 * only files that differ move, and of those only chunks that the other side lacks. *out, which may
 * be NULL, is also set when removals were refused; then the call fails with the first refusal.
 * not_found when `deletes` would empty the target because there is nothing at the source; invalid
 * when a link leads to a folder, or a key cannot be a file's name; then nothing is done. */
DELTABUCKET_API int deltabucket_sync(struct deltabucket_client *client,
	const struct deltabucket_sync_settings *settings, struct deltabucket_synced *out,
	struct deltabucket_watch *watch, struct deltabucket_error *err);

/* --- tensors and deltas --- */

enum { DELTABUCKET_DIGEST_BYTES = 42 }; /* "xxh3-128:" and 32 hex digits */

struct deltabucket_tensor {
	const char *name;
	const char *dtype; /* as safetensors writes it: "BF16", "F32", "F8_E4M3" ... */
	const uint64_t *shape;
	size_t rank;    /* numbers in `shape`; 0: a scalar */
	void *data;     /* calls that only read do not write here */
	uint64_t bytes; /* of `data`: what dtype and shape say */
};

/* A file beside the tensors, like config.json. */
struct deltabucket_file {
	const char *path; /* relative, with '/' between parts */
	const void *bytes;
	uint64_t len;
};

/* Makes the delta from the checkpoint `base` to the checkpoint `next` (files or folders) at `out`,
 * which must not exist. `format` NULL: "ulp-class"; docs/FORMAT.md lists them. */
DELTABUCKET_API int deltabucket_diff(const char *base, const char *next, const char *out,
	const char *format, struct deltabucket_watch *watch, struct deltabucket_error *err);
/* Applies deltas, in order, to the checkpoint `base`; the result appears at `out`, whole and
 * proven. wrong_base when they were made from another. */
DELTABUCKET_API int deltabucket_apply(const char *base, const char *const *deltas, size_t count,
	const char *out, struct deltabucket_watch *watch, struct deltabucket_error *err);

struct deltabucket_patch_settings {
	size_t size;
	/* 1: everything is proven before the first byte is written, so a failure leaves the
	 * tensors as they were; it costs a second pass. 0: one pass, base and result are proven
	 * on the way, and a failure may leave the tensors spoiled. */
	int proves_first;
	unsigned threads; /* 0: one per core */
};
#define DELTABUCKET_PATCH_SETTINGS DELTABUCKET_SIZED(deltabucket_patch_settings)
/* Applies deltas, in order, to tensors in memory, in place. The tensors must be those of the
 * checkpoint that the first delta was made from, in any order. wrong_base when they are not,
 * digest_mismatch when the result is not what the last delta says. *out_spoiled, which may be NULL:
 * whether a failure has left tensors changed; then they are worth nothing, and digest_mismatch or
 * invalid may stand where wrong_base would. */
DELTABUCKET_API int deltabucket_patch(struct deltabucket_tensor *tensors, size_t count,
	const char *const *deltas, size_t delta_count,
	const struct deltabucket_patch_settings *settings, int *out_spoiled,
	struct deltabucket_watch *watch, struct deltabucket_error *err);

/* --- tensors in the memory of a device --- */

/* A GPU applies deltas itself: this library lays them out for it and has the source of the kernels.
 * What it does not have is a way to reach a device: the caller compiles, copies and launches.
 * weights/device/device_block.h in the source has the layout of a block, and at the top of the
 * kernels' source it stands, too. */
struct deltabucket_device;
enum { DELTABUCKET_DEVICE_BLOCK_BYTES = 112 };

/* The kernels in CUDA C, whole; static text. */
DELTABUCKET_API const char *deltabucket_device_source(void);
/* The tensors of a checkpoint, in any order; names and shapes are copied. Their `data` are
 * addresses on the device, which are never read or written here: multiples of the size of an
 * element. NULL: this tensor is not there, and its blocks are left out of deltas. */
DELTABUCKET_API struct deltabucket_device *deltabucket_device_new(
	const struct deltabucket_tensor *tensors, size_t count, struct deltabucket_error *err);
DELTABUCKET_API void deltabucket_device_free(struct deltabucket_device *device); /* or NULL */
/* Tensors are cut into blocks of 2^20 words, all tensors in byte order of their names: how many. */
DELTABUCKET_API size_t deltabucket_device_blocks(const struct deltabucket_device *device);
/* Fills `hashes`, one for each block, from the same tensors in memory of the host; `tensors` has
 * their addresses in the order of deltabucket_device_new. `threads` 0: one per core. */
DELTABUCKET_API void deltabucket_device_hash(const struct deltabucket_device *device,
	const void *const *tensors, unsigned threads, uint64_t *hashes);
/* Fills `blocks` with those of all tensors that are on the device, DELTABUCKET_DEVICE_BLOCK_BYTES
 * each, and returns their count. Applied, they change nothing and prove that the device holds what
 * `hashes` say. */
DELTABUCKET_API size_t deltabucket_device_keep(
	const struct deltabucket_device *device, const uint64_t *hashes, void *blocks);

struct deltabucket_device_delta_facts {
	size_t size;
	size_t blocks;
	size_t tensors; /* that have blocks */
	uint64_t upload_bytes;
	uint64_t decoded_bytes; /* of the upload, that this library decodes; the device the rest */
	uint64_t changes;       /* places in the lists of the device */
	uint64_t result_bytes;  /* of all blocks */
	/* of all tensors before and after the delta, as in deltabucket_step_facts; "" when the delta
	 * does not say it. Blocks that the delta lacks are proven by no hash, so it may be applied
	 * only to the tensors of base_digest. */
	char base_digest[DELTABUCKET_DIGEST_BYTES];
	char result_digest[DELTABUCKET_DIGEST_BYTES];
	unsigned reserved; /* 0 */
};
#define DELTABUCKET_DEVICE_DELTA_FACTS DELTABUCKET_SIZED(deltabucket_device_delta_facts)

struct deltabucket_device_delta;
/* Opens the delta at `path` for these tensors. unsupported when its format is not ulp-class,
 * schema_mismatch or invalid when it is for other tensors, invalid when its headers are damaged or
 * when a tensor that it changes does not lie at such a multiple. What is at `path` must stay as it
 * is until the delta is closed, and the device must outlive it. */
DELTABUCKET_API struct deltabucket_device_delta *deltabucket_device_delta_open(
	const struct deltabucket_device *device, const char *path,
	struct deltabucket_device_delta_facts *out, struct deltabucket_error *err);
/* Fills the memory that is to be copied to the device, on any addresses that 16 divides: `upload`
 * and `blocks`, as large as the facts say (DELTABUCKET_DEVICE_BLOCK_BYTES for each block).
 * `threads` 0: one per core. invalid when the delta is damaged. */
DELTABUCKET_API int deltabucket_device_delta_fill(const struct deltabucket_device_delta *delta,
	void *upload, void *blocks, unsigned threads, struct deltabucket_error *err);
DELTABUCKET_API void deltabucket_device_delta_close(
	struct deltabucket_device_delta *delta); /* or NULL */

/* --- publishing --- */

struct deltabucket_publisher_settings {
	size_t size;
	const char *run; /* "BUCKET/RUN" */
	/* Where the publisher remembers the run and keeps the weights that it published last, the
	 * baseline of the next delta. NULL: in memory, for as long as the publisher lives; a new
	 * one fetches them from the server, and must take the run over when it has steps. The
	 * memory is a private folder in /dev/shm, or, with a note, in $TMPDIR or /tmp where that
	 * has no room for two checkpoints. Otherwise a folder that outlives the process, like
	 * --state of the command line. */
	const char *state;
	int create_bucket;  /* 1: make the bucket if there is none */
	int take_over;      /* 1: become the writer even if another publisher is */
	int64_t keep_steps; /* the run's retention; below 0: unchanged */
};
#define DELTABUCKET_PUBLISHER_SETTINGS \
	DELTABUCKET_SIZED_BUT(deltabucket_publisher_settings, keep_steps, -1)

struct deltabucket_publication {
	size_t size;
	/* the checkpoint: a file or folder ... */
	const char *path;
	/* ... or tensors in memory (`path` NULL), which must not change during the call, with the
	 * files that belong beside them: workers get model.safetensors and these files */
	const struct deltabucket_tensor *tensors;
	size_t tensor_count;
	const struct deltabucket_file *files;
	size_t file_count;
	int64_t step;                /* that this must become, else the call fails; below 0: any */
	const char *label;           /* NULL: none */
	const char *const *metadata; /* name, value, name, value ..., NULL; NULL: none */
	const char *anchor;          /* "auto", "always", "never", "every=N"; NULL: "auto" */
	const char *format;          /* of the delta; NULL: "ulp-class" */
	/* `ranks` above 0: this is rank number `rank`, from 0 on, of so many that publish the step
	 * together, each its own tensors, rank 0 also the files. From memory each rank is a shard
	 * of its own, model-00001-of-00002.safetensors for rank 0 of 2, and rank 0 of several has
	 * the file model.safetensors.index.json, which says where each tensor is. `path` is a
	 * folder that all ranks have written into, or one with the rank's shards alone. The format
	 * is NULL, the anchor not "every=N"; label and metadata are those of rank 0. */
	unsigned rank, ranks;
	/* of deltabucket_publisher_epoch, the same for all ranks, where they have no state folder
	 * in common; 0: they find it in that folder */
	uint64_t epoch;
	/* how long to wait for the other ranks; 0: an hour, below 0: not at all */
	int64_t wait_s;
};
#define DELTABUCKET_PUBLICATION DELTABUCKET_SIZED_BUT(deltabucket_publication, step, -1)

struct deltabucket_published {
	size_t size;
	uint64_t step;
	char digest[DELTABUCKET_DIGEST_BYTES]; /* of the tensors */
	int already;                           /* this very step had been published before */
	int anchor_due;                        /* the server wants an anchor with the next step */
	uint64_t checkpoint_bytes;
	uint64_t delta_bytes;                /* sent as a delta; 0: none */
	uint64_t anchor_bytes;               /* sent as an anchor; 0: none */
	uint64_t elements, changed_elements; /* 0 when no delta was made in this call */
	int64_t diff_ms, upload_ms;
};
#define DELTABUCKET_PUBLISHED DELTABUCKET_SIZED(deltabucket_published)

struct deltabucket_publisher;
/* Sends nothing. `client` must outlive the publisher. */
DELTABUCKET_API struct deltabucket_publisher *deltabucket_publisher_open(
	struct deltabucket_client *client, const struct deltabucket_publisher_settings *settings,
	struct deltabucket_error *err);
/* Publishes the next step: as a delta against the step before, or whole. *out may be NULL. After a
 * failure the same call continues. head_moved or stale_epoch when another publisher has taken the
 * run; schema_mismatch when the tensors are not those of the run's first step.
 * One of several ranks returns when the step is there, with what it has sent itself. not_ready when
 * the others do not come in time. invalid when two ranks have one tensor; schema_mismatch or
 * incomplete_anchor when all together have not those of the run; parts_mismatch when some send a
 * delta and others not; step_differs or head_moved when they do not mean the same step and number
 * of ranks. A publisher publishes alone or as a rank, not both. */
DELTABUCKET_API int deltabucket_publish(struct deltabucket_publisher *publisher,
	const struct deltabucket_publication *publication, struct deltabucket_published *out,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
/* For ranks without a state folder in common: one of them becomes the run's writer now, as its
 * first publication would, and tells the others the epoch. Whatever an earlier attempt has left of
 * a step is dropped. stale_epoch when the run has another publisher, unless the settings take it
 * over. */
DELTABUCKET_API int deltabucket_publisher_epoch(struct deltabucket_publisher *publisher,
	uint64_t *out_epoch, struct deltabucket_watch *watch, struct deltabucket_error *err);
/* NULL is fine. */
DELTABUCKET_API void deltabucket_publisher_close(struct deltabucket_publisher *publisher);

/* --- following --- */

struct deltabucket_follower_settings {
	size_t size;
	const char *run; /* "BUCKET/RUN" */
	/* The folder that holds the weights, as `deltabucket follow --into` keeps it: a later
	 * follower, or the command line, goes on from there. NULL: the weights stay in memory and
	 * are changed in place from step to step. */
	const char *folder;
	const char *replica; /* name in the fleet; NULL: made of host and folder or process */
	int is_silent;       /* 1: the fleet does not hear of this worker */
	unsigned threads;    /* 0: one per core */
	/* 1: in memory, keeps what a step has changed, for deltabucket_step_changes: 2 bytes for
	 * each element. In a folder the step before is kept in any case. */
	int keeps_changes;
	/* Only these tensors, with the files beside them: shell patterns with commas between them,
	 * NULL for all ... */
	const char *tensors;
	/* ... or part number `rank`, from 0 on, of `ranks` parts with about as many bytes, whose
	 * tensors are neighbours in byte order of the names; ranks 0: all */
	unsigned rank, ranks;
};
#define DELTABUCKET_FOLLOWER_SETTINGS DELTABUCKET_SIZED(deltabucket_follower_settings)

struct deltabucket_step_facts {
	size_t size;
	uint64_t number;
	char digest[DELTABUCKET_DIGEST_BYTES]; /* of all tensors of the step */
	const char *label;  /* "" when it has none; borrowed from the step, like all texts here */
	int64_t created_ms; /* since 1970 */
	/* of the run, as far as known: newest - number is the lag. In a rollback: its step */
	uint64_t newest;
	const char *path; /* the checkpoint's folder; "" when it is in memory */
	size_t tensor_count;
	/* deltas that led here from the step before; 0: it came whole, or in memory by more than
	 * 32 deltas or with other headers of the shards */
	size_t delta_count;
	uint64_t fetched_bytes;
};
#define DELTABUCKET_STEP_FACTS DELTABUCKET_SIZED(deltabucket_step_facts)

struct deltabucket_follower;
struct deltabucket_step;
/* Opens the folder and proves what it holds. Sends nothing. `client` must outlive the follower. */
DELTABUCKET_API struct deltabucket_follower *deltabucket_follower_open(
	struct deltabucket_client *client, const struct deltabucket_follower_settings *settings,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
/* Brings the newest step if it is newer than the one that is held, or that the caller has not seen
 * yet; during a rollback of the run's fleet the step of that, which may be an earlier one.
 * `wanted` 0 or more: brings that step, also backwards. Waits up to `wait_ms` for one to appear
 * (below 0: for ever). 1 with *out, 0 when none came. The run may not exist yet. Network failures
 * are tried again until the wait is over; upstream when the server could not be reached in all that
 * time. In memory mode the call changes the tensors of the steps before it (their memory
 * may be read until they are freed, but has other bytes), and a call that is cancelled while it
 * changes them costs a download of the whole step. The fleet is told that the step before is
 * "ready", unless deltabucket_follower_report has said otherwise. */
DELTABUCKET_API int deltabucket_follower_next(struct deltabucket_follower *follower, int64_t wanted,
	int64_t wait_ms, struct deltabucket_step **out, struct deltabucket_watch *watch,
	struct deltabucket_error *err);
/* Tells the fleet what this worker does with the step that it holds: "ready" (it serves it),
 * "staging" or "error" with a sentence. */
DELTABUCKET_API int deltabucket_follower_report(struct deltabucket_follower *follower,
	const char *state, const char *sentence, struct deltabucket_error *err);
/* For how long the engine was paused to take the step that the follower holds, in ms. The fleet
 * hears it with the reports that follow, until another step comes. not_ready while none is held. */
DELTABUCKET_API int deltabucket_follower_paused(
	struct deltabucket_follower *follower, uint64_t ms, struct deltabucket_error *err);
/* Tells the fleet that this worker is gone, unless the server takes more than about a second to
 * hear it. Its steps stay valid, but for the paths of deltas. NULL is fine. */
DELTABUCKET_API void deltabucket_follower_close(struct deltabucket_follower *follower);

/* The texts are borrowed from the step. *out stays as it is unless its size is set. */
DELTABUCKET_API void deltabucket_step_facts(
	const struct deltabucket_step *step, struct deltabucket_step_facts *out);
/* The tensor at `index` in byte order of the names; name, shape and data are borrowed from the
 * step. The data is read-only; NULL when a later step has taken its place in memory. All of *out is
 * zero behind the last tensor. */
DELTABUCKET_API void deltabucket_step_tensor(
	const struct deltabucket_step *step, size_t index, struct deltabucket_tensor *out);
/* The path of delta `index` of the step, in the order in which they apply; borrowed. NULL behind
 * the last one. For deltabucket_patch and deltabucket_device_delta_open. The files are there until
 * deltabucket_follower_next brings another step, or the follower is closed. */
DELTABUCKET_API const char *deltabucket_step_delta(
	const struct deltabucket_step *step, size_t index);
/* The elements of tensor `index` that differ from the step before. Calls `found` once, on the
 * calling thread, with the positions, in rising order, and the new values, one after the other;
 * `count` may be 0, and what it returns does not count. Both are valid until it returns.
 * unsupported when the step came whole, and for a follower in memory without keeps_changes. */
typedef int deltabucket_changes_fn(
	void *owner, const uint64_t *positions, const void *values, size_t count);
DELTABUCKET_API int deltabucket_step_changes(const struct deltabucket_step *step, size_t index,
	deltabucket_changes_fn *found, void *owner, struct deltabucket_error *err);
/* NULL is fine. */
DELTABUCKET_API void deltabucket_step_free(struct deltabucket_step *step);

/* --- the run --- */

/* The server's answer to a GET of `target` ("/v1/runs/BUCKET/RUN", for example), as it is: JSON.
 * Calls `found` once. For lists of steps and of the fleet: docs/protocol/steps.md. */
typedef int deltabucket_answer_fn(void *owner, const char *bytes, size_t len);
DELTABUCKET_API int deltabucket_ask(struct deltabucket_client *client, const char *target,
	deltabucket_answer_fn *found, void *owner, struct deltabucket_watch *watch,
	struct deltabucket_error *err);

#ifdef __cplusplus
}
#endif

#endif
