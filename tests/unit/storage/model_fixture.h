/* Small models as folders, each slightly changed from the one before: a safetensors file, a config
 * and an empty file. */
#ifndef TESTS_UNIT_STORAGE_MODEL_FIXTURE_H
#define TESTS_UNIT_STORAGE_MODEL_FIXTURE_H

#include "tests/unit/storage/store_fixture.h"
#include "weights/delta/delta.h"

struct model_fixture {
	struct store_fixture store; /* with the bucket "bucket" and the run "run" */
	char *folder;               /* has the models and deltas */
};
void model_fixture_open(struct model_fixture *fixture);
void model_fixture_close(struct model_fixture *fixture);

/* Gives the model of a step, and makes it at the first use. `config` is the content of its
 * config.json; NULL: the model is a single file. Paths lie in the store's arena. */
char *model_fixture_make(struct model_fixture *fixture, unsigned step, const char *config);
/* Makes the delta from the model of one step to that of another. */
char *model_fixture_diff(
	struct model_fixture *fixture, unsigned from, unsigned to, enum delta_format format);
struct digest128 model_fixture_digest(struct model_fixture *fixture, unsigned step);
/* Applies the delta at `path` to the model at `base`. Returns a folder beside them. */
char *model_fixture_apply(struct model_fixture *fixture, const char *base, const char *path);
/* Puts a file, or the files of a folder, under a prefix of keys. Returns a form of these
 * objects. */
struct step_form model_fixture_put(struct model_fixture *fixture, const char *path,
	const char *prefix, enum step_form_kind kind, const char *format);
/* Writes the object into a folder, as `name`. */
void model_fixture_fetch(struct model_fixture *fixture, const struct object *object,
	const char *folder, const char *name);
/* Whether both folders have the same files, byte for byte. */
bool model_fixture_same(const struct model_fixture *fixture, const char *one, const char *other);
/* Publishes a step of the run "run" with these forms. `name` NULL: the model is named
 * "model.safetensors". */
void model_fixture_publish(struct model_fixture *fixture, unsigned step, const char *name,
	const struct step_form *forms, size_t count);
/* Runs all jobs of the step worker. Returns the number of failed jobs. */
size_t model_fixture_settle(struct model_fixture *fixture);

#endif
