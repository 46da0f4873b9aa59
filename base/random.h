/* Unpredictable bytes from the kernel. Any thread. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>

void random_bytes(void *out, size_t len); /* aborts if the kernel gives none */

#endif
