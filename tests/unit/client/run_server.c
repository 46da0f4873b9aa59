#include "tests/unit/client/run_server.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/part_message.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, OBJECT_MAX_BYTES = 4 * 1024 * 1024 };
static const char RUN[] = "/v1/runs/b/r";

static bool take(atomic_int *counter)
{
	int left = atomic_load(counter);
	while (left > 0)
		if (atomic_compare_exchange_weak(counter, &left, left - 1))
			return true;
	return false;
}

static void refuse(struct web_reply *reply, int status, const char *code)
{
	reply->status = status;
	buffer_format(&reply->body, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}", code, code);
}

static void answer_run(const struct run_server *server, struct web_reply *reply)
{
	struct run_message run = {.bucket = span_text("b"),
		.run = span_text("r"),
		.epoch = server->epoch,
		.has_head = server->count > 0,
		.steps = server->count,
		.created_ms = 1,
		.settings = run_settings_default(),
		.anchor_due = server->anchor_due};
	run.settings.keep_steps = server->keep_steps;
	if (run.has_head) {
		run.head = server->steps[server->count - 1].step;
		run.head_digest = server->steps[server->count - 1].digest;
	}
	reply->status = 200;
	run_message_print(&run, &reply->body);
}

/* The body of an opening, or of settings, says how many steps to keep, or nothing of it. */
static void take_keep(struct run_server *server, struct span body)
{
	sscanf((const char *)body.data, "{\"keep_steps\":%" SCNu64, &server->keep_steps);
}

static void open_run(struct run_server *server, struct span body, struct web_reply *reply)
{
	if (!server->has_bucket) {
		refuse(reply, 404, "no_bucket");
		return;
	}
	server->epoch++;
	take_keep(server, body);
	answer_run(server, reply);
}

static void answer_step(const struct step_message *step, struct web_reply *reply)
{
	reply->status = 200;
	step_message_print(step, "b/r", true, &reply->body);
}

static const struct step_message *find_step(const struct run_server *server, uint64_t step)
{
	for (size_t i = 0; i < server->count; i++)
		if (server->steps[i].step == step)
			return &server->steps[i];
	return NULL;
}

const struct step_message *run_server_step(const struct run_server *server, uint64_t step)
{
	const struct step_message *const found = find_step(server, step);
	ck_assert_ptr_ne(found, NULL);
	return found;
}

static size_t find_object(const struct run_server *server, const char *target)
{
	size_t i = 0;
	while (i < server->object_count && strcmp(server->objects[i].target, target) != 0)
		i++;
	return i;
}

/* All objects are there as declared; each gets the URL under which it is read. */
static bool take_objects(struct run_server *server, struct step_message *step)
{
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++) {
			struct step_object *const object = &step->forms[f].objects[i];
			const char *const url = arena_format(server->arena, "objects/%.*s",
				(int)object->key.len, (const char *)object->key.data);
			const size_t at = find_object(server,
				arena_format(server->arena, "/b/%s", url + strlen("objects/")));
			const struct span bytes = at == server->object_count
				? (struct span){0}
				: buffer_span(&server->objects[at].bytes);
			const struct digest128 digest = xxh3_128(bytes);
			if (bytes.len != object->size || !digest128_equal(&digest, &object->digest))
				return false;
			object->url = span_text(url);
		}
	return true;
}

static void take_new_step(
	struct run_server *server, struct step_message *step, struct web_reply *reply)
{
	const uint64_t next = server->count == 0 ? 0 : server->steps[server->count - 1].step + 1;
	if (step->epoch != server->epoch)
		refuse(reply, 409, "stale_epoch");
	else if (step->step != next)
		refuse(reply, 409, "head_moved");
	else if (!take_objects(server, step))
		refuse(reply, 409, "digest_mismatch");
	else {
		ck_assert_uint_lt(server->count, RUN_SERVER_STEPS);
		server->steps[server->count++] = *step;
		reply->status = 201;
		buffer_format(
			&reply->body, "{\"anchor_due\":%s}", server->anchor_due ? "true" : "false");
	}
}

static void take_step(struct run_server *server, struct step_message *step, struct web_reply *reply)
{
	const struct step_message *const there = find_step(server, step->step);
	const struct digest128 new = step_message_content_digest(step);
	const struct digest128 old = there == NULL ? new : step_message_content_digest(there);
	if (there == NULL)
		take_new_step(server, step, reply);
	else if (!digest128_equal(&old, &new))
		refuse(reply, 409, "step_differs");
	else
		reply->status = 200;
}

static void publish(struct run_server *server, struct span body, struct web_reply *reply)
{
	struct error err = {0};
	struct step_message step;
	if (take(&server->refusals)) {
		const bool is_full = server->refusal == NULL;
		refuse(reply, is_full ? 507 : 409, is_full ? "no_space" : server->refusal);
		return;
	}
	ck_assert_msg(step_message_parse(
			      arena_copy(server->arena, body), server->arena, &step, &err) == 0,
		"%s", err.text);
	take_step(server, &step, reply);
	if (take(&server->cuts))
		reply->status = 0;
}

static void put_part(
	struct run_server *server, uint64_t number, struct span body, struct web_reply *reply)
{
	struct error err = {0};
	struct part_message part;
	const bool waits = take(&server->waits);
	ck_assert_msg(part_message_parse(arena_copy(server->arena, body), number, server->arena,
			      &part, &err) == 0,
		"%s", err.text);
	part.step.digest = server->whole;
	if (server->is_of_others)
		part.step.files[0].digest.bytes[0] ^= 1;
	server->epoch += waits && server->is_fenced;
	if (waits)
		server->waiting = part.step;
	else
		take_step(server, &part.step, reply);
	if (!waits && reply->status >= 300)
		return;
	reply->status = 200;
	buffer_reset(&reply->body);
	part_answer_print(&(struct part_answer){.published = !waits}, &reply->body);
}

void run_server_complete(struct run_server *server)
{
	struct web_reply ignored = {0};
	buffer_init(&ignored.body, OBJECT_MAX_BYTES);
	take_step(server, &server->waiting, &ignored);
	ck_assert_int_eq(ignored.status, 201);
	buffer_release(&ignored.body);
}

static void add_link(
	struct path_message *path, const struct step_message *step, enum step_form_kind kind)
{
	const struct step_form *const form = step_message_form(step, kind);
	ck_assert_ptr_ne(form, NULL);
	path->links[path->link_count++] = (struct path_link){.step = step->step,
		.from = step->base_step,
		.digest = step->digest,
		.form = *form,
		.files = step->files,
		.file_count = step->file_count};
	path->bytes += step_form_bytes(form);
}

/* From what is held by deltas, else from the newest anchor. */
static void answer_path(struct run_server *server, const char *query, struct web_reply *reply)
{
	struct path_link links[RUN_SERVER_STEPS];
	struct path_message path = {.links = links, .from_nothing = true};
	const char *const have = strstr(query, "have=");
	uint64_t from = 0;
	if (server->count == 0 || take(&server->late)) {
		refuse(reply, 404, "not_ready");
		return;
	}
	path.to_step = server->is_held ? server->held : server->steps[server->count - 1].step;
	if (strstr(query, "want=latest") == NULL)
		ck_assert_int_eq(sscanf(strstr(query, "want="), "want=%" SCNu64, &path.to_step), 1);
	const struct step_message *const wanted = find_step(server, path.to_step);
	if (wanted != NULL && wanted->verified == STEP_PROOF_FAILED) {
		refuse(reply, 409, "step_failed");
		return;
	}
	if (have != NULL && sscanf(have, "have=%" SCNu64, &path.from_step) == 1 &&
		path.from_step <= path.to_step) {
		path.from_nothing = false;
		from = path.from_step + 1;
	} else {
		for (size_t i = 0; i < server->count && server->steps[i].step <= path.to_step; i++)
			if (step_message_form(&server->steps[i], STEP_ANCHOR) != NULL)
				from = server->steps[i].step;
		add_link(&path, run_server_step(server, from++), STEP_ANCHOR);
	}
	while (from <= path.to_step)
		add_link(&path, run_server_step(server, from++), STEP_DELTA);
	reply->status = 200;
	path_message_print(&path, &reply->body);
}

static void answer_latest(struct run_server *server, const char *query, struct web_reply *reply)
{
	const char *const after = strstr(query, "after=");
	uint64_t seen = 0;
	snprintf(server->latest, sizeof server->latest, "%s", strchr(query, '?'));
	const struct step_message *const head = server->count == 0 ? NULL
		: server->is_held && strstr(query, "head=true") == NULL
		? run_server_step(server, server->held)
		: &server->steps[server->count - 1];
	if (after != NULL)
		ck_assert_int_eq(sscanf(after, "after=%" SCNu64, &seen), 1);
	if (head == NULL ||
		(after != NULL && (server->is_held ? head->step == seen : head->step <= seen)))
		reply->status = 204;
	else
		answer_step(head, reply);
}

static void get_object(struct run_server *server, const char *target, struct web_reply *reply)
{
	const size_t at = find_object(server, target);
	const bool is_delta = strstr(target, "/delta/") != NULL;
	if (at == server->object_count || (is_delta && take(&server->lost))) {
		refuse(reply, 404, "no_key");
		return;
	}
	reply->status = 200;
	server->fetches++;
	buffer_add_span(&reply->body, buffer_span(&server->objects[at].bytes));
	if (is_delta && take(&server->flips))
		reply->body.data[reply->body.len - 1] ^= 1;
}

static void put_object(
	struct run_server *server, const struct web_request *request, struct web_reply *reply)
{
	const size_t at = find_object(server, request->target);
	if (strstr(request->target, "/anchor/model.safetensors") != NULL && take(&server->full)) {
		refuse(reply, 507, "no_space");
		return;
	}
	if (at == server->object_count) {
		ck_assert_uint_lt(at, RUN_SERVER_OBJECTS);
		server->objects[server->object_count++].target = memory_copy_text(request->target);
		buffer_init(&server->objects[at].bytes, OBJECT_MAX_BYTES);
	}
	buffer_reset(&server->objects[at].bytes);
	buffer_add_span(&server->objects[at].bytes, request->body);
	reply->status = 200;
}

/* Below the run. */
static void answer_below(struct run_server *server, const struct web_request *request,
	const char *below, struct web_reply *reply)
{
	char object[4200];
	const struct step_message *step;
	uint64_t number;
	if (server->epoch == 0) {
		refuse(reply, 404, server->has_bucket ? "no_run" : "no_bucket");
	} else if (strncmp(below, "/path?", 6) == 0) {
		answer_path(server, below, reply);
	} else if (strncmp(below, "/steps/latest?", 14) == 0) {
		answer_latest(server, below, reply);
	} else if (strncmp(below, "/objects/", 9) == 0) {
		snprintf(object, sizeof object, "/b/%s", below + 9);
		get_object(server, object, reply);
	} else if (strncmp(below, "/replicas/", 10) == 0) {
		reply->status = 200;
		buffer_add_text(&reply->body, "{\"lease_s\":30}");
	} else if (strcmp(below, "/settings") == 0) {
		ck_assert_int_eq(sscanf((const char *)request->body.data,
					 "{\"keep_steps\":%" SCNu64, &server->keep_steps),
			1);
		reply->status = 200;
	} else if (strstr(below, "/parts/") != NULL) {
		ck_assert_int_eq(sscanf(below, "/steps/%" SCNu64, &number), 1);
		put_part(server, number, request->body, reply);
	} else if (strcmp(request->method, "PUT") == 0) {
		publish(server, request->body, reply);
	} else if (sscanf(below, "/steps/%" SCNu64, &number) == 1 &&
		(step = find_step(server, number)) != NULL) {
		answer_step(step, reply);
	} else {
		refuse(reply, 404, "no_step");
	}
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	struct run_server *const server = owner;
	const size_t len = sizeof RUN - 1;
	if (strcmp(request->target, RUN) == 0 && strcmp(request->method, "POST") == 0)
		open_run(server, request->body, reply);
	else if (strcmp(request->target, RUN) == 0 && server->epoch > 0)
		answer_run(server, reply);
	else if (strncmp(request->target, RUN, len) == 0)
		answer_below(server, request, request->target + len, reply);
	else if (strcmp(request->target, "/b") == 0) {
		server->has_bucket = true;
		reply->status = 200;
	} else if (strcmp(request->method, "PUT") == 0)
		put_object(server, request, reply);
	else
		get_object(server, request->target, reply);
}

void run_server_start(struct run_server *server)
{
	*server = (struct run_server){
		.arena = arena_new(ARENA_BYTES), .has_bucket = true, .keep_steps = 64};
	server->web = web_start(answer, server);
}

void run_server_stop(struct run_server *server)
{
	web_stop(server->web);
	for (size_t i = 0; i < server->object_count; i++) {
		free(server->objects[i].target);
		buffer_release(&server->objects[i].bytes);
	}
	arena_free(server->arena);
}
