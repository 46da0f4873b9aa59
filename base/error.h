/* One failure: its kind, and a sentence that names the object and what was wrong with it. Every
 * function that can fail takes a `struct error *` last. It leaves the error untouched on success,
 * and sets it and returns -1 (or NULL) on failure. The text has a fixed size, so that failing never
 * allocates. A text that is too long loses its middle, and " [...] " takes its place: the beginning
 * says what is wrong and the end says what helps. Any thread; no shared state. */
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

enum { ERROR_TEXT_BYTES = 512, ERROR_REQUEST_ID_BYTES = 64 };

struct error {
	enum error_kind kind;
	int os_errno; /* 0 when the operating system had no part in it */
	/* of the request that a server refused, as its log has it; "" when none was refused */
	char request_id[ERROR_REQUEST_ID_BYTES];
	char text[ERROR_TEXT_BYTES];
};

/* Sets kind and text, and clears the rest. Always returns -1, so that `return error_set(...)` is
 * the whole failing branch. */
int error_set(struct error *err, enum error_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int error_set_list(struct error *err, enum error_kind kind, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

/* As error_set, from errno: the kind follows from it (ENOENT not_found, ENOSPC and EDQUOT no_space,
 * ENOMEM no_memory, EACCES and EPERM denied, EROFS read_only, else io), and ": <strerror>" is
 * appended. Call it directly after the failing call. Returns -1. */
int error_set_errno(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Says the same failure in other words: sets kind and text, and keeps the rest. Returns -1. */
int error_reword(struct error *err, enum error_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "<what this level was doing>: " before the text and keeps the rest. Returns -1. */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "; <what helps>" after the text, in place of its full stop, and keeps the rest. Returns
 * -1. */
int error_advise(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The lower-case name of the kind, "not_found" or "head_moved" for example. Static text. */
const char *error_kind_name(enum error_kind kind);

/* For faults of this program, never for input: prints file, line and condition, and aborts. Release
 * builds check too. */
#define ASSERT(condition) \
	((condition) ? (void)0 : error_assert_failed(#condition, __FILE__, __LINE__))
void error_assert_failed(const char *condition, const char *file, int line)
	__attribute__((noreturn));

#endif
