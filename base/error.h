/* One failure: what kind, and a full sentence naming the object and the path. Every function that
 * can fail takes a `struct error *` last, leaves it untouched on success and returns -1 (or NULL)
 * after setting it. The text is fixed size, so failing never allocates. A sentence that is too long
 * lacks its middle, which " [...] " stands for: it begins with what is wrong and ends with what
 * helps. Any thread; no shared state. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

enum error_kind {
	ERROR_NONE = 0,
#define ERROR_KIND(name, number, meaning) ERROR_##name = number,
#include "base/error.def"
#undef ERROR_KIND
};

enum { ERROR_TEXT_BYTES = 512 };

struct error {
	enum error_kind kind;
	int os_errno; /* 0 when the operating system had no part in it */
	char text[ERROR_TEXT_BYTES];
};

/* Sets kind and sentence. Always returns -1, so `return error_set(...)` is the whole failing
 * branch. */
int error_set(struct error *err, enum error_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int error_set_list(struct error *err, enum error_kind kind, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

/* As error_set, from errno: the kind follows (ENOENT not_found, ENOSPC/EDQUOT no_space, ENOMEM
 * no_memory, EACCES/EPERM denied, else io) and ": <strerror>" is appended. Call directly after the
 * failing call. Returns -1. */
int error_set_errno(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts "<what this level was doing>: " before the text and keeps the kind. Returns -1. */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "; <what helps>" behind the text, in place of its full stop, and keeps the kind. Returns
 * -1. */
int error_advise(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "not_found", "head_moved", ...: the lower-case name of the kind; static. */
const char *error_kind_name(enum error_kind kind);

/* Faults of ours, never of input: print file, line and condition and abort. On in release builds
 * too. */
#define ASSERT(condition) \
	((condition) ? (void)0 : error_assert_failed(#condition, __FILE__, __LINE__))
void error_assert_failed(const char *condition, const char *file, int line)
	__attribute__((noreturn));

#endif
