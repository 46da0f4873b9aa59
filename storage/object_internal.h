/* What object_read, object_put and step_anchor share. Internal to storage. */
#ifndef STORAGE_OBJECT_INTERNAL_H
#define STORAGE_OBJECT_INTERNAL_H

#include "storage/version.h"

/* A version row as callers see it; texts as they lie in `version` and the arena. */
int object_of_version(const struct version *version, struct arena *arena, struct object *out, struct error *err);
/* Cuts a key for a message. */
int object_no_key(struct span key, struct error *err);

#endif
