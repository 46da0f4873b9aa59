/* Each question walks the list of rules; a bucket has at most 1,000. A rule counts when it is
 * enabled, has the action and applies to the subject. The first rule that is due decides, and for
 * an expiry the earliest one. */
#include "storage/buckets/lifecycle.h"

#include "base/error.h"

static bool applies(const struct lifecycle_rule *rule, const struct lifecycle_subject *subject);
static bool applies_to_key(const struct lifecycle_rule *rule, struct span key);
static bool has_tag(const struct lifecycle_subject *subject, const struct tag *wanted);
static bool applies_to_marker(const struct lifecycle_rule *rule, struct span key);

int64_t lifecycle_due(int64_t since_ms, uint32_t days, int64_t day_ms)
{
	ASSERT(day_ms > 0);
	const int64_t end_ms = since_ms + (int64_t)days * day_ms;
	return (end_ms + day_ms - 1) / day_ms * day_ms;
}

bool lifecycle_expires(const struct lifecycle *lifecycle, const struct lifecycle_subject *subject,
	int64_t day_ms, int64_t *out_due_ms, const struct lifecycle_rule **out_rule)
{
	*out_rule = NULL;
	for (size_t i = 0; i < lifecycle->count; i++) {
		const struct lifecycle_rule *const rule = &lifecycle->rules[i];
		if ((rule->expire_days == 0 && !rule->has_expire_date) || !applies(rule, subject))
			continue;
		const int64_t due_ms = rule->has_expire_date
			? rule->expire_date_ms
			: lifecycle_due(subject->since_ms, rule->expire_days, day_ms);
		if (*out_rule == NULL || due_ms < *out_due_ms) {
			*out_due_ms = due_ms;
			*out_rule = rule;
		}
	}
	return *out_rule != NULL;
}

bool lifecycle_removes_marker(const struct lifecycle *lifecycle, struct span key,
	int64_t modified_ms, const struct lifecycle_clock *clock)
{
	for (size_t i = 0; i < lifecycle->count; i++) {
		const struct lifecycle_rule *const rule = &lifecycle->rules[i];
		if (!applies_to_marker(rule, key))
			continue;
		if (rule->expires_markers ||
			(rule->expire_days > 0 &&
				lifecycle_due(modified_ms, rule->expire_days, clock->day_ms) <=
					clock->now_ms))
			return true;
	}
	return false;
}

bool lifecycle_removes_noncurrent(const struct lifecycle *lifecycle,
	const struct lifecycle_subject *subject, uint32_t newer,
	const struct lifecycle_clock *clock)
{
	for (size_t i = 0; i < lifecycle->count; i++) {
		const struct lifecycle_rule *const rule = &lifecycle->rules[i];
		if (rule->noncurrent_days > 0 && newer >= rule->noncurrent_newer &&
			applies(rule, subject) &&
			lifecycle_due(subject->since_ms, rule->noncurrent_days, clock->day_ms) <=
				clock->now_ms)
			return true;
	}
	return false;
}

bool lifecycle_aborts(const struct lifecycle *lifecycle, struct span key, int64_t created_ms,
	const struct lifecycle_clock *clock)
{
	for (size_t i = 0; i < lifecycle->count; i++) {
		const struct lifecycle_rule *const rule = &lifecycle->rules[i];
		if (rule->abort_days > 0 && applies_to_key(rule, key) &&
			lifecycle_due(created_ms, rule->abort_days, clock->day_ms) <= clock->now_ms)
			return true;
	}
	return false;
}

struct lifecycle_work lifecycle_work_of(const struct lifecycle *lifecycle)
{
	struct lifecycle_work work = {false, false, false};
	for (size_t i = 0; i < lifecycle->count; i++) {
		const struct lifecycle_rule *const rule = &lifecycle->rules[i];
		if (!rule->enabled)
			continue;
		work.current = work.current || rule->expire_days > 0 || rule->has_expire_date ||
			rule->expires_markers;
		work.noncurrent = work.noncurrent || rule->noncurrent_days > 0;
		work.uploads = work.uploads || rule->abort_days > 0;
	}
	return work;
}

static bool applies(const struct lifecycle_rule *rule, const struct lifecycle_subject *subject)
{
	if (!applies_to_key(rule, subject->key))
		return false;
	if ((rule->has_size_over && subject->size <= rule->size_over) ||
		(rule->has_size_under && subject->size >= rule->size_under))
		return false;
	for (size_t i = 0; i < rule->tag_count; i++)
		if (!has_tag(subject, &rule->tags[i]))
			return false;
	return true;
}

static bool applies_to_key(const struct lifecycle_rule *rule, struct span key)
{
	return rule->enabled && (!rule->has_prefix || span_starts(key, rule->prefix));
}

static bool has_tag(const struct lifecycle_subject *subject, const struct tag *wanted)
{
	for (size_t i = 0; i < subject->tag_count; i++)
		if (span_equal(subject->tags[i].key, wanted->key) &&
			span_equal(subject->tags[i].value, wanted->value))
			return true;
	return false;
}

/* Markers have neither tags nor a size, so rules that filter by these do not apply to them. */
static bool applies_to_marker(const struct lifecycle_rule *rule, struct span key)
{
	return applies_to_key(rule, key) && rule->tag_count == 0 && !rule->has_size_over &&
		!rule->has_size_under;
}
