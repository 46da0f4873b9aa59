/* The routes for operators and Prometheus: health (the process runs), ready (the catalog can be
 * read and no stop has begun), metrics, keys, buckets, gc, scrub, damage and the holds of backups;
 * the CA, which clients fetch first; and what caches ask before they answer a reader. */
#include "api/route/router.h"

#include "api/admin/admin_audit.h"
#include "api/admin/admin_backup.h"
#include "api/admin/admin_bucket_list.h"
#include "api/admin/admin_buckets.h"
#include "api/admin/admin_damage.h"
#include "api/admin/admin_gc.h"
#include "api/admin/admin_keys.h"
#include "api/admin/admin_metrics.h"
#include "api/admin/admin_scrub.h"
#include "api/admin/admin_sessions.h"
#include "api/admin/admin_signed_urls.h"
#include "api/admin/admin_storage.h"
#include "api/admin/admin_usage.h"
#include "api/admin/may.h"
#include "api/exchange/readiness.h"
#include "api/live/handlers.h"
#include "api/live/server_warnings.h"

enum { READY_MAX_BYTES = 4096 };

static enum next admin_health_begin(struct exchange *exchange)
{
	return exchange_reply_body(exchange, 200, "text/plain; charset=utf-8", span_text("ok\n"));
}

/* With `?write` it checks also that the store accepts changes. The body names faults either way. */
static enum next admin_ready_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span ignored;
	struct buffer body;
	if (readiness_check(exchange, exchange_query(exchange, "write", &ignored), &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, READY_MAX_BYTES);
	server_warnings_print(exchange, &body);
	return exchange_reply_buffer(exchange, 200, "text/plain; charset=utf-8", &body);
}

/* The certificate of the CA, which is not secret. Clients fetch it before they can trust the
 * server, and compare its fingerprint. */
static enum next admin_ca_begin(struct exchange *exchange)
{
	const char *const pem = exchange->context->ca_pem;
	struct error err = {0};
	if (pem != NULL)
		return exchange_reply_body(exchange, 200, "application/x-pem-file", span_text(pem));
	error_set(&err, ERROR_NOT_FOUND,
		"This server has no CA of its own: its certificate comes from another CA, or it serves plain HTTP.");
	return exchange_fail(exchange, &err);
}

enum { GET_HEAD = METHOD_GET | METHOD_HEAD };

const struct route admin_routes[] = {
	{GET_HEAD, "/-/health", NULL, ACCESS_ANYONE, BODY_NONE, &face_steps, "Health",
		admin_health_begin, NULL, NULL},
	{GET_HEAD, "/-/ready", NULL, ACCESS_ANYONE, BODY_NONE, &face_steps, "Ready",
		admin_ready_begin, NULL, NULL},
	{GET_HEAD, "/-/ca", NULL, ACCESS_ANYONE, BODY_NONE, &face_steps, "GetCa", admin_ca_begin,
		NULL, NULL},
	{GET_HEAD, "/-/may", NULL, ACCESS_ANYONE, BODY_NONE, &face_steps, "May", may_begin, NULL,
		NULL},
	{GET_HEAD, "/-/metrics", NULL, ACCESS_METRICS, BODY_NONE, &face_steps, "Metrics",
		admin_metrics_begin, NULL, admin_metrics_resume},
	{GET_HEAD, "/-/overview", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps, "Overview",
		overview_begin, NULL, overview_resume},
	{METHOD_GET, "/-/events", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps, "LiveEvents",
		live_events_begin, NULL, NULL},
	{METHOD_GET, "/-/keys", NULL, ACCESS_ROOT, BODY_NONE, &face_steps, "ListKeys",
		admin_keys_list_begin, NULL, admin_keys_list_resume},
	{METHOD_POST, "/-/keys", NULL, ACCESS_ROOT, BODY_SMALL, &face_steps, "AddKey",
		admin_keys_add_begin, admin_keys_add_finish, admin_keys_add_resume},
	{METHOD_DELETE, "/-/keys/{id}", NULL, ACCESS_ROOT, BODY_NONE, &face_steps, "RevokeKey",
		admin_keys_revoke_begin, NULL, admin_keys_revoke_resume},
	{METHOD_GET, "/-/buckets", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps,
		"ListKnownBuckets", admin_bucket_list_begin, NULL, admin_bucket_list_resume},
	{METHOD_GET, "/-/buckets/{bucket}", NULL, ACCESS_BUCKET_SETTINGS, BODY_NONE, &face_steps,
		"GetBucket", admin_bucket_get_begin, NULL, NULL},
	{METHOD_PUT, "/-/buckets/{bucket}", NULL, ACCESS_BUCKET_ADMIN, BODY_SMALL, &face_steps,
		"PutBucket", admin_bucket_put_begin, admin_bucket_put_finish,
		admin_bucket_put_resume},
	{METHOD_GET, "/-/buckets/{bucket}/usage", NULL, ACCESS_BUCKET_SCAN, BODY_NONE, &face_steps,
		"BucketUsage", admin_usage_begin, NULL, admin_usage_resume},
	{METHOD_GET, "/-/buckets/{bucket}/search", NULL, ACCESS_BUCKET_SCAN, BODY_NONE, &face_steps,
		"SearchBucket", admin_search_begin, NULL, admin_search_resume},
	{METHOD_GET, "/-/storage", NULL, ACCESS_METRICS, BODY_NONE, &face_steps, "Storage",
		admin_storage_begin, NULL, admin_storage_resume},
	{METHOD_GET, "/-/packs", NULL, ACCESS_ROOT, BODY_NONE, &face_steps, "ListPacks",
		admin_packs_begin, NULL, admin_packs_resume},
	{METHOD_POST, "/-/gc", NULL, ACCESS_ROOT, BODY_SMALL, &face_steps, "Gc", admin_gc_begin,
		admin_gc_finish, admin_gc_resume},
	{METHOD_POST, "/-/scrub", NULL, ACCESS_ROOT, BODY_SMALL, &face_steps, "Scrub",
		admin_scrub_begin, admin_scrub_finish, admin_scrub_resume},
	{METHOD_GET, "/-/damage", NULL, ACCESS_ROOT, BODY_NONE, &face_steps, "Damage",
		admin_damage_begin, NULL, admin_damage_resume},
	{METHOD_GET, "/-/backup-holds", NULL, ACCESS_ROOT, BODY_NONE, &face_steps,
		"ListBackupHolds", admin_backup_list_begin, NULL, NULL},
	{METHOD_POST, "/-/backup-holds", NULL, ACCESS_ROOT, BODY_SMALL, &face_steps,
		"AddBackupHold", admin_backup_hold_begin, admin_backup_hold_finish,
		admin_backup_hold_resume},
	{METHOD_DELETE, "/-/backup-holds/{id}", NULL, ACCESS_ROOT, BODY_NONE, &face_steps,
		"EndBackupHold", admin_backup_end_begin, NULL, admin_backup_end_resume},
	{METHOD_POST, "/-/sessions", NULL, ACCESS_ANYONE, BODY_SMALL, &face_steps, "SignIn",
		admin_sign_in_begin, admin_sign_in_finish, admin_sign_in_resume},
	{METHOD_GET, "/-/session", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps, "GetSession",
		admin_session_get_begin, NULL, NULL},
	{METHOD_DELETE, "/-/session", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps, "SignOut",
		admin_session_end_begin, NULL, admin_session_end_resume},
	{METHOD_GET, "/-/sessions", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps, "ListSessions",
		admin_sessions_list_begin, NULL, NULL},
	{METHOD_DELETE, "/-/sessions/{id}", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps,
		"EndSession", admin_sessions_end_begin, NULL, admin_sessions_end_resume},
	{METHOD_POST, "/-/session-links", NULL, ACCESS_ROOT, BODY_SMALL, &face_steps,
		"AddSessionLink", admin_session_link_begin, admin_session_link_finish,
		admin_session_link_resume},
	{METHOD_POST, "/-/signed-urls", NULL, ACCESS_SIGNED_IN, BODY_SMALL, &face_steps, "SignUrls",
		admin_signed_urls_begin, admin_signed_urls_finish, admin_signed_urls_resume},
	{METHOD_GET, "/-/audit", NULL, ACCESS_ROOT, BODY_NONE, &face_steps, "ListAudit",
		admin_audit_begin, NULL, NULL},
	{.pattern = NULL},
};
