/* Reads a multipart/form-data body (RFC 7578) piece by piece: small fields, then one file. A piece
 * may end at any byte, and the file's content is passed on without a copy. Text before the first
 * boundary and after the last one is ignored, and so are fields after the file. One thread at a
 * time. */
#ifndef API_S3_POST_FORM_DATA_H
#define API_S3_POST_FORM_DATA_H

#include "base/arena.h"
#include "base/stream.h"

enum {
	/* of all before the file's content: names, values, headers of parts */
	FORM_DATA_FIELDS_MAX_BYTES = 20 * 1024,
	FORM_DATA_BOUNDARY_MAX_BYTES = 70
};

/* -1 (or SINK_FAILED) ends the reading with the event's error. Spans live for the call. */
struct form_data_events {
	int (*field)(void *owner, struct span name, struct span value, struct error *err);
	/* The part named "file" begins: `file_name` as sent, empty when absent. */
	int (*file)(void *owner, struct span file_name, struct error *err);
	enum sink_result (*bytes)(void *owner, struct span bytes, struct error *err);
	void *owner;
};

/* Whether a Content-Type is multipart/form-data. */
bool form_data_is_form(struct span content_type);
/* The boundary of a Content-Type. Returns false, with *out empty, when it has no legal one. */
bool form_data_boundary(struct span content_type, struct arena *arena, struct span *out);

struct form_data;
/* A reader in the arena; form_data_free releases what it has outside. NULL when the arena is
 * full. */
struct form_data *form_data_new(
	struct arena *arena, struct span boundary, const struct form_data_events *events);
void form_data_free(struct form_data *form); /* NULL and a second call are fine */
/* As a sink's write. SINK_WAIT when the event `bytes` gives it; then the caller must write the same
 * bytes again, perhaps with more after them. invalid when the form is malformed, too_large when its
 * fields are over the limit, invalid_request for a second file. */
enum sink_result form_data_write(struct form_data *form, struct span bytes, struct error *err);
/* To be called when the body is whole: invalid when its closing boundary is missing. */
int form_data_finish(struct form_data *form, struct error *err);
bool form_data_has_file(const struct form_data *form);

#endif
