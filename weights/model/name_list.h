/* A JSON list of tensor names in one metadata value, read into sorted spans. Read-only after the
 * parse; any thread. */
#ifndef WEIGHTS_MODEL_NAME_LIST_H
#define WEIGHTS_MODEL_NAME_LIST_H

#include "base/buffer.h"

struct name_list {
	struct buffer strings;
	struct buffer names; /* struct span */
};

/* {NULL,0} gives the empty list. `what` names the list in messages. *list needs name_list_release,
 * also after a failure. */
int name_list_parse(struct name_list *list, struct span text, const char *what, struct error *err);
void name_list_release(struct name_list *list);
size_t name_list_count(const struct name_list *list);
struct span name_list_at(const struct name_list *list, size_t index);
bool name_list_has(const struct name_list *list, struct span name);

#endif
