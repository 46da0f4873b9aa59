/* Sessions of the console: a sign-in with a key makes a row, and the cookie of a browser proves
 * that it is its owner's (api/auth/session_cookie.h). Rows, because any process that has the
 * catalog can judge them, and because a sign-out ends one at once. A session ends SESSION_TOTAL_MS
 * after the sign-in, and SESSION_IDLE_MS after its last use. Whether its key is still there, the
 * caller judges.
 *
 * The caller gives the time, in ms since 1970. Any thread, except functions with a struct db. */
#ifndef STORAGE_BUCKETS_SESSION_H
#define STORAGE_BUCKETS_SESSION_H

#include "storage/buckets/audit.h"
#include "storage/core/call.h"

enum {
	SESSION_ID_BYTES = 32,
	SESSION_IDLE_MS = 30 * 60 * 1000,
	SESSION_TOTAL_MS = 24 * 60 * 60 * 1000,
	SESSION_TOUCH_MS = 60 * 1000, /* a use is written down once in this time */
	SESSION_LINK_MS = 5 * 60 * 1000,
	SESSIONS_OF_KEY_MAX = 64, /* above these bounds the one unused for the longest time ends */
	SESSIONS_MAX = 1024,
	SESSION_LINKS_MAX = 64
};

struct session_record {
	uint8_t id[SESSION_ID_BYTES];
	struct span key_id;
	int64_t made_ms;
	int64_t seen_ms;
	int64_t ends_ms;
	struct span address; /* of the client that signed in, as text */
};

/* Finds a session that has not ended, with texts in the arena. Returns 1, 0 when there is none, -1
 * on error. */
int session_find(struct store *store, const uint8_t id[SESSION_ID_BYTES], int64_t now_ms,
	struct arena *arena, struct session_record *out, struct error *err);
/* Notes a use, if the last note is SESSION_TOUCH_MS old and none waits (session_touches.h): behind
 * the caller, who learns of no failure. Cheap. */
void session_touch(struct store *store, const struct session_record *session, int64_t now_ms);
struct session_list {
	struct session_record sessions[SESSIONS_MAX];
	size_t count;
};
/* Lists the sessions that have not ended, those used last first: of one key, or all for an empty
 * id. Texts lie in the arena. */
int session_list_read(struct store *store, struct span key_id, int64_t now_ms, struct arena *arena,
	struct session_list *out, struct error *err);

struct session_opening {
	uint8_t id[SESSION_ID_BYTES];
	struct span key_id;
	int64_t now_ms;
	struct audit_entry audit; /* written in the same change; its address is the session's */
	bool by_link;             /* the change uses up the link: */
	uint8_t link[SESSION_ID_BYTES];
	bool replaces; /* the change ends this session of the same browser, if it is still there: */
	uint8_t replaced[SESSION_ID_BYTES];
};
/* Makes a session. not_found when the link was used or has ended. */
struct call *session_open_call(struct store *store, const struct session_opening *opening);
/* Ends a session; of this key, or of any for an empty id. not_found. */
struct call *session_end_call(struct store *store, const uint8_t id[SESSION_ID_BYTES],
	struct span key_id, const struct audit_entry *audit);

/* Makes a link that signs in with a key once: `link` is the SHA-256 of its code. */
struct call *session_link_call(struct store *store, const uint8_t link[SESSION_ID_BYTES],
	struct span key_id, int64_t now_ms, const struct audit_entry *audit);
/* The key of a link that was not used and has not ended, in the arena. Returns 1, 0, or -1. */
int session_link_find(struct store *store, const uint8_t link[SESSION_ID_BYTES], int64_t now_ms,
	struct arena *arena, struct span *out_key_id, struct error *err);

#endif
