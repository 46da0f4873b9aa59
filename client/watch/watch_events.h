/* Events of a watched run as sentences, and as objects for programs. */
#ifndef CLIENT_WATCH_WATCH_EVENTS_H
#define CLIENT_WATCH_WATCH_EVENTS_H

#include "client/watch/watch_picture.h"
#include "client/work/output.h"

enum { WATCH_SENTENCE_BYTES = 512 };

/* "step 7 is published", without the time. */
void watch_events_format(const struct watch_model *model, const struct watch_event *event,
	char out[WATCH_SENTENCE_BYTES]);
/* A line on stdout: the time and the sentence, or with --json an object. */
void watch_events_say(struct output *output, const char *run, const struct watch_model *model,
	const struct watch_event *event);

/* With --json, prints the run, the fleet and its first `limit` workers; otherwise nothing. */
void watch_events_print_all(struct output *output, const struct watch_view *view,
	const struct watch_model *model, size_t limit);

#endif
