/* A worker's lease and its report about itself, as JSON. docs/protocol/steps.md, "Replica", is the
 * normative text. Everything parsed lies in the given arena. Unknown fields are ignored. */
#ifndef WIRE_REPLICA_MESSAGE_H
#define WIRE_REPLICA_MESSAGE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/digest/xxh3.h"
#include "base/error.h"
#include "wire/rollback_message.h"

struct json_node;
struct json_writer;

enum {
	REPLICA_MESSAGE_MAX_BYTES = 16 * 1024,
	REPLICA_ID_MAX_BYTES = 128,
	REPLICA_ERROR_MAX_BYTES = 1024,
	REPLICA_TENSORS_MAX_BYTES = 1024,
	REPLICA_HOST_MAX_BYTES = 256,
	REPLICA_LIST_MAX = 1000, /* replicas of one page */
	REPLICA_WANTS_MAX = 16,
	REPLICA_CHUNK_BYTES = 64 /* digits of a chunk's hash string */
};

enum replica_state {
	REPLICA_IDLE,
	REPLICA_FETCHING,
	REPLICA_STAGING,
	REPLICA_READY,
	REPLICA_ERROR,
	REPLICA_STATE_COUNT
};

/* Bytes that the server asks the worker for, because it has lost them: a range of a file of the
 * held step that has this size and digest. */
struct replica_want {
	char chunk[REPLICA_CHUNK_BYTES + 1]; /* its hash string */
	uint64_t size;
	struct digest128 digest;
	uint64_t offset;
	uint64_t length; /* the range lies in the file */
};

struct replica_message {
	enum replica_state state;
	bool has_step; /* it holds a step: */
	uint64_t step;
	bool has_digest; /* of the checkpoint that it holds */
	struct digest128 digest;
	bool has_wanted; /* it is on its way to this step: */
	uint64_t wanted;
	struct span error; /* why it failed; may be empty, like the next two */
	/* the part of the checkpoint that it holds, in its own words; empty: all */
	struct span tensors;
	struct span host;
	bool has_pause; /* its engine was paused for the step that it holds, for so long: */
	uint64_t pause_ms;
	/* answers only: */
	struct span id;
	int64_t since_ms;   /* of its first report */
	int64_t updated_ms; /* of its last report */
	bool expired;
	uint64_t lease_s;
	/* only in the answer to a report, 0 from older servers: how often reports with nothing new
	 * are to come, and for how long a worker is fetching or staging before it says so */
	uint64_t report_s;
	uint64_t passing_s;
	bool has_head;
	uint64_t head;
	bool has_staleness; /* it holds a step and the run has a head */
	/* how far it is from the head or, during a rollback, from the step of that */
	uint64_t behind_steps;
	/* seconds since it could have gone on: since the step after its own was published, or since
	 * the rollback to one below it; 0 where it is there */
	uint64_t behind_s;
	struct replica_want *wants; /* only in the answer to a report */
	size_t want_count;          /* at most REPLICA_WANTS_MAX */
};

/* Checks a replica's id or a pin's name: 1 to 128 of A-Z a-z 0-9 . _ : - , not beginning with '.'
 * or '-'. The message begins with `what`. */
int replica_check_id(const char *what, struct span id, struct error *err);
const char *replica_state_name(enum replica_state state);

/* Body of PUT replicas/{id}, and the answers. */
int replica_message_parse(
	struct span json, struct arena *arena, struct replica_message *out, struct error *err);
int replica_message_read(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err);
/* Reads "wants" of an answer into `out`, which has room for REPLICA_WANTS_MAX. Returns their number:
 * one that is malformed is left out, and so are those that are too many. */
size_t replica_wants_read(const struct json_node *object, struct replica_want *out);
/* Prints only the fields that a worker reports. Equal reports give equal texts. */
void replica_message_print_request(const struct replica_message *replica, struct buffer *out);
void replica_message_print(const struct replica_message *replica, struct buffer *out);

/* What the replicas of a run do, all together. Those with an expired lease count only as such. */
struct fleet_counts {
	uint64_t states[REPLICA_STATE_COUNT];
	uint64_t expired;
	uint64_t without_step; /* 0 from older servers */
	bool has_oldest;
	uint64_t oldest;          /* the lowest step that one holds */
	bool has_report;          /* one has a lease, and the server tells: */
	uint64_t oldest_report_s; /* seconds since the earliest of their last reports */
};
/* Adds the members of an answer. */
void fleet_counts_print(const struct fleet_counts *counts, struct json_writer *writer);

/* Answer of GET replicas. */
struct replica_list_message {
	struct replica_message *replicas; /* in byte order of their ids */
	size_t count;
	struct span next; /* empty: the last page */
	/* about the whole run, the same on every page: */
	uint64_t lease_s;  /* of a replica that reports now */
	uint64_t report_s; /* how often it is to report; 0 from older servers */
	bool has_head;
	uint64_t head;
	struct rollback_message rollback;
	struct fleet_counts counts;
};
int replica_list_message_read(const struct json_node *answer, struct arena *arena,
	struct replica_list_message *out, struct error *err);
int replica_list_message_parse(
	struct span json, struct arena *arena, struct replica_list_message *out, struct error *err);
void replica_list_message_print(const struct replica_list_message *list, struct buffer *out);

#endif
