#include "storage/buckets/session.h"

#include <string.h>

#include "storage/buckets/session_row.h"
#include "storage/buckets/session_touches.h"

enum { WORK_ARENA_BYTES = 64 * 1024 };
/* A row that seems to be from the future is damaged, or the clock went back: it counts as ended. */
enum { AHEAD_MAX_MS = 5 * 60 * 1000 };

struct session_work {     /* texts in the call's arena */
	struct call call; /* first */
	struct session_record session;
	bool by_link;
	uint8_t link[SESSION_ID_BYTES];
	bool replaces;
	uint8_t replaced[SESSION_ID_BYTES];
	struct audit_entry audit;
};

static bool is_over(const struct session_record *session, int64_t now_ms);
static int64_t ends_ms(int64_t made_ms, int64_t seen_ms);
static struct session_work *work_new(struct store *store, const struct call_kind *kind,
	struct span key_id, const struct audit_entry *audit);
static int session_apply_touch(struct call *call, struct db *db, struct error *err);
static void session_end_touch(void *owner);
static int session_apply_open(struct call *call, struct db *db, struct error *err);
static int use_link(struct session_work *work, struct db *db, struct error *err);
static int end_replaced(struct session_work *work, struct db *db, struct error *err);
static int session_apply_end(struct call *call, struct db *db, struct error *err);
static int session_apply_link(struct call *call, struct db *db, struct error *err);
static struct span id_span(const uint8_t id[SESSION_ID_BYTES]);

static const struct call_kind touch_kind = {.stages = {{.apply = session_apply_touch}}};
static const struct call_kind open_kind = {.stages = {{.apply = session_apply_open}}};
static const struct call_kind end_kind = {.stages = {{.apply = session_apply_end}}};
static const struct call_kind link_kind = {.stages = {{.apply = session_apply_link}}};

int session_find(struct store *store, const uint8_t id[SESSION_ID_BYTES], int64_t now_ms,
	struct arena *arena, struct session_record *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = session_row_read(db, id_span(id), arena, out, err);
	store_reader_give(store, db);
	return found == 1 && is_over(out, now_ms) ? 0 : found;
}

void session_touch(struct store *store, const struct session_record *session, int64_t now_ms)
{
	if (now_ms - session->seen_ms < SESSION_TOUCH_MS ||
		!session_touches_begin(store_parts(store)->session_touches, session->id))
		return;
	struct session_work *const work =
		work_new(store, &touch_kind, session->key_id, &(const struct audit_entry){0});
	memcpy(work->session.id, session->id, sizeof(work->session.id));
	work->session.seen_ms = now_ms;
	work->session.ends_ms = ends_ms(session->made_ms, now_ms);
	call_start(&work->call, session_end_touch, work);
}

int session_list_read(struct store *store, struct span key_id, int64_t now_ms, struct arena *arena,
	struct session_list *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int outcome = session_row_list(db, key_id, now_ms, arena, out, err);
	store_reader_give(store, db);
	return outcome;
}

struct call *session_open_call(struct store *store, const struct session_opening *opening)
{
	struct session_work *const work =
		work_new(store, &open_kind, opening->key_id, &opening->audit);
	memcpy(work->session.id, opening->id, sizeof(work->session.id));
	work->session.made_ms = opening->now_ms;
	work->session.seen_ms = opening->now_ms;
	work->session.ends_ms = ends_ms(opening->now_ms, opening->now_ms);
	work->session.address = work->audit.address;
	work->by_link = opening->by_link;
	memcpy(work->link, opening->link, sizeof(work->link));
	work->replaces = opening->replaces;
	memcpy(work->replaced, opening->replaced, sizeof(work->replaced));
	return &work->call;
}

struct call *session_end_call(struct store *store, const uint8_t id[SESSION_ID_BYTES],
	struct span key_id, const struct audit_entry *audit)
{
	struct session_work *const work = work_new(store, &end_kind, key_id, audit);
	memcpy(work->session.id, id, sizeof(work->session.id));
	return &work->call;
}

struct call *session_link_call(struct store *store, const uint8_t link[SESSION_ID_BYTES],
	struct span key_id, int64_t now_ms, const struct audit_entry *audit)
{
	struct session_work *const work = work_new(store, &link_kind, key_id, audit);
	memcpy(work->link, link, sizeof(work->link));
	work->session.ends_ms = now_ms + SESSION_LINK_MS;
	return &work->call;
}

int session_link_find(struct store *store, const uint8_t link[SESSION_ID_BYTES], int64_t now_ms,
	struct arena *arena, struct span *out_key_id, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = session_row_find_link(db, id_span(link), now_ms, arena, out_key_id, err);
	store_reader_give(store, db);
	return found;
}

static bool is_over(const struct session_record *session, int64_t now_ms)
{
	return now_ms >= session->ends_ms || session->made_ms > now_ms + AHEAD_MAX_MS ||
		session->seen_ms > now_ms + AHEAD_MAX_MS ||
		session->ends_ms > ends_ms(session->made_ms, session->seen_ms);
}

static int64_t ends_ms(int64_t made_ms, int64_t seen_ms)
{
	const int64_t idle = seen_ms + SESSION_IDLE_MS;
	const int64_t total = made_ms + SESSION_TOTAL_MS;
	return idle < total ? idle : total;
}

static struct session_work *work_new(struct store *store, const struct call_kind *kind,
	struct span key_id, const struct audit_entry *audit)
{
	struct session_work *const work = call_new(sizeof(*work), kind, store, WORK_ARENA_BYTES);
	work->session.key_id = arena_copy(work->call.arena, key_id);
	work->audit = audit_copy(audit, work->call.arena);
	return work;
}

static int session_apply_touch(struct call *call, struct db *db, struct error *err)
{
	const struct session_record *const session = &((struct session_work *)call)->session;
	return session_row_touch(db, id_span(session->id), session->seen_ms, session->ends_ms, err);
}

static void session_end_touch(void *owner)
{
	struct session_work *const work = owner;
	session_touches_end(store_parts(work->call.store)->session_touches, work->session.id);
	call_free(&work->call);
}

static int session_apply_open(struct call *call, struct db *db, struct error *err)
{
	struct session_work *const work = (struct session_work *)call;
	const struct session_record *const session = &work->session;
	if (work->by_link && use_link(work, db, err) != 0)
		return -1;
	if (work->replaces && end_replaced(work, db, err) != 0)
		return -1;
	if (session_row_bound(
		    db, session->key_id, SESSIONS_OF_KEY_MAX - 1, SESSIONS_MAX - 1, err) != 0 ||
		session_row_add(db, session, err) != 0)
		return -1;
	return audit_add(db, &work->audit, err);
}

/* Two sign-ins with one link meet here, and the second one finds no row. */
static int use_link(struct session_work *work, struct db *db, struct error *err)
{
	struct span key_id;
	const int found = session_row_find_link(
		db, id_span(work->link), work->session.made_ms, work->call.arena, &key_id, err);
	if (found == 0 || (found == 1 && !span_equal(key_id, work->session.key_id)))
		return error_set(err, ERROR_NOT_FOUND,
			"The link was used before, or is older than 5 minutes.");
	return found < 0 ? -1 : session_row_remove_link(db, id_span(work->link), err);
}

/* The trail has the same as of a sign-out. */
static int end_replaced(struct session_work *work, struct db *db, struct error *err)
{
	struct session_record old;
	struct audit_entry audit = work->audit;
	const int found =
		session_row_read(db, id_span(work->replaced), work->call.arena, &old, err);
	if (found != 1)
		return found;
	audit.action = span_text("sign_out");
	audit.key_id = old.key_id;
	audit.subject = old.key_id;
	audit.detail = span_text("by a new sign-in");
	return session_row_remove(db, id_span(work->replaced), err) != 0
		? -1
		: audit_add(db, &audit, err);
}

static int session_apply_end(struct call *call, struct db *db, struct error *err)
{
	struct session_work *const work = (struct session_work *)call;
	struct session_record found;
	const int got = session_row_read(db, id_span(work->session.id), call->arena, &found, err);
	if (got < 0)
		return -1;
	if (got == 0 ||
		(work->session.key_id.len > 0 && !span_equal(found.key_id, work->session.key_id)))
		return error_set(err, ERROR_NOT_FOUND, "There is no such session.");
	if (work->audit.subject.len == 0)
		work->audit.subject = found.key_id;
	if (session_row_remove(db, id_span(work->session.id), err) != 0)
		return -1;
	return audit_add(db, &work->audit, err);
}

static int session_apply_link(struct call *call, struct db *db, struct error *err)
{
	struct session_work *const work = (struct session_work *)call;
	if (session_row_bound_links(db, SESSION_LINKS_MAX - 1, err) != 0 ||
		session_row_add_link(db, id_span(work->link), work->session.key_id,
			work->session.ends_ms, err) != 0)
		return -1;
	return audit_add(db, &work->audit, err);
}

static struct span id_span(const uint8_t id[SESSION_ID_BYTES])
{
	return span_of(id, SESSION_ID_BYTES);
}
