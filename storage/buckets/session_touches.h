/* Which sessions have a use that waits to be written down: so that requests add no change to the
 * queue while one is in it, however long the disk takes. Ids that share a mark count as one; they
 * are random, so nobody can choose that. Any thread. */
#ifndef STORAGE_BUCKETS_SESSION_TOUCHES_H
#define STORAGE_BUCKETS_SESSION_TOUCHES_H

#include "storage/buckets/session.h"

enum { SESSION_TOUCHES_MAX = 64 }; /* that wait at one time */

struct session_touches;
struct session_touches *session_touches_new(void);
void session_touches_free(struct session_touches *touches); /* NULL is fine */
/* True: the caller writes the use down, then calls session_touches_end. False: one waits. */
bool session_touches_begin(struct session_touches *touches, const uint8_t id[SESSION_ID_BYTES]);
void session_touches_end(struct session_touches *touches, const uint8_t id[SESSION_ID_BYTES]);

#endif
