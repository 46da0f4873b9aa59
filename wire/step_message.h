/* The step manifest and the requests around it, as JSON. Server and client both read and write
 * them. docs/protocol/steps.md, "Messages", is the normative text. Everything parsed lies in the
 * given arena. Parsing refuses missing fields, wrong types, unknown form kinds, bad digests, unsafe
 * names (absolute, "." and "..", empty segments, control characters), names that repeat and lists
 * over their limits. It ignores unknown fields. Parsed files and objects are sorted by name and the
 * anchor is the first form, in whatever order they came. Texts to be printed must be UTF-8. */
#ifndef WIRE_STEP_MESSAGE_H
#define WIRE_STEP_MESSAGE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/digest/xxh3.h"
#include "base/error.h"
#include "wire/rollback_message.h"
#include "wire/run_settings_message.h"

enum {
	STEP_FORMS_MAX = 2,
	STEP_OBJECTS_MAX = 4096, /* objects of one form; also files of a checkpoint */
	STEP_MESSAGE_MAX_BYTES = 16 * 1024 * 1024,
	/* JSON values; the largest valid message has about 80,000 */
	STEP_MESSAGE_MAX_VALUES = 128 * 1024,
	RUN_NAME_MAX_BYTES = 128, /* [A-Za-z0-9._-], not beginning with '.' or '-' */
	STEP_NAME_MAX_BYTES = 512,
	STEP_LABEL_MAX_BYTES = 256,
	STEP_FORMAT_MAX_BYTES = 64,
	STEP_KEY_MAX_BYTES = 1024,
	STEP_METADATA_MAX_BYTES = 64 * 1024, /* as compact text */
	STEP_REASON_MAX_BYTES = 4096,
	STEP_LINKS_MAX = 65536
};
#define STEP_PUBLISH_MAX_MS (UINT64_C(31) * 24 * 60 * 60 * 1000)

enum step_form_kind { STEP_ANCHOR = 0, STEP_DELTA = 1 };

struct step_object {
	/* path inside the form: "model.safetensors", "delta.safetensors", "files/config.json" */
	struct span name;
	struct span key;     /* object key in the bucket */
	struct span version; /* 32 hex digits; empty in a request: the current version */
	uint64_t size;
	struct digest128 digest;
	struct span url; /* answers only; relative to the run */
};

struct step_form {
	enum step_form_kind kind;
	struct span format; /* "full", "trl-gap", ... */
	struct step_object *objects;
	size_t object_count;
};

struct step_file { /* a file of the resulting checkpoint */
	struct span path;
	uint64_t size;
	struct digest128 digest;
};

/* NULL when none of the files has the path. */
const struct step_file *step_file_find(
	const struct step_file *files, size_t count, struct span path);

/* The state of the server's proof of a step. */
enum step_proof { STEP_PROOF_NONE = 0, STEP_PROOF_PENDING, STEP_PROOF_OK, STEP_PROOF_FAILED };
const char *step_proof_name(enum step_proof proof); /* "pending", "ok", "failed" */

struct step_message {
	uint64_t step;
	uint64_t epoch;
	bool has_base;      /* every step but 0 */
	uint64_t base_step; /* step - 1 */
	struct digest128 base_digest;
	struct digest128 digest; /* of the checkpoint */
	struct digest128 schema_digest;
	struct span label;    /* the trainer's own number or name; may be empty */
	struct span metadata; /* a JSON object of strings, as text; empty: none */
	/* 16 bytes for each tensor, in schema order; hex in JSON; empty: not given */
	struct span tensor_digests;
	struct step_file *files;
	size_t file_count;
	struct step_form forms[STEP_FORMS_MAX];
	size_t form_count;
	int64_t created_ms;       /* answers only */
	bool collected;           /* answers only */
	enum step_proof verified; /* answers only */
	struct span verify_error; /* why the proof failed; empty otherwise */
	/* From the publisher's begin of the step to its publish request, at most
	 * STEP_PUBLISH_MAX_MS. */
	bool has_publish_ms;
	uint64_t publish_ms;
	/* answers only: how many elements of the checkpoint's the step changed, as the proof has
	 * counted them */
	bool has_changed;
	uint64_t changed_elements;
	uint64_t changed_of;
	/* answers to a publish only: the next step should bring an anchor; the fleet is held */
	bool anchor_due;
	struct rollback_message rollback;
};

/* Body of PUT steps/{n}, and the manifest in answers. A message with `collected` has no forms and
 * may lack its base; in all others both are checked. So a request that claims to be collected has
 * no forms. Fails with base_missing when the base is not the step before. */
int step_message_parse(
	struct span json, struct arena *arena, struct step_message *out, struct error *err);
/* `run` is "bucket/run", or NULL in a request. `with_tensors` includes tensor_digests. Optional
 * fields that are empty or zero are left out, except the label. */
void step_message_print(
	const struct step_message *step, const char *run, bool with_tensors, struct buffer *out);
const char *step_form_kind_name(enum step_form_kind kind);
/* NULL when the step has no such form. */
const struct step_form *step_message_form(
	const struct step_message *step, enum step_form_kind kind);
uint64_t step_form_bytes(const struct step_form *form); /* at most INT64_MAX */
/* XXH3-128 of all that a republish must repeat: facts, files and forms, without epoch, versions,
 * keys, times and what the publish took. The digest of a parsed message does not depend on the
 * order in which its parts came. The server stores it, so its input never changes. */
struct digest128 step_message_content_digest(const struct step_message *step);

/* The step that a run was forked from. */
enum { RUN_PARENT_NAME_BYTES = 129 };
struct run_parent {
	char run[RUN_PARENT_NAME_BYTES]; /* NUL-terminated; empty: the run is not a fork */
	uint64_t step;
	struct digest128 digest;
};
/* A name that is too long is cut. */
struct run_parent run_parent_of(struct span run, uint64_t step, const struct digest128 *digest);

/* What a trainer put in a convention of its own, and why it did not become a step. */
struct run_failed_adoption {
	struct span publish; /* what the trainer calls it */
	int64_t created_ms;  /* when it was put */
	struct span error;   /* empty: none failed since the last one that became a step */
};

/* Answer of POST /v1/runs/{b}/{run} and of GET on it. */
struct run_message {
	struct span bucket;
	struct span run;
	uint64_t epoch; /* shuts out earlier writers; 0: the run was never opened */
	bool has_head;
	uint64_t head;
	struct digest128 head_digest;
	bool has_schema;
	struct digest128 schema_digest;
	uint64_t steps; /* count of kept steps */
	uint64_t bytes; /* of all kept forms */
	struct run_settings settings;
	struct run_parent parent;
	bool anchor_due; /* the next step should bring an anchor */
	struct rollback_message rollback;
	struct run_failed_adoption failed_adoption;
	int64_t created_ms;
};
int run_message_parse(
	struct span json, struct arena *arena, struct run_message *out, struct error *err);
void run_message_print(const struct run_message *run, struct buffer *out);
/* Its members alone, into an object that has begun. */
void run_message_print_members(const struct run_message *run, struct json_writer *writer);
/* Adds it as a member, if there is one. */
void run_failed_adoption_print(
	const struct run_failed_adoption *failed, struct json_writer *writer);

/* Answer of GET path: the links to apply in order. The first may be an anchor; all others are
 * deltas. Each delta begins where the link before it ended: at the step before its own or, if it is
 * a fold, at a lower one. A path without links has the same `from` and `to`. Parsing checks all of
 * this. */
struct path_message {
	uint64_t from_step; /* valid unless from_nothing */
	bool from_nothing;
	uint64_t to_step;
	uint64_t bytes;
	struct path_link {
		uint64_t step;
		/* the step that a delta turns into `step`; always below it */
		uint64_t from;
		struct digest128 digest; /* of the checkpoint after this link */
		struct step_form form;   /* the form to fetch */
		struct step_file *files; /* of the checkpoint after this link */
		size_t file_count;
	} * links;
	size_t link_count;
};
int path_message_parse(
	struct span json, struct arena *arena, struct path_message *out, struct error *err);
void path_message_print(const struct path_message *path, struct buffer *out);

/* The error body of the steps and admin faces: {"error":{"code":...,"message":...}}. */
struct error_message {
	struct span code;
	struct span message;
	bool has_anchor; /* with the code `collected`: the nearest anchor that is kept */
	uint64_t anchor;
};
int error_message_parse(
	struct span json, struct arena *arena, struct error_message *out, struct error *err);
void error_message_print(
	const struct error_message *message, const char *request_id, struct buffer *out);

#endif
