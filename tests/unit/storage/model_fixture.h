/* Small models as folders, each a little changed from the one before: a safetensors file, a config
 * and a file that is empty. */
#ifndef TESTS_UNIT_STORAGE_MODEL_FIXTURE_H
#define TESTS_UNIT_STORAGE_MODEL_FIXTURE_H

#include "tests/unit/storage/store_fixture.h"
#include "weights/delta/delta.h"

struct model_fixture {
	struct store_fixture store; /* with the bucket "bucket" and the run "run" */
	char *folder;               /* of models and deltas */
};
void model_fixture_open(struct model_fixture *fixture);
void model_fixture_close(struct model_fixture *fixture);

/* Paths live in the store's arena. The model of a step, made at its first use; `config` is what its
 * config.json says, NULL: it is one file alone. */
char *model_fixture_make(struct model_fixture *fixture, unsigned step, const char *config);
/* The delta from the model of one step to that of another. */
char *model_fixture_diff(
	struct model_fixture *fixture, unsigned from, unsigned to, enum delta_format format);
struct digest128 model_fixture_digest(struct model_fixture *fixture, unsigned step);
/* What the delta at `path` makes of the model at `base`, a folder beside them. */
char *model_fixture_apply(struct model_fixture *fixture, const char *base, const char *path);
/* Puts the files of a folder, or a file, below a prefix of keys; a form of these objects. */
struct step_form model_fixture_put(struct model_fixture *fixture, const char *path,
	const char *prefix, enum step_form_kind kind, const char *format);
/* Writes the object into a folder, under its name. */
void model_fixture_fetch(struct model_fixture *fixture, const struct object *object,
	const char *folder, const char *name);
/* Whether both folders hold the same files, byte for byte. */
bool model_fixture_same(const struct model_fixture *fixture, const char *one, const char *other);
/* Steps of the run "run", with the forms that were put; a model is called "model.safetensors"
 * unless `name` says otherwise. */
void model_fixture_publish(struct model_fixture *fixture, unsigned step, const char *name,
	const struct step_form *forms, size_t count);
/* Lets the step worker do all that there is; gives how many jobs failed. */
size_t model_fixture_settle(struct model_fixture *fixture);

#endif
