/* Structs that callers fill or get, which begin with their size as the caller's compiler knew it.
 * Later versions add members at the end; so an old caller's struct is shorter, and a new caller's
 * longer. Any thread. */
#ifndef LIBRARY_SIZED_H
#define LIBRARY_SIZED_H

#include <stddef.h>

#include "base/error.h"

/* Copies the struct `given`, named `name` in messages, to `into`, which has `known` bytes and holds
 * the defaults: members that `given` lacks keep them. invalid when the size is not set, or when
 * members that this version does not know are not zero. */
int sized_take(void *into, size_t known, const void *given, const char *name, struct error *err);
/* Copies as many of the `known` bytes of `made` to `into` as that has room for by its size, which
 * stays, and zeroes what this version does not know. invalid when the size is not set. */
int sized_give(void *into, const void *made, size_t known, const char *name, struct error *err);

#endif
